import pytest

from cli.demo_command import _tell_other_extractor
from halldetect.settings import ExtractorBackend


@pytest.mark.parametrize(("wanted", "is_told"), [("sentences", False), ("llama", True)])
def test_a_demo_that_runs_with_another_extractor_is_told(make_result, capsys, wanted, is_told):
    results = [make_result(), make_result(models={})]
    _tell_other_extractor(ExtractorBackend(wanted), results)
    assert ("extracts by sentences, not by llama" in capsys.readouterr().err) is is_told
