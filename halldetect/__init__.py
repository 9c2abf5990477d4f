"""Audit a generated answer against its source: claims, evidence, and one FEDscore.

>>> import halldetect
>>> result = halldetect.audit(source, response)  # doctest: +SKIP
>>> result.fedscore, result.label  # doctest: +SKIP

Nothing heavy is imported until it is used.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from halldetect.auditor import Auditor
    from halldetect.record import Record
    from halldetect.trail import AuditResult

__all__ = ["AuditResult", "Auditor", "Record", "audit", "load_auditor"]

_HOMES = {
    "AuditResult": "halldetect.trail",
    "Auditor": "halldetect.auditor",
    "Record": "halldetect.record",
}


def audit(source: str, response: str, **settings: Any) -> AuditResult:
    """Audit one response against its source.

    Parameters
    ----------
    source : str
        The document the response must be true to.
    response : str
        The generated text.
    **settings
        Fields of `halldetect.settings.Settings`, for example ``extractor="sentences"``. Models
        stay loaded for further calls with the same settings.

    Returns
    -------
    AuditResult
        FEDscore, label, claims with verdicts and evidence, and the whole probability matrix.

    Raises
    ------
    InputError
        When source, response or a setting cannot be used.
    ModelError
        When a model is missing or broken.
    """
    from halldetect.record import make_record

    record = make_record(source=source, response=response)
    return load_auditor(**settings).audit(record)


def load_auditor(**settings: Any) -> Auditor:
    """Load the models once and return an auditor for many records.

    Parameters
    ----------
    **settings
        Fields of `halldetect.settings.Settings`; calls with the same settings share the models.

    Raises
    ------
    InputError, ModelError
        When a setting or a model cannot be used.
    """
    from halldetect import model_loading
    from halldetect.settings import load_settings

    return model_loading.load_auditor(load_settings(**settings))


def __getattr__(name: str) -> Any:
    if name in _HOMES:
        from importlib import import_module

        return getattr(import_module(_HOMES[name]), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
