"""Analysts read the views and nothing else, and their role comes and goes with the schema."""

from __future__ import annotations

import re
from pathlib import Path

import psycopg
import pytest
from psycopg import errors
from sqlalchemy.engine import make_url

import db.models  # noqa: F401  (fills the metadata)
from cli.stack.postgres import PostgresServer
from db.base import Base
from db.migrate import downgrade, upgrade

DOCUMENT = (Path(__file__).parents[3] / "docs" / "sql.md").read_text(encoding="utf-8")
WHO_MAY_READ = DOCUMENT.partition("## Who may read")[2].partition("\n## ")[0]
LOGIN, BY_HAND = re.findall(r"^```\n(.*?)^```$", WHO_MAY_READ, flags=re.M | re.S)
VIEWS = "SELECT relname FROM pg_class WHERE relnamespace = 'trail'::regnamespace"


@pytest.fixture
def analyst(database):
    """A connection with the rights of the role."""
    with psycopg.connect(database, autocommit=True) as connection:
        # As a later revision may make one.
        connection.execute("CREATE TABLE halldetect.secrets (secret text)")
        connection.execute("SET ROLE halldetect_reader")
        yield connection


def views(connection):
    return [name for (name,) in connection.execute(VIEWS)]


def test_the_reader_reads_every_view(analyst, service):
    service.submit("The mill opened in 1900. It closed in 1940.")
    service.run()
    for view in views(analyst):
        analyst.execute(f"SELECT * FROM trail.{view}")
    assert analyst.execute("SELECT count(*) FROM trail.claims").fetchone() == (2,)
    assert analyst.execute("SELECT count(entailment_chunk) FROM trail.claims").fetchone() == (2,)


@pytest.mark.parametrize(
    "table", [*(table.name for table in Base.metadata.sorted_tables), "secrets"]
)
def test_the_reader_sees_no_table(analyst, table):
    with pytest.raises(errors.InsufficientPrivilege):
        analyst.execute(f"SELECT * FROM halldetect.{table}")


def test_to_read_the_views_is_all_that_is_granted(analyst):
    granted = analyst.execute(
        """
        SELECT relnamespace::regnamespace::text, privilege_type, count(*)
        FROM pg_class, aclexplode(relacl)
        WHERE relnamespace IN ('trail'::regnamespace, 'halldetect'::regnamespace)
            AND grantee IN (0, 'halldetect_reader'::regrole)
        GROUP BY 1, 2
        """
    ).fetchall()
    assert granted == [("trail", "SELECT", len(views(analyst)))]


@pytest.mark.parametrize(
    "statement",
    [
        "INSERT INTO trail.models (name) VALUES ('')",
        "DELETE FROM trail.documents",
        "UPDATE trail.documents SET text = ''",
        "UPDATE trail.models SET name = ''",
        "CREATE VIEW trail.mine AS SELECT 1",
        "CREATE TABLE halldetect.mine (number integer)",
        "CREATE TABLE public.mine (number integer)",
        "CREATE SCHEMA mine",
        "CREATE ROLE mine",
        "TRUNCATE halldetect.audits",
        "SELECT pg_read_file('/etc/passwd')",
        "COPY trail.documents TO PROGRAM 'cat'",
    ],
)
def test_the_reader_makes_and_changes_nothing(analyst, statement):
    with pytest.raises(errors.InsufficientPrivilege):
        analyst.execute(statement)


class Cluster:
    """A server of its own: roles are shared by all databases of one."""

    def __init__(self, server):
        self.address = make_url(server.url)

    def database(self, name, owner="halldetect"):
        self.run(f"CREATE DATABASE {name} OWNER {owner}")
        return self.url(name)

    def url(self, name, user=None, password=None):
        address = self.address.set(database=name)
        if user:
            address = address.set(username=user, password=password)
        return address.render_as_string(hide_password=False)

    def run(self, statements, database="halldetect"):
        with psycopg.connect(self.url(database), autocommit=True) as connection:
            return connection.execute(statements)

    def has_reader(self):
        found = self.run("SELECT FROM pg_roles WHERE rolname = 'halldetect_reader'")
        return found.rowcount == 1


@pytest.fixture(scope="module")
def _server(tmp_path_factory):
    server = PostgresServer(tmp_path_factory.mktemp("roles"), durable=False)
    server.start()
    yield server
    server.stop()


@pytest.fixture
def cluster(_server):
    cluster = Cluster(_server)
    yield cluster
    with psycopg.connect(cluster.address.render_as_string(False), autocommit=True) as server:
        for (name,) in server.execute(
            "SELECT datname FROM pg_database WHERE datname LIKE 'audits%'"
        ).fetchall():
            server.execute(f"DROP DATABASE {name} WITH (FORCE)")
        for (name,) in server.execute(
            "SELECT rolname FROM pg_roles WHERE rolname !~ '^pg_' AND rolname <> current_user"
        ).fetchall():
            server.execute(f"DROP ROLE {name}")


def test_the_role_goes_with_the_last_database_that_uses_it(cluster):
    first, second = cluster.database("audits_1"), cluster.database("audits_2")
    upgrade(first)
    upgrade(second)
    downgrade(first, "0002")
    assert cluster.has_reader()
    downgrade(second, "base")
    assert not cluster.has_reader()
    upgrade(first)
    assert cluster.has_reader()


def test_the_role_stays_while_it_has_members(cluster):
    url = cluster.database("audits")
    upgrade(url)
    cluster.run("CREATE ROLE bob LOGIN IN ROLE halldetect_reader")
    downgrade(url, "base")
    assert cluster.has_reader()
    upgrade(url)
    cluster.run("SET ROLE bob; SELECT FROM trail.audits", database="audits")


def test_an_analysts_login_is_made_as_documented(cluster):
    upgrade(cluster.database("audits"))
    cluster.run(LOGIN)
    url = cluster.url("audits", "ann", "a-long-one")
    with psycopg.connect(url, autocommit=True) as ann:
        assert ann.execute("SELECT count(*) FROM trail.audits").fetchone() == (0,)
        assert ann.execute("SHOW timezone").fetchone() == ("UTC",)
        with pytest.raises(errors.ReadOnlySqlTransaction):
            ann.execute("CREATE TEMPORARY TABLE notes (note text)")
        with pytest.raises(errors.InsufficientPrivilege):
            ann.execute("SELECT FROM halldetect.idempotency_keys")


def test_a_user_who_may_not_create_roles_migrates_without_one(cluster):
    cluster.run("CREATE ROLE owner LOGIN PASSWORD 'o'")
    cluster.database("audits", owner="owner")
    url = cluster.url("audits", "owner", "o")
    upgrade(url)
    assert not cluster.has_reader()
    cluster.run(BY_HAND, database="audits")
    cluster.run("SET ROLE halldetect_reader; SELECT FROM trail.claims", database="audits")
    # It is not the owner's to drop.
    downgrade(url, "base")
    assert cluster.has_reader()
    upgrade(url)
    cluster.run("SET ROLE halldetect_reader; SELECT FROM trail.claims", database="audits")


def test_views_of_other_people_are_not_dropped_with_ours(cluster):
    url = cluster.database("audits")
    upgrade(url)
    cluster.run("CREATE VIEW public.mine AS SELECT * FROM trail.audits", database="audits")
    with pytest.raises(Exception, match=r"public\.mine|view mine"):
        downgrade(url, "0002")
    cluster.run("SELECT FROM public.mine; DROP VIEW public.mine", database="audits")
    downgrade(url, "0002")
