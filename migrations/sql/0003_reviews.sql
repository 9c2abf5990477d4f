-- What reviewers say; it stays when retention deletes the audit.

CREATE VIEW trail.reviews AS
SELECT
    r.id AS review_id,
    r.claim_id,
    r.audit_id,
    r.claim_text,
    r.verdict::text AS verdict,
    r.reviewer,
    r.reviewer_verdict::text AS reviewer_verdict,
    r.reviewer_verdict = r.verdict AS agrees,
    NOT EXISTS (
        SELECT
        FROM halldetect.reviews AS later
        WHERE later.claim_id = r.claim_id AND later.reviewer = r.reviewer AND later.id > r.id
    ) AS is_latest,
    r.note,
    r.created_at
FROM halldetect.reviews AS r;

CREATE VIEW trail.reviewed_claims AS
SELECT
    r.claim_id,
    r.audit_id,
    r.claim_text,
    r.verdict,
    count(*) AS reviewers,
    count(*) FILTER (WHERE r.agrees) AS agreeing,
    count(*) FILTER (WHERE r.reviewer_verdict = 'supported') AS supported_votes,
    count(*) FILTER (WHERE r.reviewer_verdict = 'contradicted') AS contradicted_votes,
    count(*) FILTER (WHERE r.reviewer_verdict = 'unsupported') AS unsupported_votes,
    CASE
        WHEN count(*) FILTER (WHERE r.reviewer_verdict = 'supported') * 2 > count(*)
            THEN 'supported'
        WHEN count(*) FILTER (WHERE r.reviewer_verdict = 'contradicted') * 2 > count(*)
            THEN 'contradicted'
        WHEN count(*) FILTER (WHERE r.reviewer_verdict = 'unsupported') * 2 > count(*)
            THEN 'unsupported'
    END AS majority_verdict,
    max(r.created_at) AS last_reviewed_at
FROM trail.reviews AS r
WHERE r.is_latest
GROUP BY r.claim_id, r.audit_id, r.claim_text, r.verdict;
