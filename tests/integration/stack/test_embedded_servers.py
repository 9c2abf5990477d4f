"""The real servers from the wheels."""

import os
import pwd
import shutil
import signal
import stat
import subprocess
import sys
import time
from pathlib import Path

import psutil
import psycopg
import pytest
import redis
import runbook

from cli.stack.errors import StackError
from cli.stack.ports import free_port
from cli.stack.postgres import PostgresServer
from cli.stack.spawning import _working_setpriv
from cli.stack.valkey import ValkeyServer

IS_ROOT = os.geteuid() == 0
NOBODY = 65534


@pytest.fixture
def postgres_in():
    """Makes servers, and stops what still runs."""
    servers = []

    def make(folder, **options):
        servers.append(PostgresServer(folder, durable=False, **options))
        return servers[-1]

    yield make
    for server in servers:
        server.stop()


@pytest.fixture
def valkey_in():
    servers = []

    def make(folder, **options):
        servers.append(ValkeyServer(folder, **options))
        return servers[-1]

    yield make
    for server in servers:
        server.stop()


@pytest.fixture(scope="module")
def cluster(tmp_path_factory):
    """A folder with a cluster, to be copied: making one takes a second."""
    folder = tmp_path_factory.mktemp("cluster")
    server = PostgresServer(folder, durable=False)
    server.start()
    with psycopg.connect(server.url) as connection:
        connection.execute("CREATE TABLE kept AS SELECT 'é' AS word")
    server.stop()
    return folder


@pytest.fixture
def copy(cluster, tmp_path):
    """A copy of the cluster."""
    subprocess.run(["cp", "--archive", cluster, tmp_path / "postgres"], check=True)
    return tmp_path / "postgres"


def select(url, query):
    with psycopg.connect(url) as connection:
        return connection.execute(query).fetchone()[0]


def listening(pid):
    return {
        (connection.laddr.ip, connection.laddr.port)
        for connection in psutil.Process(pid).net_connections()
        if connection.status == psutil.CONN_LISTEN
    }


def sockets_in(folder):
    return [path for path in folder.rglob("*") if stat.S_ISSOCK(path.lstat().st_mode)]


def test_the_database_is_there_and_survives_a_restart(postgres_in, tmp_path):
    first = postgres_in(tmp_path / "new" / "postgres")
    first.start()
    with psycopg.connect(first.url) as connection:
        assert connection.info.dbname == "halldetect"
        connection.execute("CREATE TABLE kept AS SELECT 'Straße' AS word")
    first.stop()
    assert first.pid is None
    second = postgres_in(tmp_path / "new" / "postgres")
    second.start()
    assert select(second.url, "SELECT word FROM kept") == "Straße"


def test_order_and_case_do_not_depend_on_the_machine(postgres_in, copy):
    server = postgres_in(copy)
    server.start()
    assert select(server.url, "SELECT 'a' < 'B'") is False  # by code point
    assert select(server.url, "SELECT upper('é')") == "É"
    assert select(server.url, "SHOW server_encoding") == "UTF8"
    assert select(server.url, "SHOW timezone") == "UTC"


def test_postgres_listens_on_loopback_and_nowhere_else(postgres_in, copy):
    server = postgres_in(copy)
    server.start()
    assert listening(server.pid) == {("127.0.0.1", server.port)}
    assert sockets_in(copy) == []
    assert select(server.url, "SHOW unix_socket_directories") == ""


def test_postgres_asks_for_the_password(postgres_in, copy):
    server = postgres_in(copy)
    server.start()
    password = (copy / "password").read_text()
    assert password in server.url
    with pytest.raises(psycopg.OperationalError, match="password authentication failed"):
        psycopg.connect(server.url.replace(password, "guess"))
    assert stat.S_IMODE((copy / "password").stat().st_mode) == 0o600
    assert [path.name for path in copy.iterdir() if "initdb" in path.name] == []
    assert password not in " ".join(psutil.Process(server.pid).cmdline())


@pytest.mark.skipif(not IS_ROOT, reason="only root can become somebody else")
def test_run_by_root_the_server_is_nobody_and_may_only_pass_through_folders(postgres_in, copy):
    copy.parent.chmod(0o700)
    server = postgres_in(copy)
    server.start()
    status = Path(f"/proc/{server.pid}/status").read_text()
    fields = dict(line.split(":\t", 1) for line in status.splitlines() if ":\t" in line)
    assert set(fields["Uid"].split()) == {str(NOBODY)}
    # Nothing beyond reading and passing (2) or, where root itself lacks that, overriding (1).
    assert int(fields["CapPrm"], 16) in (0, 1 << 1, 1 << 2)
    assert fields["NoNewPrivs"].strip() == "1"
    assert (copy / "data").stat().st_uid == NOBODY


@pytest.mark.skipif(
    not (IS_ROOT and shutil.which("setpriv")), reason="only root can become an ordinary user"
)
def test_both_servers_work_for_an_ordinary_user(tmp_path_factory):
    daemon = pwd.getpwnam("daemon")  # initdb wants a user with a name
    folder = tmp_path_factory.mktemp("ordinary")
    os.chown(folder, daemon.pw_uid, daemon.pw_gid)
    program = (
        "import sys; from pathlib import Path\n"
        "import psycopg, redis\n"
        "from cli.stack.postgres import PostgresServer\n"
        "from cli.stack.valkey import ValkeyServer\n"
        "folder = Path(sys.argv[1])\n"
        "postgres = PostgresServer(folder / 'postgres'); postgres.start()\n"
        "valkey = ValkeyServer(folder / 'valkey'); valkey.start()\n"
        "with psycopg.connect(postgres.url) as connection: connection.execute('SELECT 1')\n"
        "with redis.Redis.from_url(valkey.url) as client: client.ping()\n"
        "valkey.stop(); postgres.stop()\n"
        "print((folder / 'postgres' / 'data').stat().st_uid)\n"
    )
    # The interpreter itself may lie in a folder of root's: passing through is all that is lent.
    user = [f"--reuid={daemon.pw_uid}", f"--regid={daemon.pw_gid}", "--clear-groups"]
    lent = ["--inh-caps=-all,+dac_read_search", "--ambient-caps=-all,+dac_read_search"]
    done = subprocess.run(
        ["setpriv", *user, *lent, sys.executable, "-c", program, folder],
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.stdout, done.stderr) == (f"{daemon.pw_uid}\n", "")


@pytest.mark.skipif(not IS_ROOT, reason="only root can become somebody else")
def test_without_setpriv_a_folder_that_nobody_reaches_is_an_error(
    postgres_in, tmp_path, monkeypatch
):
    monkeypatch.setattr("cli.stack.spawning.shutil.which", lambda name: None)
    _working_setpriv.cache_clear()
    tmp_path.chmod(0o700)
    with pytest.raises(StackError, match="Permission denied"):
        postgres_in(tmp_path / "postgres").start()
    _working_setpriv.cache_clear()


def test_a_killed_server_starts_again_with_what_it_had(postgres_in, copy):
    first = postgres_in(copy)
    first.start()
    others = psutil.Process(first.pid).children(recursive=True)
    os.kill(first.pid, signal.SIGKILL)
    first.stop()
    psutil.wait_procs(others)  # until they have noticed, the folder is in use
    assert (copy / "data" / "postmaster.pid").exists()
    second = postgres_in(copy)
    second.start()
    assert select(second.url, "SELECT word FROM kept") == "é"


def test_a_lock_whose_number_belongs_to_another_program_now_does_not_hinder(postgres_in, copy):
    lock = copy / "data" / "postmaster.pid"
    lock.write_text(f"{os.getpid()}\n{copy / 'data'}\n")
    server = postgres_in(copy)
    server.start()
    assert select(server.url, "SELECT 1") == 1


def test_two_servers_never_share_a_folder(postgres_in, copy):
    first = postgres_in(copy)
    first.start()
    second = postgres_in(copy)
    with pytest.raises(StackError, match=r"(?s)Postgres ended with code 1.*lock file"):
        second.start()
    assert select(first.url, "SELECT word FROM kept") == "é"


def test_a_start_that_was_killed_half_way_is_done_again(postgres_in, tmp_path):
    draft = tmp_path / "data.new"
    draft.mkdir()
    (draft / "PG_VERSION").write_text("18")
    server = postgres_in(tmp_path)
    server.start()
    assert select(server.url, "SELECT 1") == 1
    assert not draft.exists()


def test_a_taken_port_is_an_error_with_the_reason(postgres_in, valkey_in, copy, tmp_path):
    first = valkey_in(tmp_path / "one")
    first.start()
    with pytest.raises(StackError, match=r"(?s)Postgres ended with code.*could not bind"):
        postgres_in(copy, port=first.port).start()
    second = valkey_in(tmp_path / "two", port=first.port)
    with pytest.raises(StackError, match=r"(?s)Valkey ended with code.*in use"):
        second.start()
    assert second.pid is None


def test_without_the_wheels_the_error_says_what_to_install(
    postgres_in, valkey_in, tmp_path, monkeypatch
):
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(StackError, match=r"halldetect\[embedded\].*DATABASE_URL"):
        postgres_in(tmp_path / "postgres").start()
    with pytest.raises(StackError, match=r"halldetect\[embedded\].*REDIS_URL"):
        valkey_in(tmp_path / "valkey").start()


def test_valkey_is_a_queue_and_no_cache(valkey_in, tmp_path):
    server = valkey_in(tmp_path)
    server.start()
    with redis.Redis.from_url(server.url, decode_responses=True) as client:
        assert client.config_get("maxmemory-policy") == {"maxmemory-policy": "noeviction"}
        assert client.config_get("appendonly") == {"appendonly": "yes"}
        client.rpush("queue", "message")
    server.stop()
    again = valkey_in(tmp_path)
    again.start()
    with redis.Redis.from_url(again.url, decode_responses=True) as client:
        assert client.lrange("queue", 0, -1) == ["message"]


def test_valkey_keeps_what_it_took_when_it_is_killed(valkey_in, tmp_path):
    server = valkey_in(tmp_path)
    server.start()
    with redis.Redis.from_url(server.url) as client:
        client.rpush("queue", "message")
        assert client.waitaof(1, 0, 0) == [1, 0]
    os.kill(server.pid, signal.SIGKILL)
    again = valkey_in(tmp_path)
    again.start()
    with redis.Redis.from_url(again.url) as client:
        assert client.lrange("queue", 0, -1) == [b"message"]


def test_valkey_asks_for_the_password_and_listens_on_loopback_only(valkey_in, tmp_path):
    server = valkey_in(tmp_path)
    server.start()
    assert listening(server.pid) == {("127.0.0.1", server.port)}
    with (
        redis.Redis(port=server.port) as stranger,
        pytest.raises(redis.AuthenticationError),
    ):
        stranger.ping()
    assert stat.S_IMODE((tmp_path / "valkey.conf").stat().st_mode) == 0o600
    password = (tmp_path / "password").read_text()
    assert password not in " ".join(psutil.Process(server.pid).cmdline())


def test_a_folder_with_quotes_and_blanks_is_a_folder_like_any_other(
    valkey_in, postgres_in, tmp_path
):
    folder = tmp_path / 'it\'s "my" \\ folder é'
    valkey = valkey_in(folder / "valkey")
    valkey.start()
    postgres = postgres_in(folder / "postgres")
    postgres.start()
    with redis.Redis.from_url(valkey.url) as client:
        client.set("key", "value")
    assert select(postgres.url, "SELECT 1") == 1


def test_a_long_path_is_no_trouble(postgres_in, tmp_path):
    folder = tmp_path / ("long" * 30)
    server = postgres_in(folder)
    server.start()
    assert select(server.url, "SELECT 1") == 1


@pytest.mark.skipif(not shutil.which("setpriv"), reason="needs setpriv of util-linux")
def test_the_servers_end_with_the_process_that_started_them(copy, tmp_path):
    program = (
        "import os, sys; from pathlib import Path\n"
        "from cli.stack.postgres import PostgresServer\n"
        "from cli.stack.valkey import ValkeyServer\n"
        "postgres = PostgresServer(Path(sys.argv[1])); postgres.start()\n"
        "valkey = ValkeyServer(Path(sys.argv[2])); valkey.start()\n"
        "print(postgres.pid, valkey.pid, flush=True)\n"
        "os.kill(os.getpid(), 9)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program, copy, tmp_path / "valkey"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == -signal.SIGKILL
    pids = [int(pid) for pid in done.stdout.split()]
    assert len(pids) == 2
    while any(map(psutil.pid_exists, pids)):
        time.sleep(0.01)


def test_a_port_can_be_chosen(valkey_in, tmp_path):
    port = free_port()
    server = valkey_in(tmp_path, port=port)
    server.start()
    assert server.url.endswith(f"@127.0.0.1:{port}/0")


def test_passwords_are_rotated_as_the_runbook_says(postgres_in, valkey_in, tmp_path):
    def start():
        postgres, valkey = postgres_in(tmp_path / "postgres"), valkey_in(tmp_path / "valkey")
        postgres.start()
        valkey.start()
        return postgres, valkey

    (tmp_path / "flower-password").write_text("old")
    postgres, valkey = start()
    old_password, old_valkey = (tmp_path / "postgres" / "password").read_text(), valkey.url
    heading = "Rotate passwords of the embedded stack"
    runbook.run(
        f"{runbook.addresses()}\n{runbook.commands(heading)}",
        folder=tmp_path,
        HALLDETECT_HOME=str(tmp_path),
        DATABASE_URL=postgres.url,
        REDIS_URL=valkey.url,
    )
    postgres.stop()
    valkey.stop()
    postgres, valkey = start()
    assert old_password not in postgres.url
    assert select(postgres.url, "SELECT 1") == 1
    assert stat.S_IMODE((tmp_path / "postgres" / "password").stat().st_mode) == 0o600
    place = postgres.url.rpartition("@")[2]
    with pytest.raises(psycopg.OperationalError, match="password authentication failed"):
        psycopg.connect(f"postgresql://halldetect:{old_password}@{place}")
    with redis.Redis.from_url(valkey.url) as client:
        assert client.ping()
    old = old_valkey.rpartition("@")[0] + "@" + valkey.url.rpartition("@")[2]
    with redis.Redis.from_url(old) as client, pytest.raises(redis.AuthenticationError):
        client.ping()
    assert not (tmp_path / "flower-password").exists()
