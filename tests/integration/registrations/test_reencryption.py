"""A new EVENTHUB_SECRET_KEY: secrets are encrypted again under it."""

import os
import subprocess
from collections.abc import Iterator

import pytest

from registrations.endpoints.secrets import Keyring
from tests import forked
from tests.integration.callbacks_world import CallbacksWorld, callbacks_world

OLD, NEW, LOST = ("old" * 12, "new" * 12, "lost" * 12)
ENDPOINTS = 1_100  # more than two batches


@pytest.fixture(scope="module")
def database() -> Iterator[CallbacksWorld]:
    with callbacks_world() as world:
        yield world


@pytest.fixture
def world(database: CallbacksWorld) -> CallbacksWorld:
    database.sql("DELETE FROM endpoint_secrets")
    database.sql("DELETE FROM endpoints")
    return database


def add(world: CallbacksWorld, key: str, count: int) -> list[int]:
    """Insert endpoints, each with a current and a previous secret."""
    sealed = Keyring((key,)).seal(b"s" * 32)
    rows = world.sql(
        "WITH added AS (INSERT INTO endpoints (zone_id, client_id, url, secret)"
        " SELECT zone_id, id, 'https://a.example/', %s FROM clients, generate_series(1, %s)"
        " WHERE id = %s RETURNING id)"
        " INSERT INTO endpoint_secrets (endpoint_id, kind, sealed, expires_at)"
        " SELECT id, 'v1', %s, CASE WHEN n = 1 THEN now() + interval '1 day' END"
        " FROM added, generate_series(0, 1) AS n RETURNING endpoint_id",
        *(sealed, count, world.client_id, sealed),
    )
    return sorted({row[0] for row in rows})


def run(world: CallbacksWorld, key: str, *former: str) -> subprocess.CompletedProcess[str]:
    settings = {
        "DATABASE_URL": world.url,
        "EVENTHUB_SECRET_KEY": key,
        "EVENTHUB_SECRET_KEY_FALLBACKS": ",".join(former),
    }
    return forked.manage({**os.environ, **settings}, "reencrypt")


def under(world: CallbacksWorld, key: str) -> list[bool]:
    """Return for each stored secret whether the key alone decrypts it."""
    keyring = Keyring((key, "other" * 8, OLD, NEW, LOST))
    query = "SELECT secret FROM endpoints UNION ALL SELECT sealed FROM endpoint_secrets"
    return [keyring.is_current(bytes(row[0])) for row in world.sql(query)]


def test_every_secret_is_encrypted_again_and_a_second_run_changes_nothing(
    world: CallbacksWorld,
) -> None:
    add(world, OLD, ENDPOINTS)
    changed = world.sql("SELECT max(changed_at) FROM endpoints")
    first = run(world, NEW, LOST, OLD)
    assert first.returncode == 0, first.stderr
    assert f"{3 * ENDPOINTS:,} secrets read, {3 * ENDPOINTS:,} encrypted again" in first.stdout
    assert first.stdout.count("\n") > 5  # progress
    assert all(under(world, NEW))
    assert world.sql("SELECT max(changed_at) FROM endpoints") == changed
    again = run(world, NEW)
    assert again.returncode == 0, again.stderr
    assert f"{3 * ENDPOINTS:,} secrets read, 0 encrypted again" in again.stdout


def test_an_interrupted_run_is_continued(world: CallbacksWorld) -> None:
    add(world, OLD, 5)
    add(world, NEW, 5)
    done = run(world, NEW, OLD)
    assert done.returncode == 0, done.stderr
    assert "30 secrets read, 15 encrypted again" in done.stdout
    assert all(under(world, NEW))


def test_secrets_under_none_of_the_keys_are_listed_and_left(world: CallbacksWorld) -> None:
    add(world, OLD, 2)
    [lost] = add(world, LOST, 1)
    done = run(world, NEW, OLD)
    assert done.returncode == 1
    refusal = "Secrets of 1 endpoints, sources and connectors are encrypted under none of the keys:"
    assert f"{refusal} endpoint {lost}." in done.stderr
    assert "EVENTHUB_SECRET_KEY_FALLBACKS" in done.stderr
    assert under(world, NEW).count(True) == 6
    assert under(world, LOST).count(True) == 3
