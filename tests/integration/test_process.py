"""Audits in a process of their own: what they open, where they connect, how much they hold."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import textwrap

import pytest


def run_program(program, **environment):
    """Run `program`; return what it printed as JSON."""
    kept = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith(("HALLDETECT_", "NLTK_", "HF_"))
    }
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", textwrap.dedent(program)],
        capture_output=True,
        text=True,
        check=False,
        env={**kept, **environment},
    )
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    return json.loads(done.stdout)


@pytest.mark.parametrize("home", ["missing", "empty"])
def test_models_load_offline_only_once_and_leave_the_home_alone(tmp_path, home):
    (tmp_path / "empty").mkdir()
    found = run_program(
        """
        import json, sys
        opened, connected = [], []

        def watch(event, arguments):
            if event == "open":
                opened.append(str(arguments[0]))
            elif event.startswith(("socket.connect", "socket.getaddrinfo")):
                connected.append(event)

        sys.addaudithook(watch)
        import halldetect
        settings = {"extractor": "sentences", "threads": 2}
        source = "The kiln was lit in March. Bread was baked in it."
        first = halldetect.audit(source, "The kiln was lit in March.", **settings)
        loaded = list(opened)
        opened.clear()
        again = halldetect.audit(source, "The kiln was lit in March.", **settings)
        other = halldetect.audit("Ducks sleep.", "Ducks never sleep. They swim.", **settings)
        json.dump(
            {
                "models": [p for p in loaded if "nli-minilm" in p],
                "later": opened,
                "connected": connected,
                "same": first.fedscore == again.fedscore,
                "claims": len(other.claims),
                "heavy": sorted({"torch", "transformers", "llama_cpp"} & set(sys.modules)),
            },
            sys.stdout,
        )
        """,
        HOME=str(tmp_path / home),
        XDG_CACHE_HOME=str(tmp_path / home / "cache"),
    )
    # Native code is seen by no audit hook: a library that reports home would leave its traces.
    assert [path.name for path in tmp_path.rglob("*")] == ["empty"]
    assert found["models"]
    assert found["later"] == []
    assert found["connected"] == []
    assert found["same"]
    assert found["claims"] == 2
    assert found["heavy"] == []


LONG_SOURCE = """
import json, random, resource, sys
from pathlib import Path
import halldetect
choose = random.Random(7)
syllables = [consonant + vowel for consonant in "bdfglmnprst" for vowel in "aeiou"]
words = ["".join(choose.choices(syllables, k=choose.randint(1, 4))) for _ in range(3000)]
sentences, size = [], 0
while size < 1_000_000:
    sentence = " ".join(choose.choices(words, k=choose.randint(5, 25))).capitalize() + "."
    sentences.append(sentence)
    size += len(sentence) + 1
facts = ["The turbine at Lund makes 41 megawatts.", "Anna Berg opened the museum in 1911."]
sentences[len(sentences) // 3] = facts[0]
sentences[-5] = facts[1]
source = " ".join(sentences)
result = halldetect.audit(
    source, " ".join(facts), extractor="sentences", preselected_spans=20, threads=2
)
claims = [
    {
        "start": claim.entailment.span.start,
        "end": claim.entailment.span.end,
        "place": source.index(fact),
        "length": len(fact),
        "is_text": source[claim.entailment.span.start : claim.entailment.span.end]
        == claim.entailment.text,
        "checked": claim.checked_spans,
    }
    for claim, fact in zip(result.claims, facts, strict=True)
]
kilobytes = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
if sys.platform == "linux":  # where that begins with what the parent had
    status = Path("/proc/self/status").read_text().splitlines()
    kilobytes = next(int(row.split()[1]) for row in status if row.startswith("VmHWM"))
json.dump(
    {
        "claims": claims,
        "characters": result.document.characters,
        "spans": len(result.matrix.spans),
        "megabytes": kilobytes / 1024,
    },
    sys.stdout,
)
"""


def test_two_hundred_pages_are_searched_in_bounded_memory():
    found = run_program(LONG_SOURCE)
    assert found["characters"] > 990_000
    assert found["megabytes"] < 2_048
    for claim in found["claims"]:
        assert claim["is_text"]
        assert claim["start"] <= claim["place"]
        assert claim["end"] >= claim["place"] + claim["length"]
        assert 20 <= claim["checked"] < found["spans"] / 10
