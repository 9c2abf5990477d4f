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
    with pytest.raises(StackError, match=r"192\.0\.2\.1 .*HALLDETECT_API_HOST and HALLD"):
        port_or_another(8000, "192.0.2.1")


def test_every_part_gets_a_port_of_its_own_and_a_changed_one_is_said(taken):
    addresses = Addresses(load_settings(api_port=taken, flower_port=taken), "secret")
    said = [addresses.settle(part) for part in ("api", "flower")]
    ports = addresses.ports
    assert len(set(ports.values())) == 4
    assert taken not in (ports["api"], ports["flower"])
    assert said == [
        f"port {taken} is for flower: api listens on {ports['api']}",
        f"port {taken} is taken: flower listens on {ports['flower']}",
    ]
    assert addresses.api_url == f"http://127.0.0.1:{ports['api']}"


def test_workers_beyond_the_last_port_get_others_and_are_told_so():
    addresses = Addresses(load_settings(metrics_port=65535), "secret")
    addresses.settle("nli")
    said = addresses.settle("extraction")
    port = addresses.ports["extraction"]
    assert said == f"there is no port 65536: extraction listens on {port}"
    assert port not in (addresses.ports["nli"], 65536)
    assert addresses.settle("extraction") is None
    assert addresses.settle("maintenance").startswith("there is no port 65537: maintenance")


def test_a_port_that_one_of_our_own_parts_has_is_not_told_as_a_strangers():
    port = free_port()
    addresses = Addresses(load_settings(flower_port=port, metrics_port=port), "secret")
    said = addresses.settle("nli")
    assert said == f"port {port} is for flower: nli listens on {addresses.ports['nli']}"


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
