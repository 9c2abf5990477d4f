import pytest

from cli.client.address import api_address
from cli.client.errors import ServiceError
from halldetect.errors import InputError
from halldetect.settings import Settings


@pytest.mark.parametrize(
    ("given", "address"),
    [
        ("http://127.0.0.1:8000", "http://127.0.0.1:8000"),
        ("https://audits.example/halldetect/", "https://audits.example/halldetect"),
    ],
)
def test_the_address_that_is_set_wins(tmp_path, given, address):
    assert api_address(Settings(api_url=given, home=tmp_path)) == address


@pytest.mark.parametrize("given", ["", "audits.example", "ftp://x", "http://", "http://x:99999"])
def test_what_is_no_address_is_refused(tmp_path, given):
    with pytest.raises(InputError, match="HALLDETECT_API_URL"):
        api_address(Settings(api_url=given, home=tmp_path))


def test_without_a_service_it_says_how_to_start_one(tmp_path):
    with pytest.raises(ServiceError, match="start one with `halldetect up`"):
        api_address(Settings(home=tmp_path))


def test_the_stack_that_runs_here_is_found(tmp_path, monkeypatch):
    class Running:
        api_url = "http://127.0.0.1:8123"

    monkeypatch.setattr("cli.stack.run_file.read_running_stack", lambda home: Running)
    assert api_address(Settings(home=tmp_path)) == "http://127.0.0.1:8123"
