import socket

import pytest

from cli.stack.addresses import Addresses
from cli.stack.errors import StackError
from cli.stack.ports import free_port, is_free, port_or_another
from halldetect.settings import load_settings


@pytest.fixture
def taken():
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen()
        yield listener.getsockname()[1]


def test_a_port_with_a_listener_is_not_free(taken):
    assert not is_free(taken)
    assert is_free(free_port())


def test_a_free_port_is_taken_as_wanted():
    port = free_port()
    assert port_or_another(port) == port


def test_another_port_is_chosen_for_one_that_is_taken(taken):
    another = port_or_another(taken)
    assert another != taken
    assert is_free(another)


def test_a_port_promised_to_somebody_else_is_not_chosen():
    port = free_port()
    assert port_or_another(port, except_for=[port]) != port


def test_a_host_that_is_not_ours_is_an_error_that_says_what_to_set():
    with pytest.raises(StackError, match=r"192\.0\.2\.1 .*HALLDETECT_API_HOST"):
        port_or_another(8000, "192.0.2.1")


def test_every_part_gets_a_port_of_its_own_and_a_changed_one_is_said(taken):
    addresses = Addresses(load_settings(api_port=taken, flower_port=taken), "secret")
    said = [addresses.settle(part) for part in ("api", "flower")]
    ports = addresses.ports
    assert len(set(ports.values())) == 4
    assert taken not in (ports["api"], ports["flower"])
    assert said == [
        f"port {taken} is taken: {part} listens on {ports[part]}" for part in ("api", "flower")
    ]
    assert addresses.api_url == f"http://127.0.0.1:{ports['api']}"


def test_a_port_that_is_still_free_stays():
    port = free_port()
    addresses = Addresses(load_settings(api_port=port), "secret")
    assert addresses.settle("api") is None
    assert addresses.settle("api") is None
    assert addresses.ports["api"] == port


@pytest.mark.parametrize(
    ("host", "url"),
    [
        ("127.0.0.1", "http://127.0.0.1:8123"),
        ("0.0.0.0", "http://127.0.0.1:8123"),
        ("::", "http://127.0.0.1:8123"),
        ("::1", "http://[::1]:8123"),
        ("box.example", "http://box.example:8123"),
    ],
)
def test_the_api_can_be_reached_whatever_it_listens_on(host, url):
    assert Addresses(load_settings(api_host=host, api_port=8123), "secret").api_url == url


def test_flowers_address_lets_a_browser_in():
    addresses = Addresses(load_settings(flower_port=5556), "secret")
    assert addresses.flower_url == "http://halldetect:secret@127.0.0.1:5556"
