"""What posting a delivery takes beside the delivery: the event's body, the segment's UUID, and the
endpoint's key; each is made or looked up once and kept. SQL module.

An event comes from its partition; one that left it, from wherever the log still reads it. Who
cannot be given an event is told of the gap.
"""

import asyncio
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from delivery.callbacks import claims
from delivery.callbacks.body import Body, EventCache, Gap, Place, Whole, event_body, gap_body
from delivery.callbacks.claims import Claimed, Endpoint
from delivery.callbacks.post import Target, target_of
from eventhub.base import limits
from eventhub.base.clock import Clock
from eventhub.base.errors import EventHubError, Gone, SegmentMismatch
from eventhub.base.logs import get_logger
from eventhub.eventlog.log import ReadsArchive
from eventhub.eventlog.read import Page, read
from eventhub.eventlog.stored import ArchivedSegment, Cursor
from eventhub.postgresql.connections import Connection
from registrations.endpoints.secrets import Unsealable, unseal
from registrations.filters.report import Report, merged_report

log = get_logger(__name__)
_UNKNOWN = Place("", "")
_Key = tuple[int, int]  # segment's number, sequence


class _Event(NamedTuple):
    appended_at_us: int
    payload: bytes


class Loader:
    """The caches of one drain. Without an archive its events are gone."""

    def __init__(self, secret_key: str, clock: Clock, archive: ReadsArchive | None = None) -> None:
        self._secret_key = secret_key
        self._archive = archive
        self._events = EventCache(
            limits.CALLBACK_EVENT_BYTES_CACHED_MAX,
            limits.CALLBACK_EVENT_CACHED_S_MAX,
            clock,
        )
        self._places: dict[int, Place] = {}
        self._reports: dict[int, Report] = {}  # by version; a version never changes
        self._targets: dict[int, tuple[Endpoint, Target]] = {}

    def target(self, endpoint: Endpoint) -> Target:
        """How the endpoint is called."""
        kept = self._targets.get(endpoint.id)
        if kept is not None and kept[0] == endpoint:
            return kept[1]
        if len(self._targets) >= limits.CALLBACK_NAMES_CACHED_MAX:
            self._targets.clear()
        target = _target(self._secret_key, endpoint)
        self._targets[endpoint.id] = (endpoint, target)
        return target

    async def load(
        self,
        connection: Connection,
        claimed: Sequence[Claimed],
        endpoints: Mapping[int, Endpoint],
    ) -> list[tuple[Body | None, str]]:
        """For each delivery the body in its endpoint's format, and the segment's UUID; None if the
        event cannot be read just now.
        """
        await self._load_places(connection, claimed)
        await self._load_reports(connection, claimed)
        found: list[Body | None] = [self._known(each, endpoints) for each in claimed]
        missing = [each for each, body in zip(claimed, found, strict=True) if body is None]
        if missing:
            events = await self._read(connection, missing)
            found = [
                body or self._made(each, endpoints, events)
                for each, body in zip(claimed, found, strict=True)
            ]
        return [
            (body, self._place(each).segment) for each, body in zip(claimed, found, strict=True)
        ]

    def _known(self, claimed: Claimed, endpoints: Mapping[int, Endpoint]) -> Body | None:
        """The body, if nothing needs to be read for it."""
        place, format = self._place(claimed), endpoints[claimed.endpoint_id].format
        if claimed.gap_first is not None:
            resume: dict[str, str | int] = {"segment": place.segment, "sequence": claimed.sequence}
            gap = Gap(claimed.gap_first, claimed.sequence, resume, claimed.gap_reason or "")
            return gap_body(format, place, gap)
        if not self._has_reports(claimed):
            return None
        report = self._report(claimed)
        if claimed.payload is not None:
            whole = Whole(place, claimed.sequence, claimed.created_at_us, claimed.payload)
            return event_body(format, whole, report)
        return self._events.get((*_key(claimed), format, report))

    def _made(
        self,
        claimed: Claimed,
        endpoints: Mapping[int, Endpoint],
        events: Mapping[_Key, _Event | Gap],
    ) -> Body | None:
        place, format = self._place(claimed), endpoints[claimed.endpoint_id].format
        found = events.get(_key(claimed))
        if found is None:
            return None
        if isinstance(found, Gap):
            return gap_body(format, place, found)
        if not self._has_reports(claimed):
            return None
        report = self._report(claimed)
        key = (*_key(claimed), format, report)
        body = self._events.get(key)
        if body is None:
            body = event_body(format, Whole(place, claimed.sequence, *found), report)
            self._events.put(key, body)
        return body

    async def _read(
        self, connection: Connection, missing: Sequence[Claimed]
    ) -> Mapping[_Key, _Event | Gap]:
        events: dict[_Key, _Event | Gap] = {
            (found.segment_id, found.sequence): _Event(found.appended_at_us, found.payload)
            for found in await claims.load_events(connection, missing)
        }
        away = {_key(each): each for each in missing if _key(each) not in events}
        try:
            async with asyncio.timeout(limits.CALLBACK_ARCHIVE_S_MAX):
                for key, each in away.items():
                    found = await self._through_the_log(connection, each)
                    if found is not None:
                        events[key] = found
        except TimeoutError:
            log.warning("callback_events_late", events=len(away))
        return events

    async def _through_the_log(
        self, connection: Connection, claimed: Claimed
    ) -> _Event | Gap | None:
        """The event, or the gap it is in; None if neither can be said just now."""
        sequence = claimed.sequence
        after = Cursor(self._place(claimed).segment, sequence - 1)
        try:
            found = await read(connection, claimed.stream_id, after, Page(1, 1))
            if isinstance(found, ArchivedSegment):
                if self._archive is None:
                    raise Gone
                found = await asyncio.to_thread(self._archive.read, found, sequence - 1, 1, 1)
            [stored] = found
            return _Event(stored.appended_at_us, stored.payload)
        except (Gone, SegmentMismatch) as error:
            kept = await claims.kept_bytes(connection, claimed)
            if kept is not None:  # before the event went, and after the claim
                return _Event(claimed.created_at_us, kept)
            why = await claims.why_lost(connection, claimed.segment_id)
            resume = error.details.get("resume") or after._replace(sequence=sequence)._asdict()
            return Gap(sequence, sequence, resume, why)
        except EventHubError as error:
            log.warning("callback_event_unreadable", error=error.code, at=claimed[:5])
            return None

    def _place(self, claimed: Claimed) -> Place:
        return self._places.get(claimed.segment_id, _UNKNOWN)

    def _has_reports(self, claimed: Claimed) -> bool:
        """False if what is to be told is not known: then nothing is, rather than too much."""
        return claimed.version_ids is None or all(id in self._reports for id in claimed.version_ids)

    def _report(self, claimed: Claimed) -> Report | None:
        if claimed.version_ids is None:
            return None
        return merged_report(self._reports[id] for id in claimed.version_ids)

    async def _load_reports(self, connection: Connection, claimed: Sequence[Claimed]) -> None:
        wanted = {id for each in claimed if each.version_ids is not None for id in each.version_ids}
        if wanted <= self._reports.keys():
            return
        if len(self._reports) + len(wanted) > limits.CALLBACK_NAMES_CACHED_MAX:
            self._reports.clear()
        missing = wanted - self._reports.keys()
        found = await claims.load_reports(connection, missing)
        self._reports.update(found)
        if len(found) < len(missing):
            log.warning("callback_reports_unknown", versions=sorted(missing - found.keys())[:10])

    async def _load_places(self, connection: Connection, claimed: Sequence[Claimed]) -> None:
        missing = {each.segment_id for each in claimed} - self._places.keys()
        if not missing:
            return
        if len(self._places) + len(missing) > limits.CALLBACK_NAMES_CACHED_MAX:
            self._places.clear()
            missing = {each.segment_id for each in claimed}
        self._places.update(await claims.load_places(connection, missing))


def _target(secret_key: str, endpoint: Endpoint) -> Target:
    """One endpoint that cannot be called must not keep the others from being called."""
    try:
        secret = unseal(secret_key, endpoint.secret)
        return target_of(endpoint.url, secret)
    except (Unsealable, ValueError) as error:
        return Target(endpoint.url, None, "", "", b"", str(error))


def _key(claimed: Claimed) -> _Key:
    return claimed.segment_id, claimed.sequence
