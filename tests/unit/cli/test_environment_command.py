import os
import subprocess
from datetime import UTC, datetime

import pytest

from cli import main
from cli.environment_command import print_environment
from cli.stack.errors import StackError
from cli.stack.home import Home
from cli.stack.lock import exclusive_lock
from cli.stack.run_file import RunningStack, write_run_file
from halldetect.errors import InputError, UnavailableError
from halldetect.settings import Settings, load_settings

ADDRESS = "postgresql://an%20user:it's%20%22my%22%20$HOME@10.0.0.7:6543/db?sslmode=verify-full"


@pytest.fixture
def settings(tmp_path):
    def make(database_url=ADDRESS, redis_url="redis://:secret@10.0.0.7:6379/0"):
        return Settings(home=tmp_path, database_url=database_url, redis_url=redis_url)

    return make


def evaluated(printed, name):
    script = f'{printed}\nprintf %s "${name}"'
    return subprocess.run(["bash", "-c", script], capture_output=True, text=True, check=True).stdout


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("DATABASE_URL", ADDRESS),
        ("REDIS_URL", "redis://:secret@10.0.0.7:6379/0"),
        ("PGHOST", "10.0.0.7"),
        ("PGPORT", "6543"),
        ("PGUSER", "an user"),
        ("PGPASSWORD", 'it\'s "my" $HOME'),
        ("PGDATABASE", "db"),
        ("PGSSLMODE", "verify-full"),
    ],
)
def test_a_shell_learns_the_addresses_as_they_are(settings, capsys, name, value):
    assert print_environment(settings()) == 0
    assert evaluated(capsys.readouterr().out, name) == value


def test_postgres_programs_of_the_wheel_come_first(settings, capsys):
    print_environment(settings())
    path = evaluated(capsys.readouterr().out, "PATH")
    assert "pginstall" in path.split(":")[0]
    assert len(path.split(":")) > 1


def test_without_the_wheel_the_path_stays(settings, capsys, monkeypatch):
    def missing():
        raise StackError("no Postgres here")

    monkeypatch.setattr("cli.environment_command.programs_folder", missing)
    print_environment(settings())
    assert "export PATH" not in capsys.readouterr().out


def test_without_addresses_and_a_stack_it_says_what_to_set(settings):
    with pytest.raises(UnavailableError, match="set DATABASE_URL"):
        print_environment(settings(database_url=None))


def test_what_is_no_address_is_refused_without_its_password(settings):
    with pytest.raises(InputError) as refused:
        print_environment(settings(database_url="postgresql://u:secret@h:5/db?no_such=1"))
    assert "DATABASE_URL is no address of Postgres" in str(refused.value)
    assert "secret" not in str(refused.value)


@pytest.mark.parametrize(
    ("database_url", "redis_url"),
    [
        ("mysql://u:secret@h/x", "redis://h"),
        ("host=h password=secret", "redis://h"),
        ("postgresql://u:secret@[::1]x/db", "redis://h"),
        (ADDRESS, "http://:secret@h"),
    ],
)
def test_nothing_is_printed_unless_all_is_well(settings, capsys, database_url, redis_url):
    with pytest.raises(InputError, match="_URL") as refused:
        print_environment(settings(database_url, redis_url))
    assert capsys.readouterr().out == ""
    assert "secret" not in str(refused.value)


STACKS_DATABASE = "postgresql://halldetect:old@127.0.0.1:15432/halldetect"
STACKS_REDIS = "redis://:old@127.0.0.1:16379/0"


@pytest.fixture
def stack(tmp_path):
    """A home in which a stack runs, as far as other commands can tell."""
    home = Home(tmp_path / "home")
    home.create()
    with exclusive_lock(home.lock_file):
        write_run_file(
            RunningStack(
                pid=os.getpid(),
                started_at=datetime.now(UTC),
                home=home.root,
                api_url="http://127.0.0.1:8000",
                flower_url="http://halldetect:secret@127.0.0.1:5555",
                database_url=STACKS_DATABASE,
                redis_url=STACKS_REDIS,
            )
        )
        yield home.root


@pytest.mark.parametrize(
    "given", [{"database_url": ADDRESS}, {"redis_url": "redis://:secret@10.0.0.7:6379/0"}]
)
def test_half_of_another_service_is_not_completed_by_the_running_stack(stack, capsys, given):
    with pytest.raises(InputError, match=r"(DATABASE|REDIS)_URL names another .* set both"):
        print_environment(Settings(home=stack, **given))
    assert capsys.readouterr().out == ""


def test_half_of_the_running_stack_is_completed(stack, capsys):
    print_environment(Settings(home=stack, database_url=STACKS_DATABASE))
    assert evaluated(capsys.readouterr().out, "REDIS_URL") == STACKS_REDIS


def test_of_another_service_nothing_is_printed_that_is_the_running_stacks(stack, capsys):
    redis_url = "redis://:secret@10.0.0.7:6379/0"
    print_environment(Settings(home=stack, database_url=ADDRESS, redis_url=redis_url))
    printed = capsys.readouterr().out
    assert not any(name in printed for name in ("FLOWER", "HALLDETECT_HOME", "STACK_"))


@pytest.fixture
def shell(stack, capsys, monkeypatch):
    """Return a function that makes our environment that of a shell which evaluated `env`."""

    def evaluate(**given):
        print_environment(Settings(home=stack, **given))
        script = f"{capsys.readouterr().out}\nenv -0"
        done = subprocess.run(["bash", "-c", script], capture_output=True, text=True, check=True)
        for variable in done.stdout.rstrip("\0").split("\0"):
            monkeypatch.setenv(*variable.split("=", 1))

    return evaluate


@pytest.fixture
def seen(monkeypatch):
    """The settings with which `halldetect up` would run."""
    found = []
    monkeypatch.setattr("cli.stack.up_command.run_up", lambda settings, **_: found.append(settings))
    return found


def run(*arguments):
    with pytest.raises(SystemExit) as ended:
        main.app(arguments)
    return ended.value.code


def test_a_stack_never_runs_on_addresses_that_were_printed_of_another(
    shell, seen, monkeypatch, tmp_path, capsys
):
    shell()
    assert load_settings().database_url.get_secret_value() == STACKS_DATABASE
    monkeypatch.setenv("HALLDETECT_HOME", str(tmp_path / "new"))
    assert run("up") == 0
    assert (seen[0].database_url, seen[0].redis_url) == (None, None)
    assert "not used, since `halldetect env` printed it" in capsys.readouterr().err


def test_addresses_that_somebody_has_set_are_used_whatever_was_printed_before(
    shell, seen, monkeypatch
):
    shell()
    monkeypatch.setenv("DATABASE_URL", ADDRESS)
    run("up")
    assert seen[0].database_url.get_secret_value() == ADDRESS
    assert seen[0].redis_url is None


def test_an_address_that_was_set_before_it_was_printed_stays_set(shell, seen, monkeypatch):
    shell(database_url=STACKS_DATABASE)
    run("up")
    assert seen[0].database_url.get_secret_value() == STACKS_DATABASE
    assert seen[0].redis_url is None


def test_env_prints_what_the_stack_of_the_home_has_now(shell, stack, capsys, monkeypatch):
    shell()
    file = Home(stack).run_file
    file.write_text(file.read_text().replace(":old@", ":new@"))
    assert run("env") == 0
    assert evaluated(capsys.readouterr().out, "PGPASSWORD") == "new"


def test_without_a_stack_in_the_home_printed_addresses_are_none(
    shell, monkeypatch, tmp_path, capsys
):
    shell()
    monkeypatch.setenv("HALLDETECT_HOME", str(tmp_path / "new"))
    assert run("env") == 4
    printed = capsys.readouterr()
    assert printed.out == ""
    assert f"no stack runs in {tmp_path / 'new'}" in printed.err
