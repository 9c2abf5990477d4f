import socket

import pytest

from cli.stack.addresses import Ports, choose_ports, flower_url, url_to_reach
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


def test_every_part_gets_a_port_of_its_own_and_a_changed_one_is_said(taken, monkeypatch):
    settings = load_settings(api_port=taken, flower_port=taken)
    ports, messages = choose_ports(settings)
    assert len({ports.postgres, ports.valkey, ports.api, ports.flower}) == 4
    assert taken not in (ports.api, ports.flower)
    assert f"port {taken} is taken: api listens on {ports.api}" in messages
    assert f"port {taken} is taken: flower listens on {ports.flower}" in messages


def test_servers_of_your_own_need_no_port_of_ours(monkeypatch):
    monkeypatch.setattr("cli.stack.ports.is_free", lambda *_: False)
    monkeypatch.setattr("cli.stack.addresses.port_or_another", lambda port, *_, **__: port + 1)
    settings = load_settings(database_url="postgresql://there/a", redis_url="redis://there")
    ports, messages = choose_ports(settings)
    assert ports == Ports(ports.postgres, ports.valkey, 8001, 5556)
    assert not any("postgres" in message or "valkey" in message for message in messages)


@pytest.mark.parametrize(
    ("host", "url"),
    [
        ("127.0.0.1", "http://127.0.0.1:80"),
        ("0.0.0.0", "http://127.0.0.1:80"),
        ("::", "http://127.0.0.1:80"),
        ("::1", "http://[::1]:80"),
        ("box.example", "http://box.example:80"),
    ],
)
def test_the_address_can_be_reached_whatever_the_server_listens_on(host, url):
    assert url_to_reach(host, 80) == url


def test_flowers_address_lets_a_browser_in():
    assert flower_url(5555, "secret") == "http://halldetect:secret@127.0.0.1:5555"
