"""Takes what waits through both stages, as the workers do, but in this process."""

from __future__ import annotations

from remembering_model import remembering

from db.claiming import claim_extraction, claim_verification
from db.extractions import save_extraction
from db.leases import begin
from db.line import Stage
from db.models import ModelKind
from db.provenances import model_id
from db.spans import SpanKey
from db.submission import BatchUpload
from db.verifications import save_verification
from halldetect.auditor import decompose_response, encoder_identity
from halldetect.record import make_record
from halldetect.results import score_claims, warnings_of
from halldetect.sources import prepare_source
from halldetect.text.sentences import SPLITTER
from halldetect.verification import VerificationInput, hypotheses_of, verify

SOURCE = "The mill opened in 1900. It closed in 1950 after a fire. Nobody was hurt."


def submit_batch(sessions, *responses, source=SOURCE, **fields):
    """Store responses to one source as a batch and return its id."""
    with (
        sessions.begin() as session,
        BatchUpload(session, default_policy="embedded", max_errors=10) as upload,
    ):
        for line, text in enumerate(responses, start=1):
            record = make_record(source=source, response=text, custom_id=f"r{line}", **fields)
            upload.add(line, record)
        return upload.finish().batch_id


def complete_waiting(sessions, auditor):
    """Extract and verify every audit that waits, with the auditor's models."""
    extractor, options = auditor.extractor, auditor.options
    nli = remembering(auditor.nli)
    spans = SpanKey(SPLITTER, nli.tokenizer.digest, nli.max_tokens)
    with sessions.begin() as session:
        claimed = claim_extraction(session, "test", lease_seconds=600, max_audits=1000)
        extractor_id = model_id(session, ModelKind.EXTRACTOR, extractor.provenance.to_json())
        nli_id = model_id(session, ModelKind.NLI, encoder_identity(nli))
        begin(session, Stage.EXTRACTION, [one.lease for one in claimed])
        for one in claimed:
            save_extraction(
                session,
                one.lease,
                decompose_response(one.response, extractor, nli.tokenizer, options),
                response=one.response,
                mode=options.mode,
                model_id=extractor_id,
            )
        claimed = claim_verification(
            session, "test", lease_seconds=600, max_audits=1000, token_budget=10**9
        )
        begin(session, Stage.VERIFICATION, [one.lease for one in claimed])
        for one in claimed:
            source = prepare_source(one.source, nli, options.max_sentences)
            hypotheses = hypotheses_of(one.claims, one.response, nli)
            [matrix] = verify(
                nli,
                [VerificationInput(source, hypotheses)],
                token_budget=options.token_budget,
                preselected_spans=options.preselected_spans,
            )
            save_verification(
                session,
                one.lease,
                document_id=one.document_id,
                source=source,
                span_key=spans,
                hypotheses=hypotheses,
                matrix=matrix,
                score=score_claims(one.claims, source.library, matrix, one.policy),
                warnings=warnings_of(source, hypotheses),
                model_id=nli_id,
                preselected_spans=options.preselected_spans,
            )
