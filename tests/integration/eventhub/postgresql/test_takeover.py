"""The takeover of a hub from before 0.1 with all its data (`manage.py takeover`)."""

import gzip
import json
import subprocess
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path
from typing import Any, LiteralString, NamedTuple

import psycopg
import pytest
from psycopg.conninfo import conninfo_to_dict

from eventhub.supervisor.embedded import embedded
from tests.databases import WAITING, migrated_database, new_database
from tests.forked import POLL_S, manage_given
from tests.integration.eventhub.postgresql.test_models import described
from tests.integration.up_process import EMBEDDED_VARIABLES, EXPORT, HOME, Hub, manage
from tests.live import Answer, call

DUMP = Path(__file__).with_name("before_0_1.sql.gz")
PARTS = ("--web", "1", "--forwarders", "1", "--workers", "1")
DJANGOS = ("auth_", "django_")
# the same rows in both, under the names of their tables and columns
ENDPOINT = (
    "id, zone_id, client_id, url, description, secret, ordered, format, enabled, reason, created_at"
    ", changed_at, deleted_at"
)
SAME = {
    "SELECT uuid, stream_id, group_id, first, last, bytes, tier, archive, left_why FROM segments":
    "SELECT uuid, stream_id, partition_id, first, last, bytes, tier, archive_path, removal_reason"
    " FROM segments",
    "SELECT group_id, segment_id, sequence, mask, appended_at, payload FROM events":
    "SELECT partition_id, segment_id, sequence, mask, appended_at, payload FROM events",
    "SELECT group_id, endpoint_id, segment_id, sequence, registrations, shape, state, attempts"
    ", next_attempt_at, (SELECT zone_id FROM endpoints WHERE id = endpoint_id) FROM deliveries":
    "SELECT partition_id, endpoint_id, segment_id, sequence, registrations, version_ids"
    ", state, attempts, next_attempt_at, zone_id FROM deliveries",
    "SELECT at, endpoint_id, segment_id, sequence, number, outcome, response FROM attempts":
    "SELECT attempted_at, endpoint_id, segment_id, sequence, number, outcome, response"
    " FROM attempts",
    "SELECT at, id, client_id, CASE door WHEN 'many' THEN 'unrecorded' ELSE door END, told"
    ", seen_at, CASE why WHEN 'left' THEN 'disconnected' ELSE why END FROM listens":
    "SELECT started_at, id, client_id, transport, delivered_events, updated_at, end_reason"
    " FROM listeners",
    "SELECT slot, stream_id, token, segment, sequence FROM tokens":
    "SELECT slot, stream_id, digest, segment, sequence FROM idempotency_digests",
    "SELECT stream_id, client_id, incarnation, highest FROM producers":
    "SELECT stream_id, client_id, incarnation, highest_number FROM producers",
    "SELECT client_id, registrations FROM sessions":
    "SELECT client_id, registrations FROM registration_owners",
    "SELECT id, zone_id, client_id, key, created_at, deleted_at FROM registrations":
    "SELECT id, zone_id, client_id, key, created_at, deleted_at FROM registrations",
    f"SELECT {ENDPOINT} FROM endpoints": f"SELECT {ENDPOINT} FROM endpoints",
    "SELECT job, state, asked_by, asked_at, params FROM job_runs":
    "SELECT job, state, requested_by, requested_at, params FROM job_runs",
    "SELECT *, CASE id WHEN 1 THEN 'Ev1' END AS variable FROM registration_versions":
    "SELECT id, registration_id, number, streams, language, filter, endpoint_id, suspended"
    ", group_id, report, digest, from_barrier, until_barrier, variable FROM registration_versions",
    "SELECT id, name FROM zones": "SELECT id, name FROM zones",
    "SELECT id, client_id, url, description, secret, ordered, format, enabled, reason"
    " FROM endpoints":
    "SELECT id, client_id, url, description, secret, ordered, format, enabled, reason"
    " FROM endpoints",
    "SELECT id, secret, created_at FROM endpoints":
    "SELECT endpoint_id, sealed, created_at FROM endpoint_secrets",
} | {
    f"SELECT * FROM {table}": f"SELECT * FROM {table}"
    for table in ("barriers", "keyed_state", "suspensions")
}  # fmt: skip


@pytest.fixture(scope="module")
def before() -> Iterator[str]:
    """Return the URL of a database of a hub from before 0.1, which tests must not change."""
    with new_database("before") as url:
        load(url)
        yield url


def load(url: str) -> None:
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute(gzip.decompress(DUMP.read_bytes()))
        for id, filter in ((1, "{ Ev1: A::B | $c > 5}"), (2, "A::B")):
            update = "UPDATE public.registration_versions SET language = 'ready', filter = %s"
            connection.execute(f"{update} WHERE id = %s", (json.dumps(filter), id))


def taken_over(url: str) -> subprocess.CompletedProcess[str]:
    return manage_given("takeover", DATABASE_URL=url)


def rows(url: str, query: str) -> list[str]:
    """Return a value as text, with "never" as the epoch."""
    with psycopg.connect(url) as connection:
        found = connection.execute(f"SELECT t::text FROM ({query}) AS t ORDER BY 1".encode())
        return [row[0].replace("-infinity", '"1970-01-01 00:00:00+00"') for row in found]


def tables(url: str) -> dict[str, int]:
    """Return the number of rows of each table that is no partition."""
    names = "SELECT relname FROM pg_class WHERE relkind IN ('r', 'p') AND NOT relispartition"
    with psycopg.connect(url) as connection:
        found = connection.execute(f"{names} AND relnamespace = 'public'::regnamespace".encode())
        return {
            name: connection.execute(f'SELECT count(*) FROM "{name}"'.encode()).fetchall()[0][0]
            for (name,) in found.fetchall()
            if not name.startswith(DJANGOS)
        }


def test_every_row_is_retained_and_the_tables_are_those_of_this_version(before: str) -> None:
    with ExitStack() as stack:
        url = stack.enter_context(new_database("taken"))
        fresh = stack.enter_context(migrated_database("fresh"))
        load(url)
        done = taken_over(url)
        assert done.returncode == 0, done.stderr
        assert "events: 1,153 rows\n" in done.stdout
        found, expected = described(url), described(fresh)
        for part in found:
            ours = (
                {row for row in each[part] if not row[0].startswith(DJANGOS)}
                for each in (found, expected)
            )
            assert next(ours) == next(ours), part
        counts, old = tables(url), tables(before)
        renamed = {"archive_tries": "archive_attempts", "dear_filters": "expensive_filters",
                   "groups": "event_partitions", "listens": "listeners",
                   "sessions": "registration_owners",
                   "tokens": "idempotency_digests"}  # fmt: skip
        assert {renamed.get(name, name): count for name, count in old.items()} == {
            name: counts[renamed.get(name, name)] if name != "incarnation" else old[name]
            for name in (renamed.get(each, each) for each in old)
        }
        for was, now in SAME.items():
            there = rows(before, was)
            assert there, was
            assert rows(url, now) == there, now


def test_a_refused_takeover_changes_nothing(before: str) -> None:
    """First a session is connected, like the old hub's; then a table is of an older version."""
    with new_database("taken") as url:
        load(url)
        as_it_was = described(url), tables(url)
        with psycopg.connect(url, application_name="eventhub append") as connection:
            pid = connection.info.backend_pid
            done = taken_over(url)
            assert done.returncode == 1
            assert f"in use by eventhub append (pid {pid}). Nothing was changed." in done.stderr
        with psycopg.connect(url) as connection:
            connection.execute("ALTER TABLE tokens DROP COLUMN sequence")
        done = taken_over(url)
        assert done.returncode == 1
        assert "run the last version before 0.1 on it once" in done.stderr
        assert tables(url) == as_it_was[1]
        assert described(url)["table"] == as_it_was[0]["table"]


STRANGERS: dict[LiteralString, str] = {
    "CREATE TABLE invoices (id integer)": "table invoices",
    "CREATE TABLE auth_invoices (id integer)": "table auth_invoices",
    "CREATE TABLE more () INHERITS (zones)": "table more",
    "CREATE VIEW desk AS SELECT * FROM zones": "view desk",
    "CREATE MATERIALIZED VIEW sums AS SELECT count(*) FROM zones": "materialized view sums",
    "CREATE SCHEMA reports": "",
    "CREATE VIEW reports.desk AS SELECT * FROM zones": "view reports.desk",
    "CREATE SEQUENCE invoice_numbers": "sequence invoice_numbers",
    "CREATE FUNCTION taxed(integer) RETURNS integer LANGUAGE sql RETURN 2 * $1":
    "function taxed(integer)",
    "CREATE TYPE colour AS ENUM ('red')": "type colour",
    "CREATE TRIGGER same BEFORE UPDATE ON zones FOR EACH ROW EXECUTE FUNCTION"
    " suppress_redundant_updates_trigger()": "trigger same on table zones",
}  # fmt: skip


def test_foreign_objects_are_named_and_not_dropped(before: str) -> None:
    """Foreign objects were dropped with the old tables, without a message."""
    with new_database("taken", str(conninfo_to_dict(before)["dbname"])) as url:
        with psycopg.connect(url) as connection:
            for made in STRANGERS:
                connection.execute(made)
        as_it_was = described(url)
        done = taken_over(url)
        assert done.returncode == 1
        named = ", ".join(sorted(filter(None, STRANGERS.values())))
        assert f"not the hub's and would be lost: {named}. Nothing was changed." in done.stderr
        assert described(url) == as_it_was


def test_objects_that_depend_on_the_old_tables_are_not_dropped(before: str) -> None:
    """The object is a function in another schema whose body is parsed."""
    with new_database("taken", str(conninfo_to_dict(before)["dbname"])) as url:
        with psycopg.connect(url) as connection:
            connection.execute(
                "CREATE SCHEMA reports; CREATE FUNCTION reports.zones() RETURNS bigint LANGUAGE sql"
                " BEGIN ATOMIC SELECT count(*) FROM zones; END"
            )
        done = taken_over(url)
        assert done.returncode == 1
        assert "function reports.zones() depends on table" in done.stderr
        assert "Nothing was changed. Drop that" in done.stderr
        assert "last version before" not in done.stderr
        assert rows(url, "SELECT reports.zones()") == rows(before, "SELECT count(*) FROM zones")


class Twice(NamedTuple):
    """A database that two takeovers found at once, and what they reported."""

    url: str
    done: subprocess.CompletedProcess[str]
    late: subprocess.CompletedProcess[str]


@pytest.fixture(scope="module")
def twice(before: str) -> Iterator[Twice]:
    waiting = f"SELECT count(*) FROM ({WAITING} AND wait_event = 'advisory') AS w"
    with new_database("taken", str(conninfo_to_dict(before)["dbname"])) as url:
        with psycopg.connect(url) as connection:
            connection.execute("CREATE EXTENSION vector")
            connection.execute("CREATE TABLE models AS SELECT 7 AS size")
            connection.execute("ALTER EXTENSION vector ADD TABLE models")
            connection.execute("GRANT SELECT ON zones TO PUBLIC")
        with psycopg.connect(url, autocommit=True) as connection, ThreadPoolExecutor(2) as pool:
            connection.execute("SELECT pg_advisory_lock(4711017)")  # as `migrate` does
            both = [pool.submit(taken_over, url) for _ in range(2)]
            until = time.monotonic() + 60
            while rows(url, waiting) != ["(2)"]:
                assert time.monotonic() < until
                time.sleep(POLL_S)
            connection.close()
            done, late = sorted((one.result() for one in both), key=lambda one: one.returncode)
        yield Twice(url, done, late)


def test_extensions_stay_and_dropped_grants_are_reported(twice: Twice) -> None:
    assert twice.done.returncode == 0, twice.done.stderr
    assert "The rights of PUBLIC on the old tables were dropped with them" in twice.done.stdout
    assert rows(twice.url, "SELECT '[1]'::vector, size FROM models") == ["([1],7)"]


def test_of_two_takeovers_at_once_the_second_reports_that_none_is_needed(
    twice: Twice, before: str
) -> None:
    """The second one advised to run an old version on the database just taken over."""
    assert twice.done.returncode == 0, twice.done.stderr
    assert "waiting for it to end" in twice.late.stdout
    assert twice.late.returncode == 1
    assert twice.late.stderr.startswith("CommandError: This database is already of 0.1 or newer")
    assert tables(twice.url)["zones"] == tables(before)["zones"]


def test_only_a_database_from_before_0_1_is_taken_over() -> None:
    with migrated_database("new") as url, new_database("empty") as empty:
        done = taken_over(url)
        assert done.returncode == 1
        assert "already of 0.1 or newer. Nothing was changed" in done.stderr
        done = taken_over(empty)
        assert done.returncode == 1
        assert "not a database from before 0.1. Nothing was changed" in done.stderr


def test_a_folder_without_a_database_is_refused_and_not_created(tmp_path: Path) -> None:
    data = tmp_path / "vra"
    done = manage_given("takeover", "--data", str(data))
    assert done.returncode == 1
    assert f"{data / 'postgres' / 'PG_VERSION'} is missing. Nothing was changed." in done.stderr
    assert not data.exists()


def test_a_folder_together_with_a_database_url_is_refused(before: str, tmp_path: Path) -> None:
    """The folder was ignored, and the other database was taken over."""
    done = manage_given("takeover", "--data", str(tmp_path), DATABASE_URL=before)
    assert done.returncode == 1
    assert "--data and DATABASE_URL name two databases. Nothing was changed." in done.stderr


@pytest.mark.slow
def test_the_hub_continues_after_the_takeover(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`up` first refuses the data folder; after the takeover all data is there."""
    data = tmp_path / "var"
    for name in EMBEDDED_VARIABLES:
        monkeypatch.delenv(name, raising=False)
    with embedded(data, lasting=True) as given:
        load(given["DATABASE_URL"])
        with psycopg.connect(given["DATABASE_URL"]) as connection:  # else they expire every 4th day
            connection.execute(
                "UPDATE public.tokens SET slot = extract(epoch FROM now())::bigint / 86400 % 4"
            )
    refused = Hub(data, *PARTS, script=HOME / "manage.py")
    assert refused.wait_end() == 1
    assert "run `manage.py takeover` once" in refused.text
    assert "The database is taken over; start the hub." in manage("takeover", "--data", str(data))
    hub = Hub(data, *PARTS, script=HOME / "manage.py").wait_ready()
    try:
        env = {name: word.strip("'") for name, word in EXPORT.findall(hub.text)}
        words = [word for one in ("emit", "listen", "manage") for word in ("--grant", f"{one}:*")]
        key = manage("createkey", "desk", "--zone", "shop", *words, **env).strip()

        def ask(method: str, path: str, body: Any = None) -> Answer:
            return call(
                hub.url, method, f"/v1{path}", body, headers={"Authorization": f"Bearer {key}"}
            )

        for stream, last in (("ledger", 208), ("fast", 200)):
            found = ask("GET", f"/streams/{stream}/events?from=oldest&limit=1000").json["events"]
            assert [each["sequence"] for each in found] == list(range(1, last + 1))
        again = [
            {"domain": "shop", "type": "t", "id": "i-0-0", "attributes": {"n": 0}},
            {"domain": "shop", "type": "t", "id": {"incarnation": 1, "sequence": 8}},
            {"domain": "shop", "type": "t", "attributes": {"n": 1}},
        ]
        emitted = ask("POST", "/streams/ledger/events", again).json
        assert [each["sequence"] for each in emitted["duplicates"]] == [1, 208]
        assert [(each["first"], each["last"]) for each in emitted["ranges"]] == [(209, 209)]
        one = ask("POST", "/registrations", [{"streams": ["orders"], "attributes": {"n": 1}}])
        assert one.json["items"][0]["id"] == 9
        state = ask("GET", "/streams/orders/state?limit=1000").json["items"]
        assert len(state) == 140
        endpoints = ask("GET", "/endpoints").json["items"]
        pending = ask("GET", f"/deliveries?endpoint={endpoints[0]['id']}&state=pending").json
        assert pending["items"]
    finally:
        hub.interrupt()
        hub.wait_end()
