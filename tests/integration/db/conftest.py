"""Audits in every state, made by the same functions that the workers call."""

from __future__ import annotations

import numpy as np
import pytest
from remembering_model import remembering

from db.claiming import claim_extraction, claim_verification
from db.extractions import save_extraction
from db.leases import begin
from db.line import Stage
from db.models import ModelKind
from db.provenances import model_id
from db.spans import SpanKey
from db.submission import BatchUpload, submit_audit
from db.verifications import save_verification
from halldetect.claims.decompose import decompose
from halldetect.claims.model import ExtractionMode
from halldetect.claims.sentence_extractor import SentenceExtractor
from halldetect.model_loading import load_nli
from halldetect.record import make_record
from halldetect.results import score_claims, warnings_of
from halldetect.settings import Settings
from halldetect.sources import prepare_source
from halldetect.verification import VerificationInput, hypotheses_of, verify

SOURCE = "The mill opened in 1900. It closed in 1950 after a fire. Nobody was hurt."
SPANS = SpanKey(splitter="test", tokenizer="test", token_limit=512)


@pytest.fixture(scope="session")
def nli():
    return remembering(load_nli(Settings()))


class Service:
    """The two stages of the service, one audit at a time, in this process."""

    def __init__(self, sessions, nli):
        self.sessions = sessions
        self.nli = nli
        self.extractor = SentenceExtractor()

    def submit(self, *responses, source=SOURCE, batch=True, **fields):
        """Store responses to one source; return their batch's id, or the ids of single audits."""
        records = [
            make_record(source=source, response=text, custom_id=f"r{number}", **fields)
            for number, text in enumerate(responses, start=1)
        ]
        with self.sessions.begin() as session:
            if not batch:
                return [submit_audit(session, record, "embedded") for record in records]
            with BatchUpload(session, default_policy="embedded", max_errors=10) as upload:
                for line, record in enumerate(records, start=1):
                    upload.add(line, record)
                return upload.finish().batch_id

    def claim_extraction(self, owner="extractor", max_audits=100, lease_seconds=60):
        with self.sessions.begin() as session:
            return claim_extraction(
                session, owner, lease_seconds=lease_seconds, max_audits=max_audits
            )

    def claim_verification(
        self, owner="verifier", max_audits=100, token_budget=10**9, lease_seconds=60
    ):
        with self.sessions.begin() as session:
            return claim_verification(
                session,
                owner,
                lease_seconds=lease_seconds,
                max_audits=max_audits,
                token_budget=token_budget,
            )

    def extract(self, claimed):
        decomposition = decompose(
            claimed.response,
            self.extractor,
            count_tokens=lambda text: len(self.nli.tokenizer.encode([text])[0].ids),
        )
        provenance = self.extractor.provenance.to_json()
        with self.sessions.begin() as session:
            begin(session, Stage.EXTRACTION, [claimed.lease])
            save_extraction(
                session,
                claimed.lease,
                decomposition,
                response=claimed.response,
                mode=ExtractionMode.COVERED,
                model_id=model_id(session, ModelKind.EXTRACTOR, provenance),
            )

    def verify(self, claimed, preselected_spans=None):
        source = prepare_source(claimed.source, self.nli, 50_000)
        hypotheses = hypotheses_of(claimed.claims, claimed.response, self.nli)
        matrix = verify(
            self.nli,
            [VerificationInput(source, hypotheses)],
            token_budget=2048,
            preselected_spans=preselected_spans,
        )[0]
        self.save(claimed, source, hypotheses, matrix, preselected_spans)
        return matrix

    def save(self, claimed, source, hypotheses, matrix, preselected_spans=None):
        provenance = {**self.nli.provenance.to_json(), "max_tokens": self.nli.max_tokens}
        with self.sessions.begin() as session:
            begin(session, Stage.VERIFICATION, [claimed.lease])
            save_verification(
                session,
                claimed.lease,
                document_id=claimed.document_id,
                source=source,
                span_key=SPANS,
                hypotheses=hypotheses,
                matrix=matrix,
                score=score_claims(claimed.claims, source.library, matrix, claimed.policy),
                warnings=warnings_of(source, hypotheses),
                model_id=model_id(session, ModelKind.NLI, provenance),
                preselected_spans=preselected_spans,
            )

    def run(self, **options):
        """Take everything that waits through both stages."""
        for claimed in self.claim_extraction():
            self.extract(claimed)
        for claimed in self.claim_verification():
            self.verify(claimed, **options)


@pytest.fixture
def service(sessions, nli):
    return Service(sessions, nli)


@pytest.fixture
def random_matrix():
    """Return the maker of a matrix of true triples, for audits too large for the encoder."""

    def make(claims, spans):
        from halldetect.scoring.matrix import ProbabilityMatrix

        triples = np.random.default_rng(1).dirichlet([1, 1, 1], (claims, spans))
        return ProbabilityMatrix(*np.moveaxis(triples, 2, 0).astype(np.float32))

    return make
