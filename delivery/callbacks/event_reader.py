"""Reads the events of deliveries: from their partition, or after they left that, from the log or
the archive. An event that is no longer available becomes a gap notice. SQL module.
"""

import asyncio
from collections.abc import Mapping
from typing import NamedTuple

from delivery.callbacks import claimed_events
from delivery.callbacks.body import GapNotice, SegmentName
from delivery.callbacks.claimed_events import ClaimedEvent
from delivery.callbacks.claimed_groups import AnyClaim
from eventhub.base import limits
from eventhub.base.errors import EventHubError, Gone, SegmentMismatch
from eventhub.base.logs import get_logger
from eventhub.eventlog.read import ReadLimits, read
from eventhub.eventlog.stored import ArchivedSegment, Cursor, ReadsArchive
from eventhub.postgresql.connections import Connection

log = get_logger(__name__)
EventName = tuple[int, int]  # segment id, sequence


class EventBytes(NamedTuple):
    """The stored bytes of an event."""

    appended_at_us: int
    payload: bytes


class EventReader:
    """The log, and the archive if there is one."""

    def __init__(self, archive: ReadsArchive | None) -> None:
        self._archive = archive

    async def look_up(
        self, connection: Connection, missing: Mapping[EventName, AnyClaim], bytes_max: int
    ) -> dict[EventName, ClaimedEvent]:
        """Return those of the events that are in the database: their sizes, and their bytes unless
        they are larger than `bytes_max` together. `missing`: the claim of each event.
        """
        copied = {name: claim for name, claim in missing.items() if claim.has_copy}
        found: list[ClaimedEvent] = []
        if copied:
            owners = [(claim.partition_id, claim.endpoint_id) for claim in copied.values()]
            found += await claimed_events.load_copies(connection, owners, copied, bytes_max)
        if len(copied) < len(missing):
            stored = [name for name in missing if name not in copied]
            found += await claimed_events.load_events(connection, stored, bytes_max)
        return {(each.segment_id, each.sequence): each for each in found}

    async def read(
        self,
        connection: Connection,
        missing: Mapping[EventName, AnyClaim],
        known: Mapping[EventName, ClaimedEvent],
        segments: Mapping[int, SegmentName],
    ) -> Mapping[EventName, EventBytes | GapNotice]:
        """Return the events of claimed deliveries, without those that cannot be read at present.
        `missing`: the claim of each event; `known`: what `look_up` returned; `segments`: the names
        of segments by id.
        """
        unread = {each: missing[each] for each in missing if _is_unread(known.get(each))}
        if unread:
            bytes_max = sum(known[each].size for each in unread)
            known = {**known, **await self.look_up(connection, unread, bytes_max)}
        events: dict[EventName, EventBytes | GapNotice] = {}
        for name in missing:
            found = known.get(name)
            if found is not None and found.payload is not None:
                events[name] = EventBytes(found.appended_at_us, found.payload)
        elsewhere = [name for name in missing if name not in events]
        try:
            async with asyncio.timeout(limits.CALLBACK_ARCHIVE_S_MAX):
                for name in elsewhere:
                    logged = await self._read_log(connection, missing[name], name[1], segments)
                    if logged is not None:
                        events[name] = logged
        except TimeoutError:
            log.warning("callback_events_late", events=len(elsewhere))
        return events

    async def _read_log(
        self,
        connection: Connection,
        claimed: AnyClaim,
        sequence: int,
        segments: Mapping[int, SegmentName],
    ) -> EventBytes | GapNotice | None:
        """Return the event, or the gap that it is in; None if neither is known at present."""
        name = segments.get(claimed.segment_id)
        after = Cursor(name.segment if name else "", sequence - 1)
        try:
            found = await read(connection, claimed.stream_id, after, ReadLimits(1, 1))
            if isinstance(found, ArchivedSegment):
                if self._archive is None:
                    raise Gone
                found = await asyncio.to_thread(self._archive.read, found, sequence - 1, 1, 1)
            [stored] = found
            return EventBytes(stored.appended_at_us, stored.payload)
        except (Gone, SegmentMismatch) as error:
            cached = await claimed_events.retained_bytes(
                connection, claimed.endpoint_id, claimed.segment_id, sequence
            )
            if cached is not None:  # copied after the claim, before the event was removed
                return EventBytes(claimed.created_at_us, cached)
            reason = await claimed_events.removal_reason(connection, claimed.segment_id)
            resume = error.details.get("resume") or after._replace(sequence=sequence)._asdict()
            return GapNotice(sequence, sequence, resume, reason)
        except EventHubError as error:
            log.warning("callback_event_unreadable", error=error.code, at=(*claimed[:3], sequence))
            return None


def _is_unread(found: ClaimedEvent | None) -> bool:
    return found is not None and found.payload is None
