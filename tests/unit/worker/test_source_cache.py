from __future__ import annotations

from types import SimpleNamespace

import pytest

from halldetect.errors import InputError
from worker import source_cache
from worker.source_cache import SourceCache


@pytest.fixture
def prepared():
    return []


@pytest.fixture
def cache(prepared):
    def prepare(text):
        prepared.append(text)
        if text == "unreadable":
            raise InputError("nothing to read")
        return SimpleNamespace(text=text)

    return SourceCache(prepare)


def test_a_source_is_prepared_once(cache, prepared):
    assert cache.get(1, "one") is cache.get(1, "one")
    assert prepared == ["one"]


def test_the_least_recently_used_source_goes_first(cache, prepared, monkeypatch):
    monkeypatch.setattr(source_cache, "_MOST_SOURCES", 2)
    for number, text in [(1, "one"), (2, "two"), (1, "one"), (3, "three")]:
        cache.get(number, text)
    prepared.clear()
    cache.get(1, "one")
    cache.get(2, "two")
    assert prepared == ["two"]


def test_long_sources_push_others_out_and_are_kept_themselves(cache, prepared, monkeypatch):
    monkeypatch.setattr(source_cache, "_MOST_CHARACTERS", 10)
    cache.get(1, "a" * 6)
    cache.get(2, "b" * 20)
    prepared.clear()
    cache.get(2, "b" * 20)
    cache.get(1, "a" * 6)
    assert prepared == ["a" * 6]
    # The room of what was dropped is free again.
    cache.get(3, "c" * 4)
    prepared.clear()
    cache.get(1, "a" * 6)
    cache.get(3, "c" * 4)
    assert prepared == []


def test_a_source_that_cannot_be_prepared_is_refused_every_time(cache, prepared):
    for _ in range(2):
        with pytest.raises(InputError):
            cache.get(1, "unreadable")
    assert prepared == ["unreadable"] * 2
