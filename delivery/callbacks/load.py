"""The data needed to post a delivery in addition to its row: the event's body, the segment's UUID
and the endpoint's secrets. Each is read or built once and cached. SQL module.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

import orjson

from delivery.callbacks import claims
from delivery.callbacks.batches import BatchSize
from delivery.callbacks.body import (
    Body,
    EventCache,
    EventFacts,
    GapNotice,
    LoggedEvent,
    SegmentName,
    event_body,
    gap_body,
)
from delivery.callbacks.claimed_groups import ClaimedGroup
from delivery.callbacks.claims import Annotation, CallbackEndpoint, Claimed
from delivery.callbacks.event_reader import EventBytes, EventName, EventReader
from delivery.callbacks.post import CallbackTarget
from delivery.callbacks.targets import target_of_endpoint
from eventhub.base import limits
from eventhub.base.clock import Clock
from eventhub.base.logs import get_logger
from eventhub.eventlog.log import ReadsArchive
from eventhub.postgresql.arrays import int8_array
from eventhub.postgresql.connections import Connection
from eventhub.postgresql.rows import fetch_all
from registrations.endpoints.sealed import load_secrets
from registrations.endpoints.secrets import Keyring
from registrations.endpoints.statements import Format
from registrations.filters.report import ReportTemplate, merged_report

log = get_logger(__name__)
_UNKNOWN = SegmentName("", "")


class LoadedContent(NamedTuple):
    """The content of a delivery: its body (None: unreadable at present), the UUID of its segment,
    and the variables that are bound to the event, by registration (RDY-17). Without `is_visible`
    the event is not for the endpoint any more.
    """

    body: Body | None
    segment: str
    variables: Mapping[int, str]
    is_visible: bool = True


class LoadedGroup(NamedTuple):
    """The content of a claimed group: as in `LoadedContent`, with the body of each delivery and
    whether it is visible, in the order of the group's sequences.
    """

    segment: str
    variables: Mapping[int, str]
    bodies: Sequence[Body | None]
    visible: Sequence[bool]


class Loader:
    """The caches of one dispatcher. Without an archive, archived events are unavailable. `sender`:
    the hub's name in the CloudEvents handshake.
    """

    def __init__(
        self,
        keyring: Keyring,
        clock: Clock,
        archive: ReadsArchive | None = None,
        sender: str = "",
    ) -> None:
        self._keyring = keyring
        self._sender = sender
        self._reader = EventReader(archive)
        self._events = EventCache(
            limits.CALLBACK_EVENT_BYTES_CACHED_MAX,
            limits.CALLBACK_EVENT_CACHED_S_MAX,
            clock,
        )
        self._segments: dict[int, SegmentName] = {}
        self._annotations: dict[int, Annotation] = {}  # by version; a version never changes
        self._targets: dict[int, tuple[CallbackEndpoint, CallbackTarget]] = {}

    async def targets(
        self, connection: Connection, endpoints: Iterable[CallbackEndpoint]
    ) -> dict[int, CallbackTarget]:
        """Return how to call the endpoints, by id. The secrets of those that have changed are read
        and decrypted; they are at least as new as `changed_at_us`.
        """
        found: dict[int, CallbackTarget] = {}
        missing: dict[int, CallbackEndpoint] = {}
        for endpoint in endpoints:
            cached = self._targets.get(endpoint.id)
            if cached is not None and cached[0] == endpoint:
                found[endpoint.id] = cached[1]
            else:
                missing[endpoint.id] = endpoint
        if not missing:
            return found
        if len(self._targets) + len(missing) > limits.CALLBACK_NAMES_CACHED_MAX:
            self._targets.clear()
        sealed = await load_secrets(connection, missing)
        for id, endpoint in missing.items():
            target = target_of_endpoint(self._keyring, endpoint, sealed.get(id, ()))
            found[id] = self._named(endpoint, target)._replace(
                batch=_batch_size(endpoint), timeout_s=endpoint.timeout_s
            )
            self._targets[id] = (endpoint, found[id])
        return found

    def _named(self, endpoint: CallbackEndpoint, target: CallbackTarget) -> CallbackTarget:
        """Return the target with the hub's name, if the receiver agreed to requests by name."""
        if endpoint.handshake != "cloudevents":
            return target
        return target._replace(head=f"{target.head}webhook-request-origin: {self._sender}\r\n")

    async def load(
        self,
        connection: Connection,
        claimed: Sequence[Claimed],
        endpoints: Mapping[int, CallbackEndpoint],
    ) -> list[LoadedContent]:
        """Return for each delivery the body in its endpoint's format and the rest of its content;
        the body is None if the event cannot be read at present.
        """
        await self._load_segments(connection, claimed)
        await self._load_annotations(connection, claimed)
        formats = {id: endpoints[id].body_format for id in {each.endpoint_id for each in claimed}}
        found = [self._cached_body(each, formats[each.endpoint_id]) for each in claimed]
        missing: dict[EventName, Claimed | ClaimedGroup] = {
            (each.segment_id, each.sequence): each
            for each, body in zip(claimed, found, strict=True)
            if body is None
        }
        if missing:
            events = await self._reader.read(connection, missing, self._segments)
            found = [
                body or self._build_body(each, each.sequence, formats[each.endpoint_id], events)
                for each, body in zip(claimed, found, strict=True)
            ]
        groups = await self._groups(connection, claimed, endpoints, found)
        return [
            LoadedContent(
                body,
                self._segment_of(each).segment,
                self._variables(each) if each.version_ids else {},
                body is None or _is_visible(body.facts, endpoints[each.endpoint_id], groups),
            )
            for each, body in zip(claimed, found, strict=True)
        ]

    async def load_groups(
        self,
        connection: Connection,
        claimed: Sequence[ClaimedGroup],
        endpoints: Mapping[int, CallbackEndpoint],
    ) -> list[LoadedGroup]:
        """Return the content of groups, as `load` does that of deliveries."""
        await self._load_segments(connection, claimed)
        await self._load_annotations(connection, claimed)
        found = [self._cached_bodies(each, endpoints[each.endpoint_id]) for each in claimed]
        missing: dict[EventName, Claimed | ClaimedGroup] = {
            (group.segment_id, sequence): group
            for group, bodies in zip(claimed, found, strict=True)
            for sequence, body in zip(group.sequences, bodies, strict=True)
            if body is None
        }
        if missing:
            events = await self._reader.read(connection, missing, self._segments)
            found = [
                self._built_bodies(group, endpoints[group.endpoint_id], bodies, events)
                for group, bodies in zip(claimed, found, strict=True)
            ]
        clients = {
            endpoints[group.endpoint_id].client_id
            for group, bodies in zip(claimed, found, strict=True)
            if any(body is not None and body.facts.audience for body in bodies)
        }
        groups = await _load_groups(connection, clients) if clients else {}
        return [
            LoadedGroup(
                self._segment_of(group).segment,
                self._variables(group),
                bodies,
                [
                    body is None or _is_visible(body.facts, endpoints[group.endpoint_id], groups)
                    for body in bodies
                ],
            )
            for group, bodies in zip(claimed, found, strict=True)
        ]

    def _cached_bodies(
        self, group: ClaimedGroup, endpoint: CallbackEndpoint
    ) -> Sequence[Body | None]:
        """Return the bodies for which nothing has to be read."""
        if group.gap_first is not None or group.payload is not None:
            return [self._cached_body(each, endpoint.body_format) for each in group.deliveries()]
        if not self._has_annotations(group):
            return [None] * len(group.sequences)
        get, segment_id, format = self._events.get, group.segment_id, endpoint.body_format
        report = self._report(group)
        return [get((segment_id, sequence, format, report)) for sequence in group.sequences]

    def _built_bodies(
        self,
        group: ClaimedGroup,
        endpoint: CallbackEndpoint,
        bodies: Sequence[Body | None],
        events: Mapping[EventName, EventBytes | GapNotice],
    ) -> Sequence[Body | None]:
        """Return the bodies with those that are missing built from what was read."""
        return [
            body or self._build_body(group, sequence, endpoint.body_format, events)
            for sequence, body in zip(group.sequences, bodies, strict=True)
        ]

    async def _groups(
        self,
        connection: Connection,
        claimed: Sequence[Claimed],
        endpoints: Mapping[int, CallbackEndpoint],
        bodies: Sequence[Body | None],
    ) -> dict[int, frozenset[str]]:
        """Return the present groups of the clients that get an event with an audience, by id."""
        clients = {
            endpoints[each.endpoint_id].client_id
            for each, body in zip(claimed, bodies, strict=True)
            if body is not None and body.facts.audience
        }
        return await _load_groups(connection, clients) if clients else {}

    def _cached_body(self, claimed: Claimed, format: Format) -> Body | None:
        """Return the body if nothing has to be read for it."""
        if claimed.gap_first is None and claimed.payload is None and not claimed.version_ids:
            return self._events.get((claimed.segment_id, claimed.sequence, format, None))
        segment = self._segment_of(claimed)
        if claimed.gap_first is not None:
            resume: dict[str, str | int] = {
                "segment": segment.segment,
                "sequence": claimed.sequence,
            }
            gap = GapNotice(claimed.gap_first, claimed.sequence, resume, claimed.gap_reason or "")
            return gap_body(format, segment, gap)
        if not self._has_annotations(claimed):
            return None
        report = self._report(claimed)
        if claimed.payload is not None:
            whole = LoggedEvent(segment, claimed.sequence, claimed.created_at_us, claimed.payload)
            return event_body(format, whole, report)
        return self._events.get((claimed.segment_id, claimed.sequence, format, report))

    def _build_body(
        self,
        claimed: Claimed | ClaimedGroup,
        sequence: int,
        format: Format,
        events: Mapping[EventName, EventBytes | GapNotice],
    ) -> Body | None:
        segment, name = self._segment_of(claimed), (claimed.segment_id, sequence)
        found = events.get(name)
        if found is None:
            return None
        if isinstance(found, GapNotice):
            return gap_body(format, segment, found)
        if not self._has_annotations(claimed):
            return None
        report = self._report(claimed)
        key = (*name, format, report)
        body = self._events.get(key)
        if body is None:
            body = event_body(format, LoggedEvent(segment, sequence, *found), report)
            self._events.put(key, body)
        return body

    def _segment_of(self, claimed: Claimed | ClaimedGroup) -> SegmentName:
        return self._segments.get(claimed.segment_id, _UNKNOWN)

    def _has_annotations(self, claimed: Claimed | ClaimedGroup) -> bool:
        """Return False if annotations are unknown: then nothing is sent rather than too much."""
        return all(id in self._annotations for id in claimed.version_ids or ())

    def _report(self, claimed: Claimed | ClaimedGroup) -> ReportTemplate | None:
        """Return the merged report; None unless all registrations have one."""
        versions = [self._annotations[id] for id in claimed.version_ids or ()]
        if not versions or len(versions) < len(claimed.registrations):
            return None
        return merged_report(each.report for each in versions)

    def _variables(self, claimed: Claimed | ClaimedGroup) -> Mapping[int, str]:
        """Return the variables that are bound to the event, by registration."""
        versions = (self._annotations.get(id) for id in claimed.version_ids or ())
        return {each.registration: each.variable for each in versions if each and each.variable}

    async def _load_annotations(
        self, connection: Connection, claimed: Sequence[Claimed | ClaimedGroup]
    ) -> None:
        requested = {id for each in claimed if each.version_ids for id in each.version_ids}
        if requested <= self._annotations.keys():
            return
        if len(self._annotations) + len(requested) > limits.CALLBACK_NAMES_CACHED_MAX:
            self._annotations.clear()
        missing = requested - self._annotations.keys()
        found = await claims.load_annotations(connection, missing)
        self._annotations.update(found)
        if len(found) < len(missing):
            log.warning("callback_reports_unknown", versions=sorted(missing - found.keys())[:10])

    async def _load_segments(
        self, connection: Connection, claimed: Sequence[Claimed | ClaimedGroup]
    ) -> None:
        missing = {each.segment_id for each in claimed} - self._segments.keys()
        if not missing:
            return
        if len(self._segments) + len(missing) > limits.CALLBACK_NAMES_CACHED_MAX:
            self._segments.clear()
            missing = {each.segment_id for each in claimed}
        self._segments.update(await claims.load_segments(connection, missing))


def _is_visible(
    facts: EventFacts, endpoint: CallbackEndpoint, groups: Mapping[int, frozenset[str]]
) -> bool:
    """Return whether the endpoint may get the event: its client is in the audience, if there is
    one, and the event is not about the endpoint itself.
    """
    if facts.endpoint_id == endpoint.id:
        return False
    if not facts.audience:
        return True
    return not groups.get(endpoint.client_id, frozenset()).isdisjoint(facts.audience)


def _batch_size(endpoint: CallbackEndpoint) -> BatchSize | None:
    events_max, bytes_max = endpoint.batch_events_max, endpoint.batch_bytes_max
    if events_max is None or bytes_max is None:
        return None
    return BatchSize(events_max, bytes_max, endpoint.format != "native")


class _GroupsRow(NamedTuple):
    """A client and its groups, as JSON."""

    id: int
    groups: str


async def _load_groups(connection: Connection, clients: Iterable[int]) -> dict[int, frozenset[str]]:
    """Return the groups of clients, by the clients' ids."""
    values = {"clients": int8_array([*clients])}
    rows = await fetch_all(connection, _GroupsRow, claims.SQL["groups"], values)
    return {id: frozenset(orjson.loads(groups)) for id, groups in rows}
