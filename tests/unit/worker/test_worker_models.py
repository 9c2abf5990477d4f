from __future__ import annotations

import threading

import numpy as np
import pytest

from db.line import Stage
from db.models import WorkerState
from halldetect.errors import ModelError
from halldetect.settings import Settings
from worker import models as models_module
from worker.models import LoadedModels, WorkerModels, load_models

READY = LoadedModels()


class Loader:
    """Fails as often as it is told to, and then loads."""

    def __init__(self, *errors):
        self.errors = list(errors)
        self.calls = 0

    def __call__(self):
        self.calls += 1
        if self.errors:
            raise self.errors.pop(0)
        return READY


class Changes:
    """Collects the states that were reported, and waits for one."""

    def __init__(self):
        self.models = None
        self.states = []
        self._more = threading.Condition()

    def __call__(self):
        with self._more:
            self.states.append((self.models.state, self.models.error))
            self._more.notify_all()

    def wait_for(self, state):
        with self._more:
            assert self._more.wait_for(
                lambda: any(seen is state for seen, _ in self.states), timeout=30
            )


@pytest.fixture
def start(monkeypatch):
    monkeypatch.setattr(models_module, "_FIRST_PAUSE_SECONDS", 0.01)
    started = []

    def start(load):
        changes = Changes()
        changes.models = WorkerModels(load, changes)
        changes.models.start()
        started.append(changes.models)
        return changes.models, changes

    yield start
    for models in started:
        models.stop()


def test_an_encoder_that_gives_no_numbers_is_not_taken(marker_model, monkeypatch):
    monkeypatch.setattr(models_module, "load_nli", lambda settings: marker_model)
    stages = frozenset([Stage.VERIFICATION])
    assert load_models(Settings(), stages, lambda: None).verification.nli is marker_model
    whole = marker_model.logits
    monkeypatch.setattr(marker_model, "logits", lambda batch: np.nan * whole(batch))
    with pytest.raises(ModelError, match=r"was loaded and does not work: .* not finite"):
        load_models(Settings(), stages, lambda: None)


def test_models_are_waited_for(start):
    models, changes = start(Loader())
    assert models.wait() is READY
    assert (models.state, models.error) == (WorkerState.READY, None)
    changes.wait_for(WorkerState.READY)


def test_a_load_that_fails_is_said_and_tried_again(start):
    loader = Loader(ModelError("no such folder; set it"), RuntimeError(), OSError("gone"))
    models, changes = start(loader)
    changes.wait_for(WorkerState.READY)
    assert models.wait() is READY
    assert changes.states == [
        (WorkerState.FAILED, "no such folder; set it"),
        (WorkerState.FAILED, "RuntimeError"),
        (WorkerState.FAILED, "gone"),
        (WorkerState.READY, None),
    ]


def test_a_worker_without_models_takes_no_work(start, monkeypatch):
    monkeypatch.setattr(models_module, "_FIRST_PAUSE_SECONDS", 3600.0)
    models, changes = start(Loader(ModelError("no such folder")))
    changes.wait_for(WorkerState.FAILED)
    assert models.wait() is None
    assert models.names == []


def test_pauses_between_loads_grow_up_to_a_limit(monkeypatch):
    pauses = []

    class Stopping:
        def wait(self, pause):
            pauses.append(pause)
            return len(pauses) == 10

    models = WorkerModels(Loader(*[OSError("gone")] * 10), lambda: None)
    monkeypatch.setattr(models, "_stopping", Stopping())
    models._load_until_ready(0.0)
    assert pauses == [0.0, 5.0, 10.0, 20.0, 40.0, 80.0, 160.0, 300.0, 300.0, 300.0]


def test_a_broken_model_is_loaded_again(start):
    loader = Loader()
    models, changes = start(loader)
    changes.wait_for(WorkerState.READY)
    changes.states.clear()
    models.declare_broken("the device is gone")
    changes.wait_for(WorkerState.READY)
    assert changes.states[0] == (WorkerState.FAILED, "the device is gone")
    assert loader.calls == 2
    assert models.wait() is READY


def test_nobody_waits_for_models_of_a_worker_that_stops(start):
    release = threading.Event()
    models, _ = start(lambda: READY if release.wait() else None)
    assert models.state is WorkerState.LOADING
    models.stop()
    assert models.wait() is None
    release.set()
