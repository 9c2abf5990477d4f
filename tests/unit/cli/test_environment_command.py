import subprocess

import pytest

from cli.environment_command import print_environment
from cli.stack.errors import StackError
from halldetect.errors import InputError, UnavailableError
from halldetect.settings import Settings

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
