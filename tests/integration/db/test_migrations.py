"""Migrations build what the models say, and go up and down with data in the tables."""

from __future__ import annotations

import psycopg
import pytest
from alembic.script import ScriptDirectory
from sqlalchemy import text

import db.models  # noqa: F401  (fills the metadata)
from db.base import Base
from db.engine import SchemaMismatch, make_engine
from db.migrate import VERSION_TABLE, current_revision, downgrade, head_revision, upgrade
from halldetect.errors import InputError

CATALOGUE = """
    SELECT 'column', c.oid::regclass::text, a.attname, format_type(a.atttypid, a.atttypmod),
        a.attnotnull::text, coalesce(pg_get_expr(d.adbin, d.adrelid), '')
    FROM pg_class c JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum > 0
        AND NOT a.attisdropped
    LEFT JOIN pg_attrdef d ON d.adrelid = c.oid AND d.adnum = a.attnum
    WHERE c.relnamespace = 'halldetect'::regnamespace AND c.relkind IN ('r', 'p')
    UNION ALL
    SELECT 'constraint', conrelid::regclass::text, conname, pg_get_constraintdef(oid), '', ''
    FROM pg_constraint WHERE connamespace = 'halldetect'::regnamespace
    UNION ALL
    SELECT 'index', tablename, indexname, indexdef, '', '' FROM pg_indexes
    WHERE schemaname = 'halldetect'
    UNION ALL
    SELECT 'partitioning', partrelid::regclass::text, pg_get_partkeydef(partrelid), '', '', ''
    FROM pg_partitioned_table
    ORDER BY 1, 2, 3
"""


def catalogue(engine):
    """List everything that the schema of the tables holds, as the server describes it."""
    with engine.connect() as connection:
        return [tuple(row) for row in connection.execute(text(CATALOGUE))]


NEW_WEBHOOK = "INSERT INTO halldetect.webhooks (url) VALUES"
NEW_DELIVERY = (
    f"{NEW_WEBHOOK} ('https://a.example');"
    " INSERT INTO halldetect.webhook_deliveries (webhook_id, batch_id, state, attempts,"
    " next_attempt_at, last_attempt_at, last_status, last_error, finished_at)"
    " SELECT w.id, b.id, {} FROM halldetect.webhooks AS w, halldetect.batches AS b"
)
NEW_WEBHOOK_SECRET = (
    f"{NEW_WEBHOOK} ('https://a.example');"
    " INSERT INTO halldetect.webhook_secrets (webhook_id, secret, expires_at)"
    " SELECT id, {} FROM halldetect.webhooks"
)
NEW_KEY = "INSERT INTO halldetect.api_keys (name, scopes) VALUES"
NEW_SECRET = "INSERT INTO halldetect.api_key_secrets (api_key_id, sha256, expires_at) VALUES"
REVISIONS = [
    script.revision for script in ScriptDirectory("migrations").walk_revisions("base", "heads")
][::-1]


def test_migrations_build_what_the_models_say(empty_database):
    upgrade(empty_database)
    engine = make_engine(empty_database)
    migrated = catalogue(engine)
    with engine.begin() as connection:
        connection.execute(text("DROP SCHEMA IF EXISTS trail CASCADE"))
        connection.execute(text("DROP SCHEMA halldetect CASCADE; CREATE SCHEMA halldetect"))
        Base.metadata.create_all(connection)
    assert catalogue(engine) == migrated
    engine.dispose()


def fill_every_table(database, service):
    """Put rows into every table."""
    service.submit("The mill opened in 1900. The mill is in Spain.", "Thanks!")
    service.run()
    service.submit("It waits.", batch=False)
    with psycopg.connect(database) as connection:
        connection.execute(
            """
            INSERT INTO halldetect.workers (name, queues, pid, host, state)
            VALUES ('w', '{nli}', 1, 'h', 'ready');
            INSERT INTO halldetect.idempotency_keys (key, request_sha256, status, headers, body)
            VALUES ('k', decode(repeat('00', 32), 'hex'), 202, '{}', '');
            INSERT INTO halldetect.rescorings (policy_id, selection, total)
            SELECT id, '{}', 1 FROM halldetect.policies LIMIT 1;
            INSERT INTO halldetect.scorings (audit_id, policy_id, response_score, label,
                claim_values, verdicts)
            SELECT a.id, p.id, 0.5, 'hallucinated', '{0.1}', '{supported}'
            FROM halldetect.audits a, halldetect.policies p;
            INSERT INTO halldetect.reviews (claim_id, audit_id, claim_text, verdict, reviewer,
                reviewer_verdict)
            VALUES (1, 1, 'c', 'supported', 'me', 'supported');
            INSERT INTO halldetect.api_keys (name, scopes) VALUES ('mine', '{submit,read}');
            INSERT INTO halldetect.api_key_secrets (api_key_id, sha256, expires_at)
            SELECT max(id), sha256(random()::text::bytea), expires_at
            FROM halldetect.api_keys, unnest(ARRAY[NULL, now()]) AS expires_at
            GROUP BY expires_at;
            UPDATE halldetect.audits SET api_key_id = (SELECT max(id) FROM halldetect.api_keys);
            INSERT INTO halldetect.idempotency_keys (api_key_id, key, request_sha256, status,
                headers, body)
            SELECT max(id), 'k', decode(repeat('00', 32), 'hex'), 202, '{}', ''
            FROM halldetect.api_keys;
            INSERT INTO halldetect.webhooks (url) VALUES ('https://hooks.example.org');
            INSERT INTO halldetect.webhook_secrets (webhook_id, secret, expires_at)
            SELECT max(id), sha256(random()::text::bytea), expires_at
            FROM halldetect.webhooks, unnest(ARRAY[NULL, now()]) AS expires_at
            GROUP BY expires_at;
            INSERT INTO halldetect.webhook_deliveries (webhook_id, batch_id)
            SELECT w.id, b.id FROM halldetect.webhooks AS w, halldetect.batches AS b
            ON CONFLICT DO NOTHING;
            INSERT INTO halldetect.webhook_deliveries (webhook_id, batch_id, state, attempts,
                last_attempt_at, last_status, finished_at, due_since)
            SELECT w.id, b.id, 'delivered', 1, now(), 200, now(), now()
            FROM halldetect.webhooks AS w, halldetect.batches AS b LIMIT 1
            ON CONFLICT (webhook_id, batch_id) DO UPDATE SET state = 'delivered', attempts = 1,
                last_attempt_at = now(), last_status = 200, finished_at = now(), due_since = now();
            """
        )
        for table in Base.metadata.sorted_tables:
            count = connection.execute(f"SELECT count(*) FROM {table.fullname}").fetchone()[0]
            assert count > 0, f"{table.fullname} is not covered by this test"


def test_every_revision_goes_down_and_up_again_with_data(database, service):
    fill_every_table(database, service)
    engine = make_engine(database)
    for revision in [*REVISIONS[-2::-1], "base"]:
        downgrade(database, revision)
        assert current_revision(engine) == (None if revision == "base" else revision)
        upgrade(database, "+1")
        downgrade(database, revision)
    engine.dispose()
    assert left_behind(database) == []
    upgrade(database)
    fill_every_table(database, service)
    downgrade(database, "base")
    assert left_behind(database) == []
    engine.dispose()


def test_secrets_of_webhooks_survive_going_back_and_coming_again(database, service):
    fill_every_table(database, service)
    newest = "SELECT webhook_id, secret FROM halldetect.webhook_secrets WHERE expires_at IS NULL"
    with psycopg.connect(database) as connection:
        before = connection.execute(newest).fetchall()
    assert len(before) == 1
    downgrade(database, "0009")
    with psycopg.connect(database) as connection:
        assert connection.execute("SELECT id, secret FROM halldetect.webhooks").fetchall() == before
    upgrade(database)
    with psycopg.connect(database) as connection:
        assert connection.execute(newest).fetchall() == before
        assert connection.execute("SELECT count(*) FROM halldetect.webhook_secrets").fetchone() == (
            1,
        )


def left_behind(database):
    """List schemas, types, tables, views and functions that are not the server's own."""
    with psycopg.connect(database) as connection:
        return connection.execute(
            """
            SELECT 'schema', nspname FROM pg_namespace
            WHERE nspname NOT LIKE 'pg\\_%%' AND nspname NOT IN ('public', 'information_schema')
            UNION ALL
            SELECT 'relation', relname FROM pg_class
            WHERE relnamespace = 'public'::regnamespace AND relname NOT LIKE %s
            UNION ALL
            SELECT 'type', typname FROM pg_type
            WHERE typnamespace = 'public'::regnamespace AND typname NOT LIKE %s
            UNION ALL
            SELECT 'function', proname FROM pg_proc WHERE pronamespace = 'public'::regnamespace
            """,
            (f"%{VERSION_TABLE}%", f"%{VERSION_TABLE}%"),
        ).fetchall()


def test_an_old_database_is_told_from_a_current_one(empty_database):
    engine = make_engine(empty_database)
    assert current_revision(engine) is None
    upgrade(empty_database, REVISIONS[0])
    assert current_revision(engine) == REVISIONS[0]
    upgrade(empty_database)
    assert current_revision(engine) == head_revision() == REVISIONS[-1]
    engine.dispose()


@pytest.mark.parametrize("migrate", [upgrade, lambda url: downgrade(url, "base")])
def test_tables_of_a_newer_program_are_left_as_they_are(database, migrate):
    with psycopg.connect(database) as connection:
        connection.execute(f"UPDATE {VERSION_TABLE} SET version_num = '9999'")
    with pytest.raises(SchemaMismatch, match=f"9999 .* none beyond {head_revision()}: start the"):
        migrate(database)
    engine = make_engine(database)
    assert current_revision(engine) == "9999"
    engine.dispose()


def test_two_programs_may_migrate_at_once(empty_database):
    from concurrent.futures import ThreadPoolExecutor

    with ThreadPoolExecutor(2) as pool:
        for done in [pool.submit(upgrade, empty_database) for _ in range(2)]:
            done.result()
    engine = make_engine(empty_database)
    assert current_revision(engine) == head_revision()
    engine.dispose()


@pytest.mark.parametrize(
    ("statement", "constraint"),
    [
        ("UPDATE halldetect.audits SET status = 'failed'", "error_if_failed"),
        ("UPDATE halldetect.audits SET status = 'completed'", "_if_done"),
        ("UPDATE halldetect.audits SET status = 'running'", "ck_audits_status"),
        ("UPDATE halldetect.audits SET lease_owner = 'w'", "lease_whole"),
        ("UPDATE halldetect.audits SET fedscore = 0.5, label = 'faithful'", "score_if_scored"),
        ("UPDATE halldetect.audits SET priority = 101", "priority_range"),
        ("UPDATE halldetect.audits SET metadata = '[]'", "metadata_object"),
        ("UPDATE halldetect.audits SET finished_at = now()", "finished_if_final"),
        ("UPDATE halldetect.audits SET batch_id = NULL", "line_in_batch"),
        ("UPDATE halldetect.audits SET supported = 1", "counts_if_done"),
        ("UPDATE halldetect.batches SET total = 0", "ck_batches_not_empty"),
        ("UPDATE halldetect.documents SET sha256 = '\\x00'", "sha256_length"),
        ("DELETE FROM halldetect.documents", "fk_audits_document_id"),
        ("DELETE FROM halldetect.policies", "never change"),
        ("UPDATE halldetect.policies SET rules = '{}'", "never change"),
        ("TRUNCATE halldetect.policies CASCADE", "halldetect.policies never change"),
        ("TRUNCATE halldetect.reviews", "halldetect.reviews never change"),
        (f"{NEW_SECRET} (1, '\\x00', NULL)", "ck_api_key_secrets_sha256_length"),
        (f"{NEW_KEY} ('a', '{{}}')", "ck_api_keys_scopes_known"),
        (f"{NEW_KEY} ('a', '{{read,all}}')", "ck_api_keys_scopes_known"),
        (f"{NEW_KEY} ('', '{{read}}')", "ck_api_keys_name_length"),
        ("UPDATE halldetect.audits SET api_key_id = 99", "fk_audits_api_key_id"),
        (f"{NEW_WEBHOOK} ('')", "ck_webhooks_url_length"),
        (NEW_WEBHOOK_SECRET.format("'\\x00', NULL"), "ck_webhook_secrets_secret_length"),
        (
            NEW_WEBHOOK_SECRET.format("sha256(''), unnest(ARRAY[NULL, NULL]::timestamptz[])"),
            "uq_webhook_secrets_newest",
        ),
        *(
            (NEW_DELIVERY.format(values), f"ck_webhook_deliveries_{constraint}")
            for values, constraint in (
                ("'sent', 0, NULL, NULL, NULL, NULL, NULL", "state"),
                ("'due', -1, now(), now(), NULL, NULL, NULL", "attempts_not_negative"),
                ("'waiting', 0, now(), NULL, NULL, NULL, NULL", "next_if_due"),
                ("'due', 0, NULL, NULL, NULL, NULL, NULL", "next_if_due"),
                ("'delivered', 1, NULL, now(), 200::smallint, NULL, NULL", "finished_if_final"),
                ("'due', 0, now(), NULL, NULL, NULL, now()", "finished_if_final"),
                ("'waiting', 1, NULL, now(), NULL, NULL, NULL", "attempted_if_due"),
                ("'due', 1, now(), NULL, NULL, NULL, NULL", "attempted_if_due"),
                ("'due', 0, now(), NULL, 500::smallint, 'e', NULL", "attempted_if_due"),
                ("'due', 1, now(), now(), 100::smallint, 'e', NULL", "status_range"),
                ("'delivered', 1, NULL, now(), 500::smallint, NULL, now()", "success_if_delivered"),
                ("'delivered', 1, NULL, now(), NULL, NULL, now()", "success_if_delivered"),
                ("'delivered', 1, NULL, now(), 200::smallint, 'e', now()", "success_if_delivered"),
                ("'failed', 1, NULL, now(), NULL, NULL, now()", "error_if_failed"),
                ("'failed', 0, NULL, NULL, NULL, 'e', now()", "waiting_or_due_since"),
            )
        ),
    ],
)
def test_the_database_refuses_what_is_impossible(database, service, statement, constraint):
    service.submit("It waits.")
    with (
        psycopg.connect(database) as connection,
        pytest.raises(psycopg.errors.IntegrityError, match=constraint),
    ):
        connection.execute(statement)


@pytest.mark.parametrize(
    "row",
    [
        "'{1.1}', '{0}', '{0}'",
        "'{0}', '{-0.1}', '{0}'",
        "'{0}', '{0}', '{NaN}'",
        "'{0}', '{}', '{0}'",
    ],
)
def test_only_probabilities_are_stored_as_probabilities(database, service, row):
    service.submit("The mill opened in 1900.")
    service.run()
    with (
        psycopg.connect(database) as connection,
        pytest.raises(psycopg.errors.CheckViolation, match="ck_probabilities"),
    ):
        connection.execute(
            "INSERT INTO halldetect.probabilities"
            f" SELECT month, id, 99, {row} FROM halldetect.audits"
        )


@pytest.mark.parametrize(
    ("action", "revision"),
    [(downgrade, "9999"), (upgrade, "9999"), (downgrade, "-99"), (downgrade, "head:base")],
)
def test_a_revision_that_is_none_is_refused_and_those_there_are_are_named(
    database, action, revision
):
    with pytest.raises(InputError, match=f"base, {', '.join(REVISIONS)}$") as refused:
        action(database, revision)
    assert f"there is no revision {revision!r}" in str(refused.value)
    engine = make_engine(database)
    assert current_revision(engine) == head_revision()
    engine.dispose()
