"""What a source of pulls gives: events that were handed out, with their frames; and what it is
opened for. Plain module.
"""

import asyncio
from typing import Any, NamedTuple
from uuid import UUID

from delivery.listening.frames import EventHeader, FrameFormat, FrameSubject, T
from delivery.listening.protocol import MatchedRegistrations
from delivery.listening.services import ListenerServices
from delivery.sessions.attachments import SessionSettings
from delivery.sessions.session_reader import SessionReader
from eventhub.eventlog.stored import StoredEvent


class PulledQueue(NamedTuple):
    """A session that is pulled, or that of a group whose members share by a key (a path; "": by
    none). `attachment`: that of its pulls.
    """

    settings: SessionSettings
    attachment: UUID
    share_by: str = ""


class PulledEvent(NamedTuple):
    """An event that was handed out to a pull."""

    reader: SessionReader
    stored: StoredEvent
    matched: MatchedRegistrations
    attempt: int
    disorder: str = ""

    def frame(self, services: ListenerServices, form: FrameFormat[T], session: str = "") -> T:
        """Return its frame, which names its stream and the attempt, over a websocket also the
        session.
        """
        reader, stored, attempt = self.reader, self.stored, self.attempt
        types = services.types.evolved(reader.info.zone_id)
        subject = FrameSubject("", session, reader.info.name).json
        if self.disorder:
            subject = f'{subject}"out_of_order":"{self.disorder}",'
        new = attempt == 1 and stored.sequence > reader.state.started_head
        header = EventHeader(
            subject,
            0,
            "live" if new else "recovery",
            self.matched.ids,
            types.newest_for(stored.event) if types else "",
            variables=self.matched.variables,
            attempt=attempt,
        )
        return form.event(header, reader.shaped(stored, self.matched))


class SharedWaker(asyncio.Event):
    """Wakes all pulls that wait for events of one session."""

    def __init__(self) -> None:
        super().__init__()
        self.waiting: set[asyncio.Event] = set()

    def set(self) -> None:
        super().set()
        for each in self.waiting:
            each.set()


class MessageFields:
    """A frame format of messages alone, as they are."""

    def event(self, header: EventHeader, stored: StoredEvent) -> dict[str, Any]:
        raise NotImplementedError

    def compiled(self, subject: str, segment: str) -> None:
        raise NotImplementedError

    def state(self, subject: str, key: str, stored: StoredEvent) -> dict[str, Any]:
        raise NotImplementedError

    def message(self, fields: dict[str, Any]) -> dict[str, Any]:
        return fields


MESSAGES = MessageFields()
