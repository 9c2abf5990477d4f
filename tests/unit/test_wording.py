import pytest

from halldetect.errors import InputError
from halldetect.settings import load_settings
from halldetect.wording import counted


@pytest.mark.parametrize(
    ("count", "words"), [(0, "0 audits"), (1, "1 audit"), (2, "2 audits"), (2000, "2,000 audits")]
)
def test_numbers_and_nouns_agree(count, words):
    assert counted(count, "audit") == words


def test_a_setting_is_refused_in_the_programs_own_words(monkeypatch):
    monkeypatch.setenv("HALLDETECT_WEBHOOK_ALLOWED_HOSTS", "a b")
    with pytest.raises(InputError, match="_HOSTS: 'a b' is no host, address or network"):
        load_settings()
