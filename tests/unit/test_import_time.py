from __future__ import annotations

import subprocess
import sys

import pytest

HEAVY = [
    *("numpy", "pydantic", "pydantic_settings", "nltk", "onnxruntime", "torch"),
    *("transformers", "tokenizers", "llama_cpp", "asyncio"),
]


@pytest.mark.parametrize("statement", ["import halldetect", "from halldetect import audit"])
def test_importing_the_package_loads_nothing_heavy(statement):
    program = f"import sys; {statement}; print(sorted(set(sys.modules) & set({HEAVY})))"
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == "[]"
    assert done.stderr == ""


def test_every_public_name_resolves():
    import halldetect

    for name in halldetect.__all__:
        assert getattr(halldetect, name) is not None
    with pytest.raises(AttributeError, match="no attribute 'audits'"):
        _ = halldetect.audits
