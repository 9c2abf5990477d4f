-- Audits and claims under every policy they are scored with.

CREATE VIEW trail.policies AS
SELECT
    p.id AS policy_id,
    p.name AS policy,
    p.version AS policy_version,
    NOT EXISTS (
        SELECT FROM halldetect.policies AS later WHERE later.name = p.name AND later.id > p.id
    ) AS is_newest,
    p.rules ->> 'claim_value' AS claim_value,
    p.rules ->> 'aggregation' AS aggregation,
    CASE
        WHEN jsonb_typeof(p.rules -> 'granularities') = 'array'
            THEN ARRAY(
                SELECT m::integer
                FROM jsonb_array_elements_text(p.rules -> 'granularities') AS m
            )
    END AS granularities,
    (p.rules ->> 'margin')::double precision AS margin,
    (p.rules ->> 'entailment_threshold')::double precision AS entailment_threshold,
    (p.rules ->> 'contradiction_threshold')::double precision AS contradiction_threshold,
    (p.rules ->> 'response_threshold')::double precision AS response_threshold,
    p.rules,
    p.created_at
FROM halldetect.policies AS p;

CREATE VIEW trail.scorings AS
SELECT
    a.id AS audit_id,
    a.policy_id,
    p.name AS policy,
    p.version AS policy_version,
    true AS is_default,
    a.fedscore AS score,
    a.label::text AS label,
    a.deciding_claim,
    a.supported,
    a.contradicted,
    a.unsupported,
    a.finished_at AS scored_at,
    a.batch_id,
    a.custom_id,
    a.metadata,
    a.submitted_at
FROM halldetect.audits AS a
LEFT JOIN halldetect.policies AS p ON p.id = a.policy_id
WHERE a.status = 'completed'
UNION ALL
SELECT
    s.audit_id,
    s.policy_id,
    p.name,
    p.version,
    false,
    s.response_score,
    s.label::text,
    s.deciding_claim,
    cardinality(array_positions(s.verdicts, 'supported')),
    cardinality(array_positions(s.verdicts, 'contradicted')),
    cardinality(array_positions(s.verdicts, 'unsupported')),
    s.created_at,
    a.batch_id,
    a.custom_id,
    a.metadata,
    a.submitted_at
FROM halldetect.scorings AS s
LEFT JOIN halldetect.policies AS p ON p.id = s.policy_id
LEFT JOIN halldetect.audits AS a ON a.id = s.audit_id;

CREATE VIEW trail.claim_scorings AS
SELECT
    c.id AS claim_id,
    c.audit_id,
    c.position,
    a.policy_id,
    p.name AS policy,
    p.version AS policy_version,
    true AS is_default,
    c.text,
    c.score,
    c.verdict::text AS verdict,
    a.submitted_at
FROM halldetect.claims AS c
JOIN halldetect.audits AS a ON a.id = c.audit_id
LEFT JOIN halldetect.policies AS p ON p.id = a.policy_id
WHERE a.status = 'completed'
UNION ALL
SELECT
    c.id,
    s.audit_id,
    c.position,
    s.policy_id,
    p.name,
    p.version,
    false,
    c.text,
    s.claim_values[c.position + 1],
    s.verdicts[c.position + 1],
    a.submitted_at
FROM halldetect.scorings AS s
JOIN halldetect.claims AS c ON c.audit_id = s.audit_id
LEFT JOIN halldetect.audits AS a ON a.id = s.audit_id
LEFT JOIN halldetect.policies AS p ON p.id = s.policy_id;

CREATE VIEW trail.daily_rates AS
SELECT
    (s.submitted_at AT TIME ZONE 'UTC')::date AS day,
    s.policy,
    s.policy_version,
    s.is_default,
    extractor.name AS extractor,
    extractor.revision AS extractor_revision,
    nli.name AS nli_model,
    nli.revision AS nli_revision,
    count(*) AS audits,
    count(s.score) AS scored,
    count(*) - count(s.score) AS no_checkable_claims,
    count(*) FILTER (WHERE s.label = 'hallucinated') AS hallucinated,
    count(*) FILTER (WHERE s.label = 'hallucinated')
    / nullif(count(s.score), 0)::double precision AS flag_rate,
    avg(s.score) AS mean_score,
    sum(s.supported) AS supported,
    sum(s.contradicted) AS contradicted,
    sum(s.unsupported) AS unsupported
FROM trail.scorings AS s
LEFT JOIN halldetect.extractions AS e ON e.audit_id = s.audit_id
LEFT JOIN halldetect.models AS extractor ON extractor.id = e.model_id
LEFT JOIN halldetect.verifications AS v ON v.audit_id = s.audit_id
LEFT JOIN halldetect.models AS nli ON nli.id = v.model_id
GROUP BY 1, 2, 3, 4, 5, 6, 7, 8;
