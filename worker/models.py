"""The models that a worker's queues need: loaded once, in a thread, and again while they fail.

A worker whose models cannot be loaded stays up, says why, and takes no work.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from dataclasses import dataclass

from db.line import Stage
from db.models import WorkerState
from halldetect.auditor import read_source
from halldetect.claims.extractor import ClaimExtractor
from halldetect.errors import HallDetectError, ModelError
from halldetect.logs import get_logger
from halldetect.model_loading import (
    audit_options,
    load_extractor,
    load_nli,
    load_pair_tokenizer,
)
from halldetect.nli.model import NliModel
from halldetect.nli.pair_tokenizer import PairTokenizer
from halldetect.settings import Settings
from halldetect.sources import premise_room
from worker.probes import encoder_fault
from worker.run import WorkInterrupted
from worker.source_cache import SourceCache

_FIRST_PAUSE_SECONDS = 5.0
_LONGEST_PAUSE_SECONDS = 300.0

_log = get_logger(__name__)


@dataclass(frozen=True, slots=True)
class ExtractionModels:
    """What extraction needs: the extractor, and the encoder's tokenizer without the encoder."""

    extractor: ClaimExtractor
    tokenizer: PairTokenizer


@dataclass(frozen=True, slots=True)
class VerificationModels:
    """What verification needs: the encoder, and sources prepared for it lately."""

    nli: NliModel
    sources: SourceCache


@dataclass(frozen=True, slots=True)
class LoadedModels:
    """Models of the stages that a worker serves; None for the others."""

    extraction: ExtractionModels | None = None
    verification: VerificationModels | None = None

    @property
    def names(self) -> list[str]:
        """Names to show of the models."""
        loaded = []
        if self.extraction is not None:
            loaded.append(self.extraction.extractor.provenance)
        if self.verification is not None:
            loaded.append(self.verification.nli.provenance)
        return [provenance.name for provenance in loaded]


def load_models(
    settings: Settings, stages: frozenset[Stage], check: Callable[[], None]
) -> LoadedModels:
    """Load what `stages` need, and nothing else.

    Parameters
    ----------
    settings : Settings
        Which models.
    stages : frozenset of Stage
        Those that the worker serves.
    check : callable
        Called between the tokens of a long generation; may raise to end it.

    Raises
    ------
    ModelError
        Saying what is missing or broken and what to set.
    """
    # OpenMP's threads spin while they wait, and starve another model on the same cores; read once,
    # when the first library with OpenMP is loaded.
    os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")
    extraction = verification = None
    if Stage.EXTRACTION in stages:
        extraction = ExtractionModels(
            load_extractor(settings, on_token=check), load_pair_tokenizer(settings)
        )
    if Stage.VERIFICATION in stages:
        nli = load_nli(settings)
        _insist_that_it_works(nli)
        premise_room(nli)  # an encoder too short for any source is no audit's fault
        options = audit_options(settings)
        sources = SourceCache(lambda text: read_source(text, nli, options))
        verification = VerificationModels(nli, sources)
    return LoadedModels(extraction, verification)


def _insist_that_it_works(nli: NliModel) -> None:
    """Refuse an encoder that gives no numbers: every audit of a night would fail by it."""
    fault = encoder_fault(nli)
    if fault is not None:
        raise ModelError(
            f"the NLI model {nli.provenance.name} was loaded and does not work: {fault}"
        ) from fault


class WorkerModels:
    """The models of one worker process, and how far they are.

    Parameters
    ----------
    load : callable
        Loads them, or raises what stands in the way.
    on_change : callable
        Called, from the loading thread, when the state has changed.
    """

    def __init__(self, load: Callable[[], LoadedModels], on_change: Callable[[], None]) -> None:
        self._load = load
        self._on_change = on_change
        self._changed = threading.Condition()
        self._stopping = threading.Event()
        self._loaded: LoadedModels | None = None
        self._error: str | None = None

    @property
    def state(self) -> WorkerState:
        """How far the models are."""
        if self._loaded is not None:
            return WorkerState.READY
        return WorkerState.LOADING if self._error is None else WorkerState.FAILED

    @property
    def error(self) -> str | None:
        """Why they cannot be used."""
        return self._error

    @property
    def names(self) -> list[str]:
        """Names of the models that are loaded."""
        loaded = self._loaded
        return [] if loaded is None else loaded.names

    def start(self) -> None:
        """Load in a thread."""
        self._start_loading(0.0)

    def stop(self) -> None:
        """Load no more, and let nobody wait."""
        self._stopping.set()
        with self._changed:
            self._changed.notify_all()

    def wait(self) -> LoadedModels | None:
        """Return the models once they are loaded; None when they cannot be, or on shutdown."""
        with self._changed:
            self._changed.wait_for(
                lambda: self.state is not WorkerState.LOADING or self._stopping.is_set()
            )
            return self._loaded

    def declare_broken(self, error: str) -> None:
        """Drop models that stopped working, and load them again after a pause."""
        _log.error("no work is taken until the models are loaded anew", error=error)
        self._set(None, error)
        self._start_loading(_FIRST_PAUSE_SECONDS)

    def _start_loading(self, pause: float) -> None:
        threading.Thread(
            target=self._load_until_ready, args=(pause,), name="model-loading", daemon=True
        ).start()

    def _load_until_ready(self, pause: float) -> None:
        while not self._stopping.wait(pause):
            try:
                loaded = self._load()
            except WorkInterrupted:  # the worker ends
                return
            except Exception as error:  # whatever it is, the worker stays up and says it
                self._set(None, str(error) or type(error).__name__)
                pause = min(max(2 * pause, _FIRST_PAUSE_SECONDS), _LONGEST_PAUSE_SECONDS)
                _log.error(
                    "the models cannot be loaded",
                    error=self._error,
                    next_try_in_seconds=pause,
                    exc_info=None if isinstance(error, HallDetectError) else error,
                )
            else:
                self._set(loaded, None)
                _log.info("models are ready", models=loaded.names)
                return

    def _set(self, loaded: LoadedModels | None, error: str | None) -> None:
        with self._changed:
            self._loaded, self._error = loaded, error
            self._changed.notify_all()
        self._on_change()
