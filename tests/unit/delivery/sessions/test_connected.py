"""What connected sessions know of acknowledgements over HTTP, and of new registrations."""

import asyncio
from typing import cast
from uuid import UUID

from delivery.sessions.attachments import SessionPosition, SessionSettings
from delivery.sessions.connected import ConnectedSession
from delivery.sessions.connected_sessions import ConnectedSessions
from eventhub.eventlog.log import Log
from eventhub.eventlog.stored import Cursor
from registrations.catalog import SessionOwner
from registrations.feed import CatalogChange, Feed

SETTINGS = SessionSettings(1, "s", "consumer", None, False, "reliable", "fifo", {}, 100)


def test_acknowledgements_are_not_known_while_a_stream_is_still_to_be_started() -> None:
    """Its reader starts from an older position, which would be saved over what was acknowledged."""
    session = ConnectedSession(SETTINGS, UUID(int=1), asyncio.Event())
    position = SessionPosition(7, "orders", Cursor("segment", 4), [])
    assert session.acknowledge_elsewhere([position], 3) == []
    assert session.acknowledgements == 0
    session.known_streams.add(7)  # it was refused
    assert session.acknowledge_elsewhere([position], 3) == []
    assert session.acknowledgements == 3


def test_a_registration_that_comes_while_sessions_are_connected_is_noticed_by_its_own() -> None:
    """Their positions may have been read before it, and they are not subscribed yet."""
    feed = Feed(cast(Log, None))
    sessions = ConnectedSessions(feed)
    own, other = (
        ConnectedSession(SETTINGS._replace(id=id), UUID(int=id), asyncio.Event()) for id in (1, 2)
    )
    with sessions.changes() as changes:
        for notice in [*feed.listeners]:
            notice(CatalogChange(registration=5, barrier=9, owner=SessionOwner(1)))
        for session in (own, other):
            sessions.add(session, changes)
    assert [one.may_have_new_streams for one in (own, other)] == [True, False]
    assert [one.waker.is_set() for one in (own, other)] == [True, False]
    assert not feed.listeners
