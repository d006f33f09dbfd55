"""The announcement of members: once each, and lost only if a heartbeat could have been received."""

import asyncio
from collections.abc import Iterator
from typing import Any
from uuid import UUID, uuid4

import psycopg
import pytest

from eventhub.event.protobuf_codec import decode
from eventhub.monitoring.heartbeat import SQL
from eventhub.monitoring.watch import announce_members
from eventhub.postgresql.connections import connect
from tests.databases import migrated_database

LONG_S = 10_000.0


@pytest.fixture
def url() -> Iterator[str]:
    with migrated_database("members") as found:
        yield found


def sql(url: str, statement: str, *values: Any) -> list[tuple[Any, ...]]:
    with psycopg.connect(url, autocommit=True) as session:
        cursor = session.execute(statement.encode(), values)
        return cursor.fetchall() if cursor.description else []


def beat(url: str, member: UUID, kind: str = "worker") -> None:
    values = {"id": member, "kind": kind, "node": "a", "pid": 7, "version": "1", "age_s": 60.0}
    values["settings"] = None
    with psycopg.connect(url, autocommit=True, options="-c lock_timeout=2s") as session:
        session.execute(SQL["heartbeat"], values)


def leave(url: str, member: UUID) -> None:
    with psycopg.connect(url, autocommit=True) as session:
        session.execute(SQL["leave"], {"id": member})


def silence(url: str) -> None:
    sql(url, "UPDATE members SET last_seen_at = now() - interval '1 hour'")


async def announce(url: str, watched_s: float = LONG_S, sessions: int = 1) -> None:
    async def once() -> None:
        async with await connect(url, name="test") as session:
            await announce_members(session, watched_s=watched_s)

    await asyncio.gather(*(once() for _ in range(sessions)))


def events(url: str) -> list[tuple[str, str]]:
    rows = sql(url, "SELECT payload FROM events ORDER BY segment_id, sequence")
    found = [decode(payload) for (payload,) in rows]
    return [
        (one.attributes["change"], one.attributes.get("reason", ""))
        for one in found
        if one.type.startswith("member.")
    ]


async def test_a_member_joins_once_however_many_look_for_it_and_keeps_its_start(url: str) -> None:
    member = uuid4()
    beat(url, member)
    [(started,)] = sql(url, "SELECT started_at < now() - interval '59 s' FROM members")
    assert started
    await announce(url, sessions=3)
    beat(url, member)
    await announce(url)
    assert events(url) == [("join", "")]


async def test_a_member_that_ends_leaves_also_before_anybody_noticed_that_it_joined(
    url: str,
) -> None:
    member = uuid4()
    beat(url, member)
    leave(url, member)
    await announce(url, sessions=3)
    await announce(url)
    assert events(url) == [("join", ""), ("leave", "left")]
    assert sql(url, "SELECT * FROM members") == []


async def test_after_an_outage_members_have_the_time_for_a_heartbeat(url: str) -> None:
    beat(url, uuid4())
    silence(url)
    await announce(url, watched_s=1.0)
    assert events(url) == [("join", "")]
    await announce(url, sessions=3)
    assert events(url) == [("join", ""), ("leave", "lost")]


async def test_a_lost_member_that_goes_on_joins_again(url: str) -> None:
    member = uuid4()
    beat(url, member)
    silence(url)
    await announce(url)
    beat(url, member)
    await announce(url)
    assert events(url) == [("join", ""), ("leave", "lost"), ("join", "")]


async def test_a_change_whose_event_was_not_appended_is_announced_later(url: str) -> None:
    """The acting process is killed before the commit: its session rolls back."""
    beat(url, uuid4())
    async with await connect(url, name="test") as session:
        with pytest.raises(ZeroDivisionError):
            async with session.transaction():
                await announce_members(session, watched_s=LONG_S)
                raise ZeroDivisionError
    assert events(url) == []
    await announce(url)
    assert events(url) == [("join", "")]


def test_a_heartbeat_does_not_wait_for_an_announcement(url: str) -> None:
    """Leases of streams and of deliveries are renewed on the same connection."""
    joining, leaving = uuid4(), uuid4()
    beat(url, joining)
    beat(url, leaving)
    leave(url, leaving)
    values = {"watched_s": LONG_S, "lost_s": LONG_S}
    with psycopg.connect(url) as announcing:
        announcing.execute(SQL["join"])
        announcing.execute(SQL["depart"], values)
        beat(url, joining)
        beat(url, leaving)
    [(known,)] = sql(url, "SELECT id FROM members")
    assert known == joining
    beat(url, leaving)  # it goes on, and joins again
    assert sql(url, "SELECT count(*) FROM members") == [(2,)]
