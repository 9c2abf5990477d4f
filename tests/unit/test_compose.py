"""docker-compose.yml and the Dockerfile, checked against the program that they run."""

import importlib.util
import json
import os
import re
import shutil
import subprocess
import tomllib
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path

import pytest
import yaml
from packaging.requirements import Requirement

from halldetect.settings import Settings
from queues.names import Queue

ROOT = Path(__file__).resolve().parents[2]
PASSWORDS = {"POSTGRES_PASSWORD": "a1", "REDIS_PASSWORD": "b2", "FLOWER_PASSWORD": "c3"}
OURS = {"migrate", "api", "extraction", "nli", "maintenance", "beat", "flower"}


class Loader(yaml.SafeLoader):
    """YAML with Compose's word for taking a value away."""


Loader.add_constructor("!reset", lambda loader, node: "reset")


def load(name):
    return yaml.load((ROOT / name).read_text(), Loader)


@pytest.fixture(scope="module")
def compose():
    return load("docker-compose.yml")


@pytest.fixture(scope="module")
def services(compose):
    return compose["services"]


@pytest.fixture(scope="module")
def dockerfile():
    return (ROOT / "Dockerfile").read_text()


@pytest.fixture(scope="module")
def project():
    return tomllib.loads((ROOT / "pyproject.toml").read_text())


def test_the_stack_is_whole(services):
    assert set(services) == OURS | {"postgres", "redis"}


def test_every_service_heals_itself_and_the_migration_runs_once(services):
    for name, service in services.items():
        if name == "migrate":
            assert service["restart"] == "no"
            continue
        assert service["restart"] == "unless-stopped"
        check = service["healthcheck"]
        assert check["test"][0] in ("CMD", "CMD-SHELL")
        assert {"interval", "timeout", "retries", "start_period"} <= set(check)


def test_no_password_is_written_down_and_none_has_a_default():
    text = (ROOT / "docker-compose.yml").read_text()
    uses = re.findall(r"\$\{(\w*PASSWORD)([^}]*)\}", text)
    assert {name for name, _ in uses} == set(PASSWORDS)
    assert all(rest == f":?set {name} in .env" for name, rest in uses)
    # What stands where a password belongs, in addresses and in options, is such a variable.
    assert all(at.startswith("${") for at in re.findall(r"://\w*:([^@\s]+)@", text))
    for at in re.findall(r"(?:PASSWORD|_AUTH): (\S+)", text):
        assert "${" in at


def test_images_have_versions(compose, services, dockerfile):
    for name in ("postgres", "redis"):
        assert re.fullmatch(rf"{name}:\d+\.\d+(\.\d+)?", services[name]["image"])
    defaults = dict(re.findall(r"^ARG (\w+)=\"?([^\"\n]+)", dockerfile, re.MULTILINE))
    for image in re.findall(r"^FROM (\S+)", dockerfile, re.MULTILINE):
        resolved = re.sub(r"\$\{(\w+)\}", lambda found: defaults[found[1]], image)
        assert re.search(r":\d+\.\d+", resolved), resolved


def test_our_image_carries_the_programs_version(services, project):
    version = project["project"]["version"]
    for name in OURS:
        assert services[name]["image"] == f"halldetect:${{HALLDETECT_VERSION:-{version}}}-cuda"
        assert services[name]["build"] == {"context": ".", "target": "cuda"}


def test_commands_run_what_there_is(services):
    for name in OURS:
        program, *arguments = services[name]["command"]
        if program == "python":
            assert arguments[0] == "-m"
            assert importlib.util.find_spec(arguments[1]) is not None
        else:
            assert program == "celery"
            assert arguments[0] == "--app=worker.app"
            assert importlib.util.find_spec("worker.app") is not None


def test_every_queue_has_a_worker_with_one_thread(services):
    commands = [services[name]["command"] for name in OURS]
    workers = [command for command in commands if "worker" in command]
    queues = [part for command in workers for part in command if part.startswith("--queues=")]
    assert sorted(queues) == sorted(f"--queues={queue.value}" for queue in Queue)
    for command in workers:
        assert {"--pool=threads", "--concurrency=1"} <= set(command)


def test_health_checks_ask_for_the_name_that_the_worker_has(services):
    for name in ("extraction", "nli", "maintenance"):
        assert f"--hostname={name}@%h" in services[name]["command"]
        assert services[name]["environment"]["WORKER_NAME"] == name
        assert "$$WORKER_NAME@$$HOSTNAME" in services[name]["healthcheck"]["test"][1]


def test_only_settings_that_exist_are_set(services):
    for name in OURS:
        for variable in services[name]["environment"]:
            if variable.startswith("HALLDETECT_"):
                assert variable.removeprefix("HALLDETECT_").lower() in Settings.model_fields


def test_models_run_on_gpus_and_nothing_else_does(services):
    with_gpu = {
        name
        for name, service in services.items()
        if "gpu" in json.dumps(service.get("deploy", {})).lower()
    }
    assert with_gpu == {"extraction", "nli"}


def test_servers_are_reached_from_inside_only_and_the_rest_from_this_machine(services):
    published = {name: service["ports"] for name, service in services.items() if "ports" in service}
    assert published == {
        "api": ["${API_BIND:-127.0.0.1}:${API_PORT:-8000}:8000"],
        "flower": ["${FLOWER_BIND:-127.0.0.1}:${FLOWER_PORT:-5555}:5555"],
    }


def test_everything_waits_for_the_migration_which_waits_for_the_database(services):
    for name in OURS - {"migrate"}:
        assert services[name]["depends_on"] == {
            "migrate": {"condition": "service_completed_successfully"},
            "redis": {"condition": "service_healthy"},
        }
    assert services["migrate"]["depends_on"] == {"postgres": {"condition": "service_healthy"}}


def test_the_queue_is_no_cache_and_outlives_its_container(compose, services):
    command = " ".join(services["redis"]["command"])
    assert "--maxmemory-policy noeviction" in command
    assert "--appendonly yes" in command
    assert services["redis"]["volumes"] == ["redis:/data"]
    assert services["postgres"]["volumes"] == ["postgres:/var/lib/postgresql"]
    named = {
        volume.split(":")[0]
        for service in services.values()
        for volume in service.get("volumes", [])
        if not volume.startswith("${")
    }
    assert named == set(compose["volumes"])


def test_workers_have_time_to_end_what_they_have_begun(services):
    for name in ("extraction", "nli"):
        seconds = int(services[name]["stop_grace_period"].removesuffix("s"))
        assert seconds > Settings.model_fields["run_seconds"].default


def test_without_a_gpu_the_same_services_run_on_the_small_image(services):
    over = load("docker-compose.cpu.yml")["services"]
    assert set(over) == OURS
    for name, service in over.items():
        assert service["image"].endswith("-cpu")
        assert service["build"]["target"] == "cpu"
        assert ("deploy" in services[name]) == (service.get("deploy") == "reset")


def test_both_targets_are_built(dockerfile):
    targets = re.findall(r"^FROM \S+ AS (\S+)", dockerfile, re.MULTILINE)
    assert {"cpu", "cuda"} <= set(targets)
    assert len(re.findall(r"^USER halldetect$", dockerfile, re.MULTILINE)) == 2


def test_every_file_that_the_dockerfile_copies_is_there_and_let_in(dockerfile, project):
    let_in = (ROOT / ".dockerignore").read_text().split()
    packages = {name.split(".")[0] for name in project["tool"]["setuptools"]["packages"]}
    for needed in packages | {"pyproject.toml", "requirements.lock", "models/nli-minilm"}:
        assert f"!{needed}" in let_in
        assert (ROOT / needed).exists()
    for line in re.findall(r"^COPY (?!--from)(.+)$", dockerfile, re.MULTILINE):
        for source in line.split()[:-1]:
            assert (ROOT / source).exists()
            assert source == "." or f"!{source}" in let_in


def test_the_image_leaves_out_only_what_the_service_never_imports(dockerfile, project):
    lock = (ROOT / "requirements.lock").read_text()
    left_out = set(re.search(r'^ARG LEFT_OUT="([^"]+)"', dockerfile, re.MULTILINE)[1].split("|"))
    locked = set(re.findall(r"^([\w.-]+)==", lock, re.MULTILINE))
    assert left_out <= locked
    extras = project["project"]["optional-dependencies"]
    wanted = [*project["project"]["dependencies"], *extras["llama"], *extras["torch"]]
    assert left_out & everything_needed_by(wanted) == set()


def everything_needed_by(requirements):
    """Return the names of the packages that `requirements` bring along, as installed here."""
    needed, open_ones = set(), [Requirement(text) for text in requirements]
    while open_ones:
        requirement = open_ones.pop()
        name = re.sub(r"[-_.]+", "-", requirement.name).lower()
        key = (name, frozenset(requirement.extras))
        if key in needed:
            continue
        needed.add(key)
        try:
            brings = distribution(name).requires or []
        except PackageNotFoundError:  # for another system or Python
            continue
        for text in brings:
            brought = Requirement(text)
            environments = [{"extra": extra} for extra in ("", *requirement.extras)]
            if brought.marker is None or any(map(brought.marker.evaluate, environments)):
                open_ones.append(brought)
    return {name for name, _ in needed}


def compose_client():
    """Return why `docker compose` cannot be run, or None."""
    if shutil.which("docker") is None:
        return "no docker client"
    asked = subprocess.run(["docker", "compose", "version"], capture_output=True, check=False)
    return None if asked.returncode == 0 else "the docker client has no compose"


def config(*files, **environment):
    options = [option for file in files for option in ("--file", file)]
    inherited = {name: value for name, value in os.environ.items() if name not in PASSWORDS}
    return subprocess.run(
        ["docker", "compose", *options, "config", "--format", "json"],
        cwd=ROOT,
        env={**inherited, **environment},
        capture_output=True,
        text=True,
        check=False,
    )


class TestWithTheClient:
    """What only Compose itself can tell."""

    @pytest.fixture(autouse=True)
    def _client(self):
        reason = compose_client()
        if reason is not None:
            pytest.skip(reason)

    def test_compose_takes_the_file(self):
        done = config("docker-compose.yml", **PASSWORDS)
        assert done.returncode == 0, done.stderr
        services = json.loads(done.stdout)["services"]
        assert set(services) == OURS | {"postgres", "redis"}
        assert services["nli"]["environment"]["REDIS_URL"] == "redis://:b2@redis:6379/0"

    def test_compose_lays_the_other_file_over_it(self):
        done = config("docker-compose.yml", "docker-compose.cpu.yml", **PASSWORDS)
        assert done.returncode == 0, done.stderr
        services = json.loads(done.stdout)["services"]
        assert not any("deploy" in services[name] for name in OURS)
        assert services["nli"]["environment"]["HALLDETECT_PROFILE"] == "embedded"
        assert services["nli"]["build"]["target"] == "cpu"

    @pytest.mark.parametrize("missing", sorted(PASSWORDS))
    def test_compose_refuses_to_run_without_a_password(self, missing):
        given = {name: value for name, value in PASSWORDS.items() if name != missing}
        done = config("docker-compose.yml", **given)
        assert done.returncode != 0
        assert f"set {missing} in .env" in done.stderr


def test_the_runbook_names_services_that_there_are(services):
    page = (ROOT / "docs" / "runbook.md").read_text()
    named = re.findall(r"docker compose exec (?:-T )?(\w+)", page)
    named += re.findall(r"--scale (\w+)=", page)
    for stopped in re.findall(r"docker compose stop ([a-z ]+)`", page):
        named += stopped.split()
    assert len(named) > 5
    assert set(named) <= set(services)
