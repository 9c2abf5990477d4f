-- Claims with their evidence, and every probability by chunk.

-- The finest chunk that holds a span, as m/index: the last one that names it.
CREATE FUNCTION halldetect.chunk_of_span(
    chunk_granularity integer[], chunk_offsets integer[], chunk_spans integer[], span integer
) RETURNS text LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN (
    SELECT
        concat(
            chunk_granularity[chunk],
            '/',
            chunk - array_position(chunk_granularity, chunk_granularity[chunk])
        )
    FROM (
        SELECT width_bucket(max(place) - 1, chunk_offsets) AS chunk
        FROM unnest(array_positions(chunk_spans, span)) AS place
    ) AS last
    WHERE span IS NOT NULL
);

CREATE VIEW trail.claims AS
SELECT
    c.id AS claim_id,
    c.audit_id,
    c.position,
    c.text,
    c.verdict::text AS verdict,
    c.score,
    p.name AS policy,
    p.version AS policy_version,
    c.has_name,
    c.has_number,
    c.has_date,
    c.origin::text AS origin,
    c.part,
    c.span_start AS response_start,
    c.span_end AS response_end,
    substr(a.response, c.span_start + 1, c.span_end - c.span_start) AS response_text,
    c.verified_text,
    c.entailment,
    halldetect.chunk_of_span(
        s.chunk_granularity, s.chunk_offsets, s.chunk_spans, c.entailment_span
    ) AS entailment_chunk,
    s.starts[c.entailment_span + 1] AS entailment_start,
    s.ends[c.entailment_span + 1] AS entailment_end,
    substr(
        d.text,
        s.starts[c.entailment_span + 1] + 1,
        s.ends[c.entailment_span + 1] - s.starts[c.entailment_span + 1]
    ) AS entailment_text,
    c.contradiction,
    halldetect.chunk_of_span(
        s.chunk_granularity, s.chunk_offsets, s.chunk_spans, c.contradiction_span
    ) AS contradiction_chunk,
    s.starts[c.contradiction_span + 1] AS contradiction_start,
    s.ends[c.contradiction_span + 1] AS contradiction_end,
    substr(
        d.text,
        s.starts[c.contradiction_span + 1] + 1,
        s.ends[c.contradiction_span + 1] - s.starts[c.contradiction_span + 1]
    ) AS contradiction_text,
    c.checked_spans,
    a.batch_id,
    a.custom_id,
    a.document_id,
    a.metadata,
    a.submitted_at,
    a.month
FROM halldetect.claims AS c
LEFT JOIN halldetect.audits AS a ON a.id = c.audit_id
LEFT JOIN halldetect.policies AS p ON p.id = a.policy_id
LEFT JOIN halldetect.verifications AS v ON v.audit_id = c.audit_id
LEFT JOIN halldetect.span_tables AS s ON s.id = v.span_table_id
LEFT JOIN halldetect.documents AS d ON d.id = a.document_id;

-- The month is in the join, so that an audit's rows are looked for in one partition.
CREATE VIEW trail.chunk_probabilities AS
SELECT
    p.audit_id,
    c.id AS claim_id,
    p.position,
    concat(k.granularity, '/', k.chunk_index) AS chunk,
    k.granularity,
    k.chunk_index,
    CASE
        WHEN k.first = k.last THEN p.entailment[s.chunk_spans[k.first] + 1]
        ELSE (
            SELECT max(p.entailment[span + 1])
            FROM unnest(s.chunk_spans[k.first : k.last]) AS span
        )
    END AS entailment,
    CASE WHEN k.first = k.last THEN p.neutral[s.chunk_spans[k.first] + 1] END AS neutral,
    CASE
        WHEN k.first = k.last THEN p.contradiction[s.chunk_spans[k.first] + 1]
        ELSE (
            SELECT max(p.contradiction[span + 1])
            FROM unnest(s.chunk_spans[k.first : k.last]) AS span
        )
    END AS contradiction,
    s.starts[s.chunk_spans[k.first] + 1] AS source_start,
    s.ends[s.chunk_spans[k.last] + 1] AS source_end,
    substr(
        d.text,
        s.starts[s.chunk_spans[k.first] + 1] + 1,
        s.ends[s.chunk_spans[k.last] + 1] - s.starts[s.chunk_spans[k.first] + 1]
    ) AS text,
    k.last - k.first + 1 AS spans,
    a.document_id,
    p.month
FROM halldetect.probabilities AS p
JOIN halldetect.audits AS a ON a.id = p.audit_id AND a.month = p.month
JOIN halldetect.verifications AS v ON v.audit_id = p.audit_id
JOIN halldetect.span_tables AS s ON s.id = v.span_table_id
LEFT JOIN halldetect.claims AS c ON c.audit_id = p.audit_id AND c.position = p.position
LEFT JOIN halldetect.documents AS d ON d.id = s.document_id
CROSS JOIN LATERAL (
    SELECT
        g.granularity,
        (g.number - array_position(s.chunk_granularity, g.granularity))::integer AS chunk_index,
        s.chunk_offsets[g.number] + 1 AS first,
        s.chunk_offsets[g.number + 1] AS last
    FROM unnest(s.chunk_granularity) WITH ORDINALITY AS g (granularity, number)
) AS k;
