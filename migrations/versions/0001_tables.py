"""Tables: documents, batches, audits, claims, spans, probabilities, models, policies, workers.

Revision ID: 0001
"""

from __future__ import annotations

from alembic import op

revision = "0001"
down_revision = None
branch_labels = None
depends_on = None

# Plain SQL, so that this revision stays what it was whatever becomes of the models.
_TABLES = """
CREATE SCHEMA halldetect;

CREATE TABLE halldetect.batches (
    id BIGINT GENERATED ALWAYS AS IDENTITY,
    total INTEGER NOT NULL,
    created_at TIMESTAMP WITH TIME ZONE DEFAULT now() NOT NULL,
    cancelled_at TIMESTAMP WITH TIME ZONE,
    CONSTRAINT pk_batches PRIMARY KEY (id),
    CONSTRAINT ck_batches_not_empty CHECK (total > 0)
);

CREATE TABLE halldetect.documents (
    id BIGINT GENERATED ALWAYS AS IDENTITY,
    sha256 BYTEA NOT NULL,
    text TEXT NOT NULL,
    characters INTEGER NOT NULL,
    created_at TIMESTAMP WITH TIME ZONE DEFAULT now() NOT NULL,
    CONSTRAINT pk_documents PRIMARY KEY (id),
    CONSTRAINT ck_documents_sha256_length CHECK (octet_length(sha256) = 32),
    CONSTRAINT ck_documents_not_empty CHECK (characters > 0),
    CONSTRAINT uq_documents_sha256 UNIQUE (sha256)
);

CREATE TABLE halldetect.idempotency_keys (
    key TEXT NOT NULL,
    request_sha256 BYTEA NOT NULL,
    status SMALLINT NOT NULL,
    headers JSONB NOT NULL,
    body BYTEA NOT NULL,
    created_at TIMESTAMP WITH TIME ZONE DEFAULT now() NOT NULL,
    CONSTRAINT pk_idempotency_keys PRIMARY KEY (key),
    CONSTRAINT ck_idempotency_keys_sha256_length CHECK (octet_length(request_sha256) = 32)
);

CREATE INDEX ix_idempotency_keys_created_at
    ON halldetect.idempotency_keys (created_at);

CREATE TABLE halldetect.models (
    id BIGINT GENERATED ALWAYS AS IDENTITY,
    sha256 BYTEA NOT NULL,
    kind VARCHAR(32) NOT NULL,
    name TEXT NOT NULL,
    backend TEXT NOT NULL,
    revision TEXT NOT NULL,
    dtype TEXT NOT NULL,
    device TEXT NOT NULL,
    provenance JSONB NOT NULL,
    created_at TIMESTAMP WITH TIME ZONE DEFAULT now() NOT NULL,
    CONSTRAINT pk_models PRIMARY KEY (id),
    CONSTRAINT ck_models_sha256_length CHECK (octet_length(sha256) = 32),
    CONSTRAINT uq_models_sha256 UNIQUE (sha256),
    CONSTRAINT ck_models_kind CHECK (kind IN ('extractor', 'nli'))
);

CREATE TABLE halldetect.policies (
    id BIGINT GENERATED ALWAYS AS IDENTITY,
    name TEXT NOT NULL,
    version TEXT NOT NULL,
    rules JSONB NOT NULL,
    created_at TIMESTAMP WITH TIME ZONE DEFAULT now() NOT NULL,
    CONSTRAINT pk_policies PRIMARY KEY (id),
    CONSTRAINT uq_policies_name_version UNIQUE (name, version),
    CONSTRAINT ck_policies_version_form CHECK (version ~ '^[0-9a-f]{16}$')
);

CREATE TABLE halldetect.probabilities (
    month DATE NOT NULL,
    audit_id BIGINT NOT NULL,
    position INTEGER NOT NULL,
    entailment REAL[] NOT NULL,
    neutral REAL[] NOT NULL,
    contradiction REAL[] NOT NULL,
    CONSTRAINT pk_probabilities PRIMARY KEY (month, audit_id, position),
    CONSTRAINT ck_probabilities_spans CHECK (cardinality(entailment) = cardinality(neutral)
        AND cardinality(entailment) = cardinality(contradiction)),
    CONSTRAINT ck_probabilities_range CHECK (0 <= ALL(array_remove(entailment, NULL))
        AND 1 >= ALL(array_remove(entailment, NULL))
        AND 0 <= ALL(array_remove(neutral, NULL)) AND 1 >= ALL(array_remove(neutral, NULL))
        AND 0 <= ALL(array_remove(contradiction, NULL))
        AND 1 >= ALL(array_remove(contradiction, NULL)))
) PARTITION BY RANGE (month);

CREATE TABLE halldetect.workers (
    name TEXT NOT NULL,
    queues TEXT[] NOT NULL,
    pid INTEGER NOT NULL,
    host TEXT NOT NULL,
    state VARCHAR(32) NOT NULL,
    error TEXT,
    models TEXT[] DEFAULT '{}' NOT NULL,
    counters JSONB DEFAULT '{}' NOT NULL,
    started_at TIMESTAMP WITH TIME ZONE DEFAULT now() NOT NULL,
    seen_at TIMESTAMP WITH TIME ZONE DEFAULT now() NOT NULL,
    CONSTRAINT pk_workers PRIMARY KEY (name),
    CONSTRAINT ck_workers_state CHECK (state IN ('loading', 'ready', 'failed', 'stopping'))
);

CREATE TABLE halldetect.audits (
    id BIGINT GENERATED ALWAYS AS IDENTITY,
    batch_id BIGINT,
    line INTEGER,
    custom_id TEXT,
    document_id BIGINT NOT NULL,
    policy_id BIGINT NOT NULL,
    response TEXT NOT NULL,
    context TEXT,
    metadata JSONB DEFAULT '{}' NOT NULL,
    priority SMALLINT DEFAULT 0 NOT NULL,
    submitted_at TIMESTAMP WITH TIME ZONE DEFAULT now() NOT NULL,
    month DATE
        GENERATED ALWAYS AS (
            CAST(date_trunc('month', submitted_at AT TIME ZONE 'UTC') AS date)
        ) STORED NOT NULL,
    status VARCHAR(32) DEFAULT 'queued' NOT NULL,
    attempts INTEGER DEFAULT 0 NOT NULL,
    faults INTEGER DEFAULT 0 NOT NULL,
    worker_lost BOOLEAN DEFAULT false NOT NULL,
    lease_owner TEXT,
    lease_expires_at TIMESTAMP WITH TIME ZONE,
    lease_begun BOOLEAN DEFAULT false NOT NULL,
    fencing_token BIGINT DEFAULT 0 NOT NULL,
    extraction_started_at TIMESTAMP WITH TIME ZONE,
    extracted_at TIMESTAMP WITH TIME ZONE,
    verification_started_at TIMESTAMP WITH TIME ZONE,
    finished_at TIMESTAMP WITH TIME ZONE,
    outcome VARCHAR(32),
    fedscore DOUBLE PRECISION,
    label VARCHAR(32),
    deciding_claim INTEGER,
    supported INTEGER,
    contradicted INTEGER,
    unsupported INTEGER,
    error TEXT,
    CONSTRAINT pk_audits PRIMARY KEY (id),
    CONSTRAINT uq_audits_batch_id_custom_id UNIQUE (batch_id, custom_id),
    CONSTRAINT uq_audits_batch_id_line UNIQUE (batch_id, line),
    CONSTRAINT ck_audits_line_in_batch CHECK ((batch_id IS NULL) = (line IS NULL)),
    CONSTRAINT ck_audits_line_positive CHECK (line > 0),
    CONSTRAINT ck_audits_priority_range CHECK (priority BETWEEN -100 AND 100),
    CONSTRAINT ck_audits_metadata_object CHECK (jsonb_typeof(metadata) = 'object'),
    CONSTRAINT ck_audits_error_if_failed CHECK ((status = 'failed') = (error IS NOT NULL)),
    CONSTRAINT ck_audits_outcome_if_done
        CHECK ((status = 'completed') = (outcome IS NOT NULL)),
    CONSTRAINT ck_audits_finished_if_final
        CHECK ((status IN ('completed', 'failed', 'cancelled')) = (finished_at IS NOT NULL)),
    CONSTRAINT ck_audits_score_if_scored
        CHECK ((coalesce(outcome, '') = 'scored') = (fedscore IS NOT NULL)),
    CONSTRAINT ck_audits_label_with_score CHECK ((fedscore IS NULL) = (label IS NULL)),
    CONSTRAINT ck_audits_fedscore_range CHECK (fedscore BETWEEN 0 AND 1),
    CONSTRAINT ck_audits_extracted_time
        CHECK (status <> 'extracted' OR extracted_at IS NOT NULL),
    CONSTRAINT ck_audits_counts_if_done
        CHECK (num_nulls(supported, contradicted, unsupported)
            = CASE WHEN status = 'completed' THEN 0 ELSE 3 END),
    CONSTRAINT ck_audits_counts_not_negative
        CHECK (least(supported, contradicted, unsupported, attempts, faults, fencing_token) >= 0),
    CONSTRAINT ck_audits_lease_whole
        CHECK ((lease_owner IS NULL) = (lease_expires_at IS NULL)),
    CONSTRAINT ck_audits_begun_if_leased CHECK (lease_owner IS NOT NULL OR NOT lease_begun),
    CONSTRAINT ck_audits_lease_if_waiting
        CHECK (lease_owner IS NULL OR status IN ('queued', 'extracted')),
    CONSTRAINT fk_audits_batch_id FOREIGN KEY(batch_id) REFERENCES halldetect.batches (id),
    CONSTRAINT fk_audits_document_id
        FOREIGN KEY(document_id) REFERENCES halldetect.documents (id),
    CONSTRAINT fk_audits_policy_id FOREIGN KEY(policy_id) REFERENCES halldetect.policies (id),
    CONSTRAINT ck_audits_status
        CHECK (status IN ('queued', 'extracted', 'completed', 'failed', 'cancelled')),
    CONSTRAINT ck_audits_outcome CHECK (outcome IN ('scored', 'no_checkable_claims')),
    CONSTRAINT ck_audits_label CHECK (label IN ('faithful', 'hallucinated'))
);

CREATE INDEX ix_audits_awaiting_extraction
    ON halldetect.audits (priority DESC, (batch_id IS NOT NULL), id)
    WHERE status = 'queued';

CREATE INDEX ix_audits_awaiting_verification
    ON halldetect.audits (priority DESC, (batch_id IS NOT NULL), id)
    WHERE status = 'extracted';

CREATE INDEX ix_audits_custom_id
    ON halldetect.audits (custom_id)
    WHERE custom_id IS NOT NULL;

CREATE INDEX ix_audits_document_id
    ON halldetect.audits (document_id);

CREATE INDEX ix_audits_finished_at
    ON halldetect.audits (finished_at)
    WHERE finished_at IS NOT NULL;

CREATE INDEX ix_audits_leased
    ON halldetect.audits (lease_expires_at)
    WHERE lease_owner IS NOT NULL;

CREATE TABLE halldetect.span_tables (
    id BIGINT GENERATED ALWAYS AS IDENTITY,
    document_id BIGINT NOT NULL,
    splitter TEXT NOT NULL,
    tokenizer TEXT NOT NULL,
    token_limit INTEGER NOT NULL,
    starts INTEGER[] NOT NULL,
    ends INTEGER[] NOT NULL,
    chunk_granularity INTEGER[] NOT NULL,
    chunk_offsets INTEGER[] NOT NULL,
    chunk_spans INTEGER[] NOT NULL,
    sentences INTEGER NOT NULL,
    unreadable_sentences INTEGER NOT NULL,
    tokens INTEGER NOT NULL,
    unknown_tokens INTEGER NOT NULL,
    windowed_chunks INTEGER NOT NULL,
    CONSTRAINT pk_span_tables PRIMARY KEY (id),
    CONSTRAINT uq_span_tables_document_id_splitter_tokenizer_token_limit
        UNIQUE (document_id, splitter, tokenizer, token_limit),
    CONSTRAINT ck_span_tables_spans CHECK (cardinality(starts) = cardinality(ends)
        AND cardinality(starts) > 0),
    CONSTRAINT ck_span_tables_chunks
        CHECK (cardinality(chunk_offsets) = cardinality(chunk_granularity) + 1),
    CONSTRAINT ck_span_tables_chunk_spans
        CHECK (chunk_offsets[cardinality(chunk_offsets)] = cardinality(chunk_spans)),
    CONSTRAINT fk_span_tables_document_id
        FOREIGN KEY(document_id) REFERENCES halldetect.documents (id) ON DELETE CASCADE
);

CREATE TABLE halldetect.claims (
    id BIGINT GENERATED ALWAYS AS IDENTITY,
    audit_id BIGINT NOT NULL,
    position INTEGER NOT NULL,
    text TEXT NOT NULL,
    span_start INTEGER NOT NULL,
    span_end INTEGER NOT NULL,
    origin VARCHAR(32) NOT NULL,
    part INTEGER NOT NULL,
    has_name BOOLEAN NOT NULL,
    has_number BOOLEAN NOT NULL,
    has_date BOOLEAN NOT NULL,
    antecedent_start INTEGER,
    antecedent_end INTEGER,
    verified_text TEXT,
    verdict VARCHAR(32),
    score DOUBLE PRECISION,
    entailment REAL,
    entailment_span INTEGER,
    contradiction REAL,
    contradiction_span INTEGER,
    checked_spans INTEGER,
    CONSTRAINT pk_claims PRIMARY KEY (id),
    CONSTRAINT uq_claims_audit_id_position UNIQUE (audit_id, position),
    CONSTRAINT ck_claims_place CHECK (position >= 0 AND part >= 0),
    CONSTRAINT ck_claims_span CHECK (0 <= span_start AND span_start <= span_end),
    CONSTRAINT ck_claims_antecedent_whole
        CHECK ((antecedent_start IS NULL) = (antecedent_end IS NULL)),
    CONSTRAINT ck_claims_verified_whole
        CHECK (num_nulls(verified_text, verdict, score, entailment, entailment_span,
            contradiction, contradiction_span, checked_spans) IN (0, 8)),
    CONSTRAINT ck_claims_probabilities CHECK (entailment BETWEEN 0 AND 1
        AND contradiction BETWEEN 0 AND 1),
    CONSTRAINT ck_claims_score_range CHECK (score BETWEEN -1 AND 1),
    CONSTRAINT fk_claims_audit_id
        FOREIGN KEY(audit_id) REFERENCES halldetect.audits (id) ON DELETE CASCADE,
    CONSTRAINT ck_claims_origin CHECK (origin IN ('llm', 'sentence')),
    CONSTRAINT ck_claims_verdict
        CHECK (verdict IN ('supported', 'contradicted', 'unsupported'))
);

CREATE TABLE halldetect.extractions (
    audit_id BIGINT NOT NULL,
    model_id BIGINT NOT NULL,
    mode VARCHAR(32) NOT NULL,
    claims INTEGER NOT NULL,
    rejected JSONB NOT NULL,
    unaudited JSONB NOT NULL,
    generations JSONB NOT NULL,
    CONSTRAINT pk_extractions PRIMARY KEY (audit_id),
    CONSTRAINT ck_extractions_lists CHECK (jsonb_typeof(rejected) = 'array'
        AND jsonb_typeof(unaudited) = 'array' AND jsonb_typeof(generations) = 'array'),
    CONSTRAINT fk_extractions_audit_id
        FOREIGN KEY(audit_id) REFERENCES halldetect.audits (id) ON DELETE CASCADE,
    CONSTRAINT fk_extractions_model_id FOREIGN KEY(model_id) REFERENCES halldetect.models (id),
    CONSTRAINT ck_extractions_mode CHECK (mode IN ('covered', 'paper'))
);

CREATE TABLE halldetect.verifications (
    audit_id BIGINT NOT NULL,
    model_id BIGINT NOT NULL,
    span_table_id BIGINT NOT NULL,
    preselected_spans INTEGER,
    warnings TEXT[] NOT NULL,
    CONSTRAINT pk_verifications PRIMARY KEY (audit_id),
    CONSTRAINT fk_verifications_audit_id
        FOREIGN KEY(audit_id) REFERENCES halldetect.audits (id) ON DELETE CASCADE,
    CONSTRAINT fk_verifications_model_id
        FOREIGN KEY(model_id) REFERENCES halldetect.models (id),
    CONSTRAINT fk_verifications_span_table_id
        FOREIGN KEY(span_table_id) REFERENCES halldetect.span_tables (id)
);

CREATE INDEX ix_verifications_span_table_id
    ON halldetect.verifications (span_table_id);
"""


def upgrade() -> None:
    """Create the schema and its tables; partitions come with the months that need them."""
    op.execute(_TABLES)


def downgrade() -> None:
    """Remove the schema with all that it holds."""
    op.execute("DROP SCHEMA halldetect CASCADE")
