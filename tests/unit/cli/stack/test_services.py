import os
import socket
import subprocess
from types import SimpleNamespace

import pytest

from cli.stack.addresses import Addresses
from cli.stack.home import Home
from cli.stack.ports import free_port, is_free
from cli.stack.services import Services
from halldetect.settings import load_settings


class NobodyReported:
    def worker_is_ready(self, pid):
        return False


@pytest.fixture
def make_services(tmp_path, monkeypatch):
    for name in [name for name in os.environ if name.startswith("HALLDETECT_")]:
        monkeypatch.delenv(name)

    def make(extraction_workers=1, nli_workers=1, **settings):
        chosen = load_settings(**settings)
        return Services(
            home=Home(tmp_path),
            settings=chosen,
            addresses=Addresses(chosen, "flowersecret"),
            servers=SimpleNamespace(
                database_url="postgresql://halldetect:dbsecret@127.0.0.1:1/halldetect",
                redis_url="redis://:redissecret@127.0.0.1:2/0",
            ),
            extraction_workers=extraction_workers,
            nli_workers=nli_workers,
            observer=NobodyReported(),
        )

    return make


@pytest.fixture
def launched(monkeypatch):
    """What would be started: name of the log to command and environment."""
    commands = {}

    def spawn(command, *, log, environment, folder):
        commands[log.stem] = (list(command), environment)

    monkeypatch.setattr("cli.stack.services.spawn", spawn)
    return commands


def launch_all(services):
    for plan in [*services.first(), *services.later()]:
        plan.before_launch()
        plan.launch()


def test_every_queue_has_a_worker_and_the_rest_is_there(make_services, launched):
    launch_all(make_services())
    assert set(launched) == {"api", "extraction", "nli", "maintenance", "beat", "flower"}
    for queue in ("extraction", "nli", "maintenance"):
        command, _ = launched[queue]
        assert f"--queues={queue}" in command
        assert f"--hostname={queue}@%h" in command
        assert {"--pool=threads", "--concurrency=1"} <= set(command)


def test_more_workers_have_names_of_their_own(make_services, launched):
    launch_all(make_services(extraction_workers=2, nli_workers=3))
    assert {name for name in launched if name.startswith("nli")} == {"nli", "nli-2", "nli-3"}
    assert {name for name in launched if name.startswith("extr")} == {"extraction", "extraction-2"}
    assert "--queues=nli" in launched["nli-3"][0]
    assert "--hostname=nli-3@%h" in launched["nli-3"][0]


def test_the_users_own_api_key_is_not_handed_to_the_service(make_services, launched, monkeypatch):
    monkeypatch.setenv("HALLDETECT_API_KEY", "hd_mine")
    launch_all(make_services(api_keys_required=True))
    for _, environment in launched.values():
        assert "HALLDETECT_API_KEY" not in environment
        assert environment["HALLDETECT_API_KEYS_REQUIRED"] == "True"


def test_no_password_is_in_an_argument_for_everybody_to_see(make_services, launched):
    launch_all(make_services())
    for command, _ in launched.values():
        assert "secret" not in " ".join(command)


def test_the_children_read_the_settings_that_were_chosen(make_services, launched, monkeypatch):
    services = make_services(
        extractor="sentences",
        nli_labels={"entailment": "yes", "neutral": "maybe", "contradiction": "no"},
        threads=2,
        api_host="127.0.0.2",
    )
    launch_all(services)
    _, environment = launched["nli"]
    for name in list(os.environ):
        monkeypatch.delenv(name)
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    read = load_settings()
    ours = {"api_port", "database_url", "redis_url", "metrics_port"}
    assert read.model_dump(exclude=ours) == services.settings.model_dump(exclude=ours)
    assert read.database_url.get_secret_value() == services.servers.database_url
    assert read.redis_url.get_secret_value() == services.servers.redis_url
    assert read.api_port == services.addresses.ports["api"]


@pytest.mark.parametrize(
    ("host", "reached"),
    [(None, "127.0.0.1"), ("127.0.0.2", "127.0.0.2"), ("0.0.0.0", "127.0.0.1")],
)
def test_every_worker_tells_its_figures_at_a_port_of_its_own(
    make_services, launched, host, reached
):
    services = make_services(nli_workers=2, metrics_host=host)
    launch_all(services)
    ports = []
    for name in ("nli", "nli-2", "extraction", "maintenance"):
        _, environment = launched[name]
        assert environment.get("HALLDETECT_METRICS_HOST") == host
        port = environment["HALLDETECT_METRICS_PORT"]
        assert services.addresses.metrics_url(name) == f"http://{reached}:{port}/metrics"
        ports.append(port)
    assert len(set(ports)) == 4
    for name in ("beat", "flower"):
        assert services.addresses.metrics_url(name) is None
        assert "HALLDETECT_METRICS_PORT" not in launched[name][1]
    assert services.addresses.metrics_url("api") == f"{services.addresses.api_url}/metrics"


def test_the_ports_of_figures_begin_where_the_user_says_and_stay(make_services, launched):
    first = free_port()
    while not (is_free(first) and is_free(first + 1) and is_free(first + 2)):
        first = free_port()
    services = make_services(metrics_port=first)
    for _ in range(2):  # a worker that is started again is found where it was
        launch_all(services)
        found = [
            int(launched[name][1]["HALLDETECT_METRICS_PORT"])
            for name in ("nli", "extraction", "maintenance")
        ]
        assert found == [first, first + 1, first + 2]


def test_servers_named_by_our_own_variables_do_not_win_over_the_stacks(make_services, monkeypatch):
    monkeypatch.setenv("HALLDETECT_DATABASE_URL", "postgresql://elsewhere/x")
    monkeypatch.setenv("HALLDETECT_REDIS_URL", "redis://elsewhere")
    environment = make_services().environment()
    assert "HALLDETECT_DATABASE_URL" not in environment
    assert "HALLDETECT_REDIS_URL" not in environment
    assert environment["DATABASE_URL"].endswith("@127.0.0.1:1/halldetect")


def test_a_model_file_is_found_from_the_folder_that_children_run_in(
    make_services, monkeypatch, tmp_path
):
    (tmp_path / "mine.gguf").touch()
    monkeypatch.chdir(tmp_path)
    environment = make_services(extractor_model="mine.gguf", nli_model="owner/name").environment()
    assert environment["HALLDETECT_EXTRACTOR_MODEL"] == str(tmp_path / "mine.gguf")
    assert environment["HALLDETECT_NLI_MODEL"] == "owner/name"


def test_idle_models_do_not_spin(make_services):
    assert make_services().environment()["OMP_WAIT_POLICY"] == "PASSIVE"


@pytest.fixture
def stranger():
    """A server of somebody else, on a port that we wanted."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen()
        yield listener.getsockname()[1]


def test_a_port_taken_meanwhile_is_replaced_at_the_next_start(make_services, launched, stranger):
    services = make_services(flower_port=stranger)
    [flower] = [plan for plan in services.later() if plan.name == "flower"]
    assert flower.before_launch().startswith(f"port {stranger} is taken: flower listens on")
    flower.launch()
    command, _ = launched["flower"]
    assert f"--port={services.addresses.ports['flower']}" in command
    assert f"--port={stranger}" not in command


def test_a_stranger_on_our_port_does_not_make_our_part_ready(make_services, stranger):
    services = make_services(flower_port=stranger)
    [flower] = [plan for plan in services.later() if plan.name == "flower"]
    with subprocess.Popen(["sleep", "60"]) as ours:
        assert not flower.is_ready(ours.pid)
        ours.kill()
    assert flower.is_ready(os.getpid())  # the stranger is this very test
