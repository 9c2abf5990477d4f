-- Audits, batches and daily rates. Left joins to unique keys cost nothing where a query does not
-- read their columns: the planner leaves them out.

CREATE VIEW trail.audits AS
SELECT
    a.id AS audit_id,
    a.batch_id,
    a.line,
    a.custom_id,
    a.status::text AS status,
    a.outcome::text AS outcome,
    a.fedscore AS score,
    a.label::text AS label,
    a.deciding_claim,
    p.id AS policy_id,
    p.name AS policy,
    p.version AS policy_version,
    a.metadata,
    a.context,
    a.response,
    a.document_id,
    a.submitted_at,
    a.extracted_at,
    a.finished_at,
    a.month,
    extract(epoch FROM a.extraction_started_at - a.submitted_at)::double precision
        AS queue_seconds,
    extract(epoch FROM a.extracted_at - a.extraction_started_at)::double precision
        AS extraction_seconds,
    extract(epoch FROM a.verification_started_at - a.extracted_at)::double precision
        AS verification_queue_seconds,
    extract(epoch FROM a.finished_at - a.verification_started_at)::double precision
        AS verification_seconds,
    extract(epoch FROM a.finished_at - a.submitted_at)::double precision AS total_seconds,
    e.claims,
    a.supported,
    a.contradicted,
    a.unsupported,
    jsonb_array_length(e.rejected) AS rejected,
    jsonb_array_length(e.unaudited) AS unaudited,
    CASE
        WHEN e.generations IS NOT NULL
            THEN (
                SELECT coalesce(sum((call ->> 'prompt_tokens')::integer), 0)
                FROM jsonb_array_elements(e.generations) AS call
            )
    END AS prompt_tokens,
    CASE
        WHEN e.generations IS NOT NULL
            THEN (
                SELECT coalesce(sum((call ->> 'output_tokens')::integer), 0)
                FROM jsonb_array_elements(e.generations) AS call
            )
    END AS output_tokens,
    e.mode::text AS extraction_mode,
    extractor.name AS extractor,
    extractor.revision AS extractor_revision,
    extractor.provenance AS extractor_provenance,
    nli.name AS nli_model,
    nli.revision AS nli_revision,
    nli.provenance AS nli_provenance,
    v.span_table_id AS reading_id,
    v.preselected_spans,
    v.warnings,
    a.error,
    a.priority::integer AS priority,
    a.attempts,
    a.faults
FROM halldetect.audits AS a
LEFT JOIN halldetect.policies AS p ON p.id = a.policy_id
LEFT JOIN halldetect.extractions AS e ON e.audit_id = a.id
LEFT JOIN halldetect.models AS extractor ON extractor.id = e.model_id
LEFT JOIN halldetect.verifications AS v ON v.audit_id = a.id
LEFT JOIN halldetect.models AS nli ON nli.id = v.model_id;

CREATE VIEW trail.batches AS
SELECT
    b.id AS batch_id,
    b.created_at,
    b.cancelled_at,
    CASE WHEN t.queued + t.extracted = 0 THEN t.finished_at END AS finished_at,
    CASE
        WHEN t.queued + t.extracted > 0 THEN 'in_progress'
        WHEN t.cancelled > 0 THEN 'cancelled'
        ELSE 'completed'
    END AS status,
    b.total,
    t.queued,
    t.extracted,
    t.running,
    t.completed,
    t.failed,
    t.cancelled,
    t.hallucinated,
    t.faithful,
    t.no_checkable_claims,
    t.hallucinated / nullif(t.hallucinated + t.faithful, 0)::double precision AS flag_rate,
    t.mean_score,
    t.supported,
    t.contradicted,
    t.unsupported
FROM halldetect.batches AS b
CROSS JOIN LATERAL (
    SELECT
        max(a.finished_at) AS finished_at,
        count(*) FILTER (WHERE a.status = 'queued') AS queued,
        count(*) FILTER (WHERE a.status = 'extracted') AS extracted,
        count(a.lease_owner) AS running,
        count(*) FILTER (WHERE a.status = 'completed') AS completed,
        count(*) FILTER (WHERE a.status = 'failed') AS failed,
        count(*) FILTER (WHERE a.status = 'cancelled') AS cancelled,
        count(*) FILTER (WHERE a.label = 'hallucinated') AS hallucinated,
        count(*) FILTER (WHERE a.label = 'faithful') AS faithful,
        count(*) FILTER (WHERE a.outcome = 'no_checkable_claims') AS no_checkable_claims,
        avg(a.fedscore) AS mean_score,
        coalesce(sum(a.supported), 0) AS supported,
        coalesce(sum(a.contradicted), 0) AS contradicted,
        coalesce(sum(a.unsupported), 0) AS unsupported
    FROM halldetect.audits AS a
    WHERE a.batch_id = b.id
) AS t;
