"""Judgements: scorings under other policies, rescoring jobs, reviews; and what never changes.

Revision ID: 0002
"""

from __future__ import annotations

from alembic import op

revision = "0002"
down_revision = "0001"
branch_labels = None
depends_on = None

_TABLES = """
CREATE TABLE halldetect.reviews (
    id BIGINT GENERATED ALWAYS AS IDENTITY,
    claim_id BIGINT NOT NULL,
    audit_id BIGINT NOT NULL,
    claim_text TEXT NOT NULL,
    verdict VARCHAR(32) NOT NULL,
    reviewer TEXT NOT NULL,
    reviewer_verdict VARCHAR(32) NOT NULL,
    note TEXT,
    created_at TIMESTAMP WITH TIME ZONE DEFAULT now() NOT NULL,
    CONSTRAINT pk_reviews PRIMARY KEY (id),
    CONSTRAINT ck_reviews_reviewer_length CHECK (length(reviewer) BETWEEN 1 AND 200),
    CONSTRAINT ck_reviews_note_length CHECK (length(note) <= 10000),
    CONSTRAINT ck_reviews_verdict
        CHECK (verdict IN ('supported', 'contradicted', 'unsupported')),
    CONSTRAINT ck_reviews_reviewer_verdict
        CHECK (reviewer_verdict IN ('supported', 'contradicted', 'unsupported'))
);

CREATE INDEX ix_reviews_audit_id
    ON halldetect.reviews (audit_id);

CREATE INDEX ix_reviews_claim_id_reviewer
    ON halldetect.reviews (claim_id, reviewer);

CREATE TABLE halldetect.rescorings (
    id BIGINT GENERATED ALWAYS AS IDENTITY,
    policy_id BIGINT NOT NULL,
    selection JSONB NOT NULL,
    state VARCHAR(32) DEFAULT 'waiting' NOT NULL,
    total INTEGER NOT NULL,
    scored INTEGER DEFAULT 0 NOT NULL,
    present INTEGER DEFAULT 0 NOT NULL,
    skipped INTEGER DEFAULT 0 NOT NULL,
    last_audit_id BIGINT DEFAULT 0 NOT NULL,
    error TEXT,
    created_at TIMESTAMP WITH TIME ZONE DEFAULT now() NOT NULL,
    finished_at TIMESTAMP WITH TIME ZONE,
    CONSTRAINT pk_rescorings PRIMARY KEY (id),
    CONSTRAINT ck_rescorings_selection_object CHECK (jsonb_typeof(selection) = 'object'),
    CONSTRAINT ck_rescorings_counts
        CHECK (least(total, scored, present, skipped, last_audit_id) >= 0),
    CONSTRAINT ck_rescorings_counts_within_total
        CHECK (scored + present + skipped <= total),
    CONSTRAINT ck_rescorings_error_if_failed
        CHECK ((state = 'failed') = (error IS NOT NULL)),
    CONSTRAINT ck_rescorings_finished_if_final
        CHECK ((state IN ('completed', 'failed')) = (finished_at IS NOT NULL)),
    CONSTRAINT fk_rescorings_policy_id FOREIGN KEY(policy_id) REFERENCES halldetect.policies (id),
    CONSTRAINT ck_rescorings_state
        CHECK (state IN ('waiting', 'running', 'completed', 'failed'))
);

CREATE TABLE halldetect.scorings (
    audit_id BIGINT NOT NULL,
    policy_id BIGINT NOT NULL,
    response_score DOUBLE PRECISION,
    label VARCHAR(32),
    deciding_claim INTEGER,
    claim_values DOUBLE PRECISION[] NOT NULL,
    verdicts TEXT[] NOT NULL,
    created_at TIMESTAMP WITH TIME ZONE DEFAULT now() NOT NULL,
    CONSTRAINT pk_scorings PRIMARY KEY (audit_id, policy_id),
    CONSTRAINT ck_scorings_claims CHECK (cardinality(claim_values) = cardinality(verdicts)),
    CONSTRAINT ck_scorings_score_range CHECK (response_score BETWEEN 0 AND 1),
    CONSTRAINT ck_scorings_label_with_score
        CHECK ((response_score IS NULL) = (label IS NULL)),
    CONSTRAINT ck_scorings_score_with_claims
        CHECK ((response_score IS NULL) = (cardinality(claim_values) = 0)),
    CONSTRAINT ck_scorings_verdicts
        CHECK (verdicts <@ ARRAY['supported', 'contradicted', 'unsupported']),
    CONSTRAINT fk_scorings_audit_id
        FOREIGN KEY(audit_id) REFERENCES halldetect.audits (id) ON DELETE CASCADE,
    CONSTRAINT fk_scorings_policy_id FOREIGN KEY(policy_id) REFERENCES halldetect.policies (id),
    CONSTRAINT ck_scorings_label CHECK (label IN ('faithful', 'hallucinated'))
);

CREATE INDEX ix_scorings_policy_id_audit_id
    ON halldetect.scorings (policy_id, audit_id);
"""

# Deleting an audit deletes its scorings; a policy and a review are for ever.
_UNCHANGEABLE = """
CREATE FUNCTION halldetect.refuse_change() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    RAISE EXCEPTION 'rows of %.% never change: store a new one', TG_TABLE_SCHEMA, TG_TABLE_NAME
        USING ERRCODE = 'restrict_violation';
END
$$;

CREATE TRIGGER unchangeable BEFORE UPDATE OR DELETE ON halldetect.policies
    FOR EACH ROW EXECUTE FUNCTION halldetect.refuse_change();

CREATE TRIGGER unchangeable BEFORE UPDATE OR DELETE ON halldetect.reviews
    FOR EACH ROW EXECUTE FUNCTION halldetect.refuse_change();

CREATE FUNCTION halldetect.refuse_truncation() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    RAISE EXCEPTION 'rows of %.% never change: none is ever removed', TG_TABLE_SCHEMA, TG_TABLE_NAME
        USING ERRCODE = 'restrict_violation';
END
$$;

CREATE TRIGGER never_truncated BEFORE TRUNCATE ON halldetect.policies
    FOR EACH STATEMENT EXECUTE FUNCTION halldetect.refuse_truncation();

CREATE TRIGGER never_truncated BEFORE TRUNCATE ON halldetect.reviews
    FOR EACH STATEMENT EXECUTE FUNCTION halldetect.refuse_truncation();

CREATE TRIGGER unchangeable BEFORE UPDATE ON halldetect.scorings
    FOR EACH ROW EXECUTE FUNCTION halldetect.refuse_change();
"""


def upgrade() -> None:
    """Create the tables, and guard what never changes."""
    op.execute(_TABLES)
    op.execute(_UNCHANGEABLE)


def downgrade() -> None:
    """Remove them and the guards."""
    op.execute("DROP TRIGGER unchangeable ON halldetect.policies")
    op.execute("DROP TRIGGER never_truncated ON halldetect.policies")
    op.execute("DROP TABLE halldetect.reviews, halldetect.scorings, halldetect.rescorings")
    op.execute("DROP FUNCTION halldetect.refuse_change(), halldetect.refuse_truncation()")
