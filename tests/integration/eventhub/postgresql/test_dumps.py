"""A dump is of a hub's database of this version, and replaces no other database."""

import os
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest

from eventhub.supervisor import dump
from eventhub.supervisor.dump import DumpFailed
from tests.databases import migrated_database, new_database
from tests.forked import manage_given as manage


def execute(url: str, statement: str) -> list[tuple[object, ...]]:
    with psycopg.connect(url, autocommit=True) as connection:
        answer = connection.execute(statement)
        return answer.fetchall() if answer.description else []


@pytest.fixture(scope="module")
def shop() -> Iterator[str]:
    """Return the URL of another program's database."""
    with new_database("shop") as url:
        execute(url, "CREATE TABLE customers AS SELECT 1 AS id")
        yield url


@pytest.fixture(scope="module")
def hub() -> Iterator[str]:
    with migrated_database("hub") as url:
        yield url


def test_dump_of_another_database_is_neither_written_nor_restored(
    shop: str, hub: str, tmp_path: Path
) -> None:
    """The dump replaced the hub's tables, and was committed before any check."""
    file = tmp_path / "shop.dump"
    with pytest.raises(DumpFailed, match="no tables of a hub"):
        dump.write(shop, file)
    assert list(tmp_path.iterdir()) == []
    with file.open("wb") as out:
        dump._run(shop, "pg_dump", "--format=custom", out=out)
    with pytest.raises(DumpFailed, match="not a dump of a hub's database; nothing was changed"):
        dump.restore(hub, file)
    assert execute(hub, "SELECT to_regclass('streams')::text") == [("streams",)]


def test_dump_of_another_version_is_not_restored(hub: str, tmp_path: Path) -> None:
    """Afterwards the hub refused its own data folder."""
    with migrated_database("other") as other:
        execute(other, "UPDATE schema_digests SET digest = 'x' WHERE app = 'delivery'")
        dump.write(other, tmp_path / "other.dump")
    with pytest.raises(DumpFailed, match="another version of the hub; nothing was changed"):
        dump.restore(hub, tmp_path / "other.dump")
    assert execute(hub, "SELECT 1 FROM schema_digests WHERE digest = 'x'") == []


def test_database_of_another_program_is_left_unchanged(shop: str, hub: str, tmp_path: Path) -> None:
    """A wrong DATABASE_URL: a restore dropped its tables, and `migrate` created others among them
    or failed half-way."""
    dump.write(hub, tmp_path / "hub.dump")
    with pytest.raises(DumpFailed, match=r"not a hub's \(customers\). Nothing was changed"):
        dump.restore(shop, tmp_path / "hub.dump")
    for words in (("boot", "--migrate"), ("restored",)):
        done = manage(*words, DATABASE_URL=shop, DATABASE_DIRECT_URL=shop)
        assert done.returncode == os.EX_CONFIG, done.stderr
        assert "Traceback" not in done.stderr
    tables = execute(
        shop, "SELECT relname FROM pg_class WHERE relnamespace = 'public'::regnamespace"
    )
    assert tables == [("customers",)]
