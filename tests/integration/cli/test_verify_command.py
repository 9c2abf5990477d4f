import json
import shutil
from types import SimpleNamespace

import pytest
from sqlalchemy import text
from stored_audits import complete_waiting, submit_batch

from cli.verify_command import verify_audit
from halldetect.auditor import AuditOptions
from halldetect.claims.extractor import Extraction
from halldetect.claims.model import FinishReason
from halldetect.errors import InputError
from halldetect.model_loading import BUNDLED_NLI
from halldetect.provenance import ModelProvenance

RESPONSE = "The mill opened in 1900. A dragon lives in it."


@pytest.fixture
def run(settings, capsys):
    """Verifies audit 1 and returns the exit code and what was printed as JSON."""

    def verify(tolerance=1e-5, audit_id=1, **changed):
        code = verify_audit(
            audit_id, settings.model_copy(update=changed), tolerance=tolerance, as_json=True
        )
        return code, json.loads(capsys.readouterr().out)

    return verify


@pytest.fixture
def change(sessions):
    def execute(statement):
        with sessions.begin() as session:
            session.execute(text(statement))

    return execute


def test_an_audit_comes_out_again(store, run):
    store(RESPONSE)
    code, report = run()
    assert code == 0
    assert report["reproduced"] is True
    again = report["verification"]
    assert again["compared"] == 2 * 5 * 3
    assert again["largest_difference"] <= 1e-6
    assert again["rescored"] == pytest.approx(again["stored_score"], abs=1e-12)
    assert again["changed_verdicts"] == []
    assert report["extraction"]["is_same"] is True
    assert report["missing"] == report["warnings"] == []


def test_the_text_says_the_same(store, settings, capsys):
    store(RESPONSE)
    assert verify_audit(1, settings, tolerance=1e-5, as_json=False) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "audit 1: reproduced"
    assert lines[1].startswith("probabilities: 30 compared, largest difference ")
    assert lines[2] == "verdicts: 2 of 2 as stored"
    assert lines[4] == ("claims: the same 2 were extracted again (generated tokens: 0 then, 0 now)")


def test_without_claims_there_is_nothing_to_differ(store, run):
    store("Thanks!")
    code, report = run()
    assert code == 0
    assert report["verification"]["compared"] == 0
    assert report["verification"]["stored_score"] is None


def test_preselected_spans_are_selected_again(sessions, make_auditor, run):
    submit_batch(sessions, RESPONSE, source="The mill opened in 1900. " + "Rain fell. " * 30)
    complete_waiting(sessions, make_auditor(preselected_spans=3))
    code, report = run()
    assert code == 0
    again = report["verification"]
    assert again["otherwise_selected"] == 0
    with sessions() as session:
        checked = session.scalar(text("SELECT sum(checked_spans) FROM halldetect.claims"))
    assert again["compared"] == 3 * checked
    assert checked < 2 * 31


def test_antecedents_are_verified_as_they_were(store, run):
    store("The mill opened in 1900. It closed in 1950.")
    code, report = run()
    assert code == 0
    assert report["verification"]["largest_difference"] <= 1e-6


def test_a_changed_probability_is_found(store, run, change):
    store(RESPONSE)
    change(
        "UPDATE halldetect.probabilities SET entailment[2] = entailment[2] + 0.001 * "
        "(CASE WHEN entailment[2] > 0.5 THEN -1 ELSE 1 END), neutral[2] = neutral[2] - 0.001 * "
        "(CASE WHEN entailment[2] > 0.5 THEN -1 ELSE 1 END) WHERE position = 0"
    )
    code, report = run()
    assert code == 1
    assert report["reproduced"] is False
    assert report["verification"]["largest_difference"] == pytest.approx(1e-3, rel=1e-3)
    assert run(tolerance=0.01)[1]["verification"]["changed_verdicts"] == []


def test_a_changed_score_or_verdict_is_found_at_any_tolerance(store, run, change):
    store(RESPONSE)
    change("UPDATE halldetect.audits SET fedscore = 0.5")
    code, report = run(tolerance=1.0)
    assert code == 1
    assert report["verification"]["is_consistent"] is False
    assert report["verification"]["rescored"] == report["verification"]["repeated_score"]
    change("UPDATE halldetect.claims SET verdict = 'contradicted' WHERE position = 0")
    assert run(tolerance=1.0)[1]["verification"]["changed_verdicts"] == [0]


def test_the_text_shows_what_differs(store, settings, change, capsys):
    store(RESPONSE)
    change("UPDATE halldetect.audits SET fedscore = 0.5")
    change("UPDATE halldetect.claims SET verdict = 'contradicted' WHERE position = 0")
    change("UPDATE halldetect.claims SET text = 'A \x1b[31mdragon sings.' WHERE position = 1")
    assert verify_audit(1, settings, tolerance=1e-5, as_json=False) == 1
    output = capsys.readouterr().out
    assert "audit 1: differs" in output
    assert "another verdict: The mill opened in 1900." in output
    assert "the trail contradicts itself" in output
    assert "1 of 2 were not extracted again, and 1 others were" in output
    assert "then: A \\x1b[31mdragon sings." in output
    assert "now: A dragon lives in it." in output


def test_other_claims_are_told_and_change_no_exit_code(store, run, change):
    store(RESPONSE)
    change("UPDATE halldetect.claims SET text = 'A dragon sings.' WHERE position = 1")
    code, report = run()
    assert code == 0
    assert report["extraction"]["is_same"] is False
    assert report["extraction"]["missing"] == ["A dragon sings."]
    assert report["extraction"]["new"] == ["A dragon lives in it."]


NOT_ALL = "array_fill(NULL::real, ARRAY[cardinality(entailment)])"


@pytest.mark.parametrize(
    ("statement", "fault"),
    [
        ("DELETE FROM halldetect.probabilities WHERE position = 1", "2 claims and probabilities"),
        ("DELETE FROM halldetect.probabilities", "2 claims and probabilities of 0"),
        ("DELETE FROM halldetect.claims WHERE position = 1", "1 claims and probabilities of 2"),
        (
            "UPDATE halldetect.probabilities SET neutral[2] = 0.9, entailment[2] = 0.9"
            " WHERE position = 1",
            "audit 2, claim 1, span 1: E, N, C = (0.8",
        ),
        (
            f"UPDATE halldetect.probabilities SET entailment = {NOT_ALL}, neutral = {NOT_ALL},"
            f" contradiction = {NOT_ALL} WHERE position = 1",
            "audit 2, claim 1 was scored against no span",
        ),
        (
            "UPDATE halldetect.probabilities SET neutral = neutral[2\\:], entailment ="
            " entailment[2\\:], contradiction = contradiction[2\\:] WHERE position = 1",
            "audit 2, claim 1 has probabilities of 4 spans, and its source has 5",
        ),
        (
            "UPDATE halldetect.claims SET entailment_span = 99 WHERE position = 1",
            "audit 2, claim 1: entailment_span is 99, and the source has 5 spans",
        ),
        (
            "UPDATE halldetect.claims SET contradiction_span = -1 WHERE position = 1",
            "audit 2, claim 1: contradiction_span is -1",
        ),
        (
            "UPDATE halldetect.claims SET verified_text = NULL, verdict = NULL, score = NULL,"
            " entailment = NULL, entailment_span = NULL, contradiction = NULL,"
            " contradiction_span = NULL, checked_spans = NULL WHERE position = 1",
            "audit 2, claim 1: entailment_span is None",
        ),
        ("UPDATE halldetect.span_tables SET chunk_spans[1] = 99", "spans of its source"),
        (
            "UPDATE halldetect.documents SET text = replace(text, '1900', '1901')",
            "audit 2: its source is not the text of the stored SHA-256",
        ),
        ("UPDATE halldetect.verifications SET preselected_spans = 0", "preselected_spans is 0"),
        ("DELETE FROM halldetect.verifications", "its verification is not stored"),
        ("DELETE FROM halldetect.extractions", "its extraction is not stored"),
        (
            "UPDATE halldetect.extractions SET rejected = '[1]'",
            "audit 2: rejected.0 cannot be what is stored",
        ),
    ],
)
def test_a_damaged_trail_differs_and_says_where(
    store, run, change, settings, capsys, statement, fault
):
    store("Thanks!")
    store(RESPONSE)
    change(statement)
    code, report = run(audit_id=2)
    assert code == 1
    assert report["audit_id"] == "2"
    assert report["reproduced"] is False
    assert fault in report["trail_fault"]
    assert "audit 0" not in report["trail_fault"]
    assert report["verification"] is None
    assert verify_audit(2, settings, tolerance=1.0, as_json=False) == 1
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "audit 2: differs"
    assert fault in " ".join(lines[1:])


@pytest.mark.parametrize(
    ("table", "assignment", "field"),
    [
        ("claims", "score = score - 0.001", "score"),
        ("claims", "entailment = entailment / 2", "entailment"),
        ("claims", "entailment_span = (entailment_span + 1) % 5", "entailment_span"),
        ("claims", "contradiction = contradiction / 2", "contradiction"),
        ("claims", "contradiction_span = (contradiction_span + 1) % 5", "contradiction_span"),
        ("claims", "checked_spans = checked_spans - 1", "checked_spans"),
        (
            "claims",
            "verdict = CASE verdict WHEN 'contradicted' THEN 'supported' ELSE 'contradicted' END",
            "verdict",
        ),
        ("audits", "supported = supported + 1", "supported"),
        ("audits", "contradicted = contradicted + 1", "contradicted"),
        ("audits", "unsupported = unsupported + 1", "unsupported"),
        ("audits", "deciding_claim = 1 - deciding_claim", "deciding_claim"),
        ("audits", "deciding_claim = NULL", "deciding_claim"),
        ("audits", "fedscore = 1 - fedscore", "fedscore"),
        (
            "audits",
            "label = CASE label WHEN 'faithful' THEN 'hallucinated' ELSE 'faithful' END",
            "label",
        ),
    ],
)
def test_what_stands_beside_the_probabilities_must_follow_from_them(
    store, run, change, settings, capsys, table, assignment, field
):
    store(RESPONSE)
    is_of_claim = table == "claims"
    where = " WHERE position = 1" if is_of_claim else ""
    change(f"UPDATE halldetect.{table} SET {assignment}{where}")
    code, report = run(tolerance=1.0)
    assert code == 1
    assert report["reproduced"] is False
    assert report["mismatches"] == [{"field": field, "claims": [1] if is_of_claim else []}]
    assert verify_audit(1, settings, tolerance=1.0, as_json=False) == 1
    output = capsys.readouterr().out
    assert "audit 1: differs" in output
    assert field + (" of claim 1" if is_of_claim else "") in output


def test_many_claims_at_fault_are_counted(store, settings, change, capsys):
    store(" ".join(f"Mill {number} opened in 1900." for number in range(12)))
    change("UPDATE halldetect.claims SET checked_spans = 1")
    assert verify_audit(1, settings, tolerance=1.0, as_json=False) == 1
    named = "checked_spans of claim 0, 1, 2, 3, 4, 5, 6, 7, 8, 9 and 2 others"
    assert named in " ".join(capsys.readouterr().out.split())


def test_without_the_encoder_the_trail_is_still_compared_with_itself(store, run, change):
    store(RESPONSE)
    change(
        "UPDATE halldetect.models SET provenance = jsonb_set(provenance, '{revision}',"
        " '\"sha256:0123\"') WHERE kind = 'nli'"
    )
    change("UPDATE halldetect.claims SET score = 0 WHERE position = 0")
    code, report = run()
    assert code == 1
    assert report["reproduced"] is False
    assert report["mismatches"] == [{"field": "score", "claims": [0]}]
    assert "nli-minilm" in report["missing"][0]


def test_other_spans_cannot_be_compared(store, run, change):
    store(RESPONSE)
    change("UPDATE halldetect.span_tables SET starts[2] = starts[2] + 1, splitter = 'older'")
    code, report = run()
    assert code == 1
    assert report["verification"] is None
    assert "sentence splitter 'older' then" in report["spans_fault"]


def test_an_encoder_that_is_not_here_is_named_exactly(store, run, change, capsys):
    store(RESPONSE)
    change(
        "UPDATE halldetect.models SET provenance = jsonb_set(provenance, '{revision}',"
        " '\"sha256:0123\"') WHERE kind = 'nli'"
    )
    code, report = run()
    assert code == 3
    assert report["reproduced"] is report["verification"] is None
    [missing] = report["missing"]
    assert "nli-minilm/model.onnx (onnx, float32, cpu, sha256:0123)" in missing
    assert f"{BUNDLED_NLI} has sha256:" in missing
    assert "HALLDETECT_NLI_MODEL" in missing


@pytest.mark.parametrize(
    ("provenance", "told"),
    [
        ({"backend": "tensorrt"}, "this version has no such backend"),
        ({"dtype": "float8"}, "this version has no such form"),
        (
            {"backend": "torch", "name": "owner/model", "revision": "abc"},
            "set HALLDETECT_NLI_MODEL=owner/model",
        ),
        ({"backend": "torch", "dtype": "float16", "device": "cuda:7"}, "cuda:7"),
    ],
)
def test_what_else_is_missing_of_an_encoder_is_told(store, run, change, provenance, told):
    store(RESPONSE)
    change(
        "UPDATE halldetect.models SET provenance = provenance ||"
        f" '{json.dumps(provenance)}' WHERE kind = 'nli'".replace(":", "\\:")
    )
    code, report = run()
    assert code == 3
    assert told in report["missing"][0]


def test_a_moved_encoder_is_known_by_its_digest(store, run, tmp_path):
    store(RESPONSE)
    moved = tmp_path / "elsewhere"
    moved.mkdir()
    for file in BUNDLED_NLI.iterdir():
        shutil.copy(file, moved / file.name)
    code, report = run(nli_model=str(moved))
    assert code == 0
    assert report["warnings"] == [
        "NLI model: name: nli-minilm/model.onnx then, elsewhere/model.onnx now"
    ]


def test_settings_of_another_encoder_do_not_mislead_it(store, run, tmp_path):
    store(RESPONSE)
    assert run(nli_model=str(tmp_path), profile="paper")[0] == 0


def test_other_libraries_are_a_warning(store, run, change):
    store(RESPONSE)
    change(
        "UPDATE halldetect.models SET provenance = jsonb_set(provenance,"
        " '{libraries,onnxruntime}', '\"0.1\"') WHERE kind = 'nli'"
    )
    code, report = run()
    assert code == 0
    assert report["warnings"][0].startswith("NLI model: onnxruntime: 0.1 then, ")


class Parrot:
    """An extractor of a backend that has a file."""

    provenance = ModelProvenance("parrot.gguf", "llama", "sha256:77", "Q4_1", "cpu")

    def extract(self, text, max_claims, ends_at):
        return Extraction("The mill opened in 1900.", FinishReason.STOP, 9, 7)


def test_without_the_extractor_the_stored_claims_are_verified(sessions, auditor, run):
    submit_batch(sessions, RESPONSE)
    models = SimpleNamespace(extractor=Parrot(), nli=auditor.nli, options=AuditOptions())
    complete_waiting(sessions, models)
    code, report = run()
    assert code == 0
    assert report["extraction"] is None
    [missing] = report["missing"]
    assert "the extractor parrot.gguf (llama, Q4_1, cpu, sha256:77): it is not here" in missing
    assert "HALLDETECT_EXTRACTOR_MODEL" in missing


def test_only_a_completed_audit_can_be_run_again(sessions, settings, change):
    submit_batch(sessions, RESPONSE)
    with pytest.raises(InputError, match="audit 1 is queued"):
        verify_audit(1, settings, tolerance=0.0, as_json=False)
    change("UPDATE halldetect.audits SET status='failed', error='too long', finished_at=now()")
    with pytest.raises(InputError, match=r"audit 1 is failed \(too long\)"):
        verify_audit(1, settings, tolerance=0.0, as_json=False)
    with pytest.raises(InputError, match="there is no audit 9"):
        verify_audit(9, settings, tolerance=0.0, as_json=False)
