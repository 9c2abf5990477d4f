"""`halldetect verify`: does a stored audit come out again, with the models that its trail names."""

from __future__ import annotations

import json
import sys
from dataclasses import asdict, dataclass, replace
from typing import Any

from rich.console import Console
from rich.text import Text

from cli.consistency import Mismatch, StoredState, check_stored
from cli.consoles import results_console, tell
from cli.database import open_database
from cli.named_models import differences, load_named_extractor, load_named_nli
from cli.printable import printable
from cli.repetition import (
    RepeatedExtraction,
    RepeatedVerification,
    SpansDiffer,
    repeat_extraction,
    repeat_verification,
)
from db.audits import get_audit
from db.engine import session_factory
from db.readings import StoredReading, stored_reading
from db.trails import StoredAudit, TrailDamaged
from halldetect.auditor import AuditOptions, encoder_identity
from halldetect.claims.extractor import ClaimExtractor
from halldetect.claims.model import ExtractionMode
from halldetect.errors import InputError, ModelError
from halldetect.model_loading import audit_options
from halldetect.nli.model import NliModel
from halldetect.results import extraction_warnings
from halldetect.settings import Settings
from halldetect.trail import Status

_EXIT_REPRODUCED, _EXIT_DIFFERS, _EXIT_MISSING = 0, 1, 3
_CLAIMS_SHOWN = 10


@dataclass(frozen=True, slots=True)
class _Models:
    """The models that a trail names, and why some of them are not here."""

    nli: NliModel | None
    extractor: ClaimExtractor | None
    missing_nli: str | None
    missing_extractor: str | None


@dataclass(frozen=True, slots=True)
class _Report:
    """What came of an audit that was run again; without `audit` its rows could not be read."""

    audit_id: int
    tolerance: float
    audit: StoredAudit | None = None
    trail_fault: str | None = None
    mismatches: tuple[Mismatch, ...] = ()
    verification: RepeatedVerification | None = None
    spans_fault: str | None = None
    extraction: RepeatedExtraction | None = None
    missing_nli: str | None = None
    missing_extractor: str | None = None
    warnings: tuple[str, ...] = ()

    @property
    def is_reproduced(self) -> bool | None:
        """Whether it came out as stored; None when that takes the encoder, which is not here."""
        if self.trail_fault is not None or self.mismatches:
            return False
        if self.missing_nli is not None:
            return None
        return self.verification is not None and self.verification.is_reproduced(self.tolerance)

    @property
    def exit_code(self) -> int:
        if self.is_reproduced is None:
            return _EXIT_MISSING
        return _EXIT_REPRODUCED if self.is_reproduced else _EXIT_DIFFERS


def verify_audit(audit_id: int, settings: Settings, *, tolerance: float, as_json: bool) -> int:
    """Verify an audit's stored claims again, extract its claims again, and compare.

    Parameters
    ----------
    audit_id : int
        Which.
    settings : Settings
        Where the database is, and where models may lie.
    tolerance : float
        Largest difference between two probabilities that counts as none.
    as_json : bool
        Print one JSON object instead of text.

    Returns
    -------
    int
        0 when probabilities, verdicts and label are the same again and all that is stored beside
        them follows from them, 1 when not, 3 when nothing speaks against the trail and the encoder
        that it names is not here. Claims that come out otherwise are told and change no exit code:
        the stored ones were verified.

    Raises
    ------
    InputError
        There is no such audit, or it is not completed.
    UnavailableError
        The database cannot be reached.
    """
    report = _run(audit_id, settings, tolerance)
    if as_json:
        sys.stdout.write(json.dumps(_as_object(report), ensure_ascii=False) + "\n")
    else:
        _print(results_console(), report)
    for missing in (report.missing_nli, report.missing_extractor):
        if missing is not None:
            tell(missing)
    return report.exit_code


def _run(audit_id: int, settings: Settings, tolerance: float) -> _Report:
    report = _Report(audit_id, tolerance)
    try:
        audit, reading = _read(audit_id, settings)
    except TrailDamaged as error:
        return replace(report, trail_fault=str(error))
    report = replace(report, audit=audit)
    state = None
    try:
        state = check_stored(audit, reading)
        report = replace(report, mismatches=state.mismatches)
    except TrailDamaged as error:
        report = replace(report, trail_fault=str(error))
    if reading is None:
        return report
    models = _load(audit, settings)
    options = replace(audit_options(settings), mode=ExtractionMode(audit.extraction_mode or ""))
    return _repeated(report, audit, reading, state, models, options)


def _read(audit_id: int, settings: Settings) -> tuple[StoredAudit, StoredReading | None]:
    with open_database(settings) as engine, session_factory(engine)() as session:
        audit = get_audit(session, audit_id, with_matrix=True)
        reading = stored_reading(session, audit_id)
    if audit is None:
        raise InputError(f"there is no audit {audit_id}")
    if audit.status is not Status.COMPLETED:
        reason = f" ({audit.error})" if audit.error else ""
        raise InputError(f"audit {audit_id} is {audit.status.value}{reason}: nothing to run again")
    return audit, reading


def _load(audit: StoredAudit, settings: Settings) -> _Models:
    """Load what is here of both models, so that all that is missing is told at once."""
    nli = extractor = missing_nli = missing_extractor = None
    try:
        nli = load_named_nli(audit.models["nli"], settings)
    except ModelError as error:
        missing_nli = str(error)
    try:
        extractor = load_named_extractor(audit.models["extractor"], settings)
    except ModelError as error:
        missing_extractor = str(error)
    return _Models(nli, extractor, missing_nli, missing_extractor)


def _repeated(
    report: _Report,
    audit: StoredAudit,
    reading: StoredReading,
    state: StoredState | None,
    models: _Models,
    options: AuditOptions,
) -> _Report:
    """Run what can be run of an audit again; without `state` there is nothing to compare with."""
    report = replace(
        report,
        missing_nli=models.missing_nli,
        missing_extractor=models.missing_extractor,
        warnings=tuple(_warnings(audit, models)),
    )
    if models.nli is None:
        return report
    if models.extractor is not None:
        extraction = repeat_extraction(audit, models.extractor, models.nli.tokenizer, options)
        report = replace(report, extraction=extraction)
    if state is None:
        return report
    try:
        verification = repeat_verification(audit, reading, state, models.nli, options)
    except SpansDiffer as error:
        return replace(report, spans_fault=str(error))
    return replace(report, verification=verification)


def _warnings(audit: StoredAudit, models: _Models) -> list[str]:
    """Say what is not as it was, although the weights are the same."""
    told = []
    if models.nli is not None:
        now = encoder_identity(models.nli)
        told += [f"NLI model: {one}" for one in differences(audit.models["nli"], now)]
    if models.extractor is not None:
        now = models.extractor.provenance.to_json()
        told += [f"extractor: {one}" for one in differences(audit.models["extractor"], now)]
    return told + extraction_warnings(audit.generations)


def _as_object(report: _Report) -> dict[str, Any]:
    verification, extraction = report.verification, report.extraction
    return {
        "audit_id": str(report.audit_id),
        "reproduced": report.is_reproduced,
        "tolerance": report.tolerance,
        "verification": None
        if verification is None
        else {**asdict(verification), "is_consistent": verification.is_consistent},
        "extraction": None
        if extraction is None
        else {**asdict(extraction), "is_same": extraction.is_same},
        "trail_fault": report.trail_fault,
        "mismatches": [asdict(mismatch) for mismatch in report.mismatches],
        "spans_fault": report.spans_fault,
        "missing": [m for m in (report.missing_nli, report.missing_extractor) if m is not None],
        "warnings": list(report.warnings),
        "models": {} if report.audit is None else report.audit.models,
    }


def _print(console: Console, report: _Report) -> None:
    if report.is_reproduced is not None:
        word = ("reproduced", "bold green") if report.is_reproduced else ("differs", "bold red")
        console.print(Text.assemble(f"audit {report.audit_id}: ", word))
    for fault in (report.trail_fault, report.spans_fault):
        if fault is not None:
            console.print(Text(printable(fault)))
    if report.mismatches:
        named = "; ".join(map(_named, report.mismatches))
        console.print(Text(f"stored otherwise than the stored probabilities say: {named}"))
    if report.verification is not None and report.audit is not None:
        _print_verification(console, report.verification, report.audit, report.tolerance)
    if report.extraction is not None:
        _print_extraction(console, report.extraction)
    for warning in report.warnings:
        console.print(Text(f"warning: {printable(warning)}", style="yellow"))


def _named(mismatch: Mismatch) -> str:
    """Name a field and the claims, of which there may be many."""
    if not mismatch.claims:
        return mismatch.field
    shown = ", ".join(map(str, mismatch.claims[:_CLAIMS_SHOWN]))
    more = len(mismatch.claims) - _CLAIMS_SHOWN
    others = f" and {more:,} others" if more > 0 else ""
    return f"{mismatch.field} of claim {shown}{others}"


def _print_verification(
    console: Console, again: RepeatedVerification, audit: StoredAudit, tolerance: float
) -> None:
    console.print(
        f"probabilities: {again.compared:,} compared, largest difference "
        f"{again.largest_difference:.2g} (tolerance {tolerance:g})"
    )
    if again.otherwise_selected:
        console.print(
            f"spans: {again.otherwise_selected:,} pairs of claim and span were checked in one of "
            "the two runs only"
        )
    claims = audit.claims
    console.print(
        f"verdicts: {len(claims) - len(again.changed_verdicts)} of {len(claims)} as stored"
    )
    for number in again.changed_verdicts[:_CLAIMS_SHOWN]:
        console.print(Text(f"  another verdict: {printable(claims[number].text)}"))
    console.print(
        f"score: {_number(again.stored_score)} stored, {_number(again.repeated_score)} now"
    )
    if not again.is_consistent:
        console.print(
            f"the stored probabilities give {_number(again.rescored)}: the trail contradicts itself"
        )


def _print_extraction(console: Console, again: RepeatedExtraction) -> None:
    tokens = f"generated tokens: {again.stored_tokens:,} then, {again.repeated_tokens:,} now"
    if again.is_same:
        console.print(f"claims: the same {again.stored} were extracted again ({tokens})")
        return
    console.print(
        f"claims: {len(again.missing)} of {again.stored} were not extracted again, and "
        f"{len(again.new)} others were ({tokens})"
    )
    for sign, texts in (("then", again.missing), ("now", again.new)):
        for text in texts[:_CLAIMS_SHOWN]:
            console.print(Text(f"  {sign}: {printable(text)}"))


def _number(score: float | None) -> str:
    return "none" if score is None else f"{score:.12g}"
