-- What the extractor did beside the claims.

CREATE VIEW trail.rejected_claims AS
SELECT
    e.audit_id,
    (line.number - 1)::integer AS number,
    line.item ->> 'text' AS text,
    line.item ->> 'reason' AS reason,
    line.item ->> 'detail' AS detail,
    e.mode::text AS extraction_mode,
    extractor.name AS extractor,
    extractor.revision AS extractor_revision,
    a.batch_id,
    a.custom_id,
    a.submitted_at
FROM halldetect.extractions AS e
LEFT JOIN halldetect.audits AS a ON a.id = e.audit_id
LEFT JOIN halldetect.models AS extractor ON extractor.id = e.model_id
CROSS JOIN LATERAL jsonb_array_elements(e.rejected) WITH ORDINALITY AS line (item, number);

CREATE VIEW trail.unaudited_sentences AS
SELECT
    e.audit_id,
    (line.number - 1)::integer AS number,
    line.item ->> 'text' AS text,
    line.item ->> 'reason' AS reason,
    (line.item -> 'span' ->> 'start')::integer AS response_start,
    (line.item -> 'span' ->> 'end')::integer AS response_end,
    e.mode::text AS extraction_mode,
    extractor.name AS extractor,
    extractor.revision AS extractor_revision,
    a.batch_id,
    a.custom_id,
    a.submitted_at
FROM halldetect.extractions AS e
LEFT JOIN halldetect.audits AS a ON a.id = e.audit_id
LEFT JOIN halldetect.models AS extractor ON extractor.id = e.model_id
CROSS JOIN LATERAL jsonb_array_elements(e.unaudited) WITH ORDINALITY AS line (item, number);

CREATE VIEW trail.generations AS
SELECT
    e.audit_id,
    (line.number - 1)::integer AS number,
    (line.item -> 'window' ->> 'start')::integer AS response_start,
    (line.item -> 'window' ->> 'end')::integer AS response_end,
    line.item ->> 'finish' AS finish,
    (line.item ->> 'parsed')::boolean AS parsed,
    (line.item ->> 'prompt_tokens')::integer AS prompt_tokens,
    (line.item ->> 'output_tokens')::integer AS output_tokens,
    e.mode::text AS extraction_mode,
    extractor.name AS extractor,
    extractor.revision AS extractor_revision,
    a.batch_id,
    a.custom_id,
    a.submitted_at
FROM halldetect.extractions AS e
LEFT JOIN halldetect.audits AS a ON a.id = e.audit_id
LEFT JOIN halldetect.models AS extractor ON extractor.id = e.model_id
CROSS JOIN LATERAL jsonb_array_elements(e.generations) WITH ORDINALITY AS line (item, number);

CREATE VIEW trail.models AS
SELECT
    m.id AS model_id,
    m.kind::text AS kind,
    m.name,
    m.backend,
    m.revision,
    m.dtype,
    m.device,
    m.provenance,
    m.created_at
FROM halldetect.models AS m;

CREATE VIEW trail.documents AS
SELECT
    d.id AS document_id,
    encode(d.sha256, 'hex') AS sha256,
    d.characters,
    d.text,
    d.created_at
FROM halldetect.documents AS d;

CREATE VIEW trail.document_readings AS
SELECT
    s.id AS reading_id,
    s.document_id,
    s.splitter,
    s.tokenizer,
    s.token_limit,
    s.sentences,
    s.unreadable_sentences,
    s.tokens,
    s.unknown_tokens,
    cardinality(s.starts) AS spans,
    cardinality(s.chunk_granularity) AS chunks,
    s.windowed_chunks
FROM halldetect.span_tables AS s;
