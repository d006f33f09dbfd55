"""What a connected session knows of acknowledgements over HTTP."""

import asyncio
from uuid import UUID

from delivery.sessions.attachments import SessionPosition, SessionSettings
from delivery.sessions.connected import ConnectedSession
from eventhub.eventlog.stored import Cursor

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
