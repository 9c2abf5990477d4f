"""What is stored of audits: their rows of every table."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from sqlalchemy import select, tuple_
from sqlalchemy.orm import Session, aliased

from db.models import (
    Audit,
    Claim,
    Document,
    Extraction,
    Model,
    PolicyVersion,
    Probability,
    SpanTable,
    Verification,
)


@dataclass(frozen=True, slots=True)
class AuditRows:
    """What there is one row of, of one audit."""

    audit: Audit
    document: Document
    policy: PolicyVersion
    extraction: Extraction | None
    extractor: Model | None
    verification: Verification | None
    nli: Model | None
    span_table: SpanTable | None


def audit_rows(session: Session, audit_ids: Sequence[int]) -> dict[int, AuditRows]:
    """Read audits with all that there is one row of, by id."""
    extractor_model, nli_model = aliased(Model), aliased(Model)
    statement = (
        select(
            Audit,
            Document,
            PolicyVersion,
            Extraction,
            extractor_model,
            Verification,
            nli_model,
            SpanTable,
        )
        .join(Document, Document.id == Audit.document_id)
        .join(PolicyVersion, PolicyVersion.id == Audit.policy_id)
        .outerjoin(Extraction, Extraction.audit_id == Audit.id)
        .outerjoin(extractor_model, extractor_model.id == Extraction.model_id)
        .outerjoin(Verification, Verification.audit_id == Audit.id)
        .outerjoin(nli_model, nli_model.id == Verification.model_id)
        .outerjoin(SpanTable, SpanTable.id == Verification.span_table_id)
        .where(Audit.id.in_(audit_ids))
        .execution_options(populate_existing=True)
    )
    return {row[0].id: AuditRows(*row) for row in session.execute(statement)}


def claims_of(session: Session, audit_ids: Sequence[int]) -> Mapping[int, list[Claim]]:
    """Read the claims of audits in their order; without any an audit has an empty list."""
    found: defaultdict[int, list[Claim]] = defaultdict(list)
    statement = (
        select(Claim).where(Claim.audit_id.in_(audit_ids)).order_by(Claim.audit_id, Claim.position)
    )
    for claim in session.scalars(statement):
        found[claim.audit_id].append(claim)
    return found


def probabilities_of(session: Session, audits: Iterable[Audit]) -> Mapping[int, list[Probability]]:
    """Read the probabilities of audits, in the order of their claims."""
    found: defaultdict[int, list[Probability]] = defaultdict(list)
    keys = [(audit.month, audit.id) for audit in audits]
    statement = (
        select(Probability)
        .where(
            Probability.month.in_({month for month, _ in keys}),
            tuple_(Probability.month, Probability.audit_id).in_(keys),
        )
        .order_by(Probability.audit_id, Probability.position)
    )
    for row in session.scalars(statement):
        found[row.audit_id].append(row)
    return found
