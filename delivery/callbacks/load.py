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
from delivery.callbacks.byte_shares import shares_of_bytes
from delivery.callbacks.claimed_events import ClaimedEvent
from delivery.callbacks.claimed_groups import AnyClaim
from delivery.callbacks.claims import Annotation, CallbackEndpoint
from delivery.callbacks.event_reader import EventBytes, EventName, EventReader
from delivery.callbacks.post import CallbackTarget
from delivery.callbacks.targets import target_of_endpoint
from eventhub.base import limits
from eventhub.base.clock import Clock
from eventhub.base.logs import get_logger
from eventhub.eventlog.stored import ReadsArchive
from eventhub.postgresql.arrays import int8_array
from eventhub.postgresql.connections import Connection
from eventhub.postgresql.rows import fetch_all
from registrations.endpoints.sealed import load_secrets
from registrations.endpoints.secrets import Keyring
from registrations.endpoints.statements import Format
from registrations.filters.report import ReportTemplate, merged_report

log = get_logger(__name__)
_UNKNOWN = SegmentName("", "")
_UNKNOWN_BYTES = limits.CALLBACK_CLAIM_BYTES_MAX // limits.CALLBACK_CLAIM_DELIVERIES_MAX


class LoadedContent(NamedTuple):
    """The content of a claim: the UUID of its segment, the variables that are bound to its events,
    by registration (RDY-17), and in the order of its sequences each body (None: unreadable at
    present) and whether it is visible: otherwise the event is not for the endpoint any more. Events
    from the position `loaded` on are too much for this claim.
    """

    segment: str
    variables: Mapping[int, str]
    bodies: Sequence[Body | None]
    visible: Sequence[bool]
    loaded: int


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
        claimed: Sequence[AnyClaim],
        endpoints: Mapping[int, CallbackEndpoint],
        bytes_max: int,
    ) -> list[LoadedContent]:
        """Return the content of each claim, with the bodies in its endpoint's format: of events of
        about so many bytes, of which clients and their endpoints have equal shares.
        """
        await self._load_segments(connection, claimed)
        await self._load_annotations(connection, claimed)
        formats = {id: endpoints[id].body_format for id in {each.endpoint_id for each in claimed}}
        found = [self._known_bodies(each, formats[each.endpoint_id]) for each in claimed]
        missing: dict[EventName, AnyClaim] = {
            (each.segment_id, sequence): each
            for each, bodies in zip(claimed, found, strict=True)
            for sequence, body in zip(each.sequences, bodies, strict=True)
            if body is None
        }
        known = await self._reader.look_up(connection, missing, bytes_max) if missing else {}
        sizes = [_sizes(each, bodies, known) for each, bodies in zip(claimed, found, strict=True)]
        clients = [endpoints[each.endpoint_id].client_id for each in claimed]
        loaded = shares_of_bytes(claimed, clients, sizes, bytes_max)
        found = [_first_bodies(bodies, count) for bodies, count in zip(found, loaded, strict=True)]
        if missing:
            missing = {
                (each.segment_id, sequence): each
                for each, bodies, count in zip(claimed, found, loaded, strict=True)
                for sequence, body in zip(each.sequences[:count], bodies[:count], strict=True)
                if body is None
            }
            events = await self._reader.read(connection, missing, known, self._segments)
            found = [
                self._built_bodies(each, bodies, formats[each.endpoint_id], events, count)
                for each, bodies, count in zip(claimed, found, loaded, strict=True)
            ]
        groups = await self._groups(connection, claimed, endpoints, found)
        return [
            LoadedContent(
                self._segment_of(each).segment,
                self._variables(each) if each.version_ids else {},
                bodies,
                _visible(bodies, endpoints[each.endpoint_id], groups),
                count,
            )
            for each, bodies, count in zip(claimed, found, loaded, strict=True)
        ]

    def _known_bodies(self, claim: AnyClaim, format: Format) -> Sequence[Body | None]:
        """Return the bodies for which nothing has to be read."""
        if claim.gap_first is not None:
            return [self._gap(claim, claim.gap_first, each, format) for each in claim.sequences]
        if not self._has_annotations(claim):
            return [None] * len(claim.sequences)
        segment_id, report = claim.segment_id, self._report(claim)
        return self._events.get_all(
            [(segment_id, sequence, format, report) for sequence in claim.sequences]
        )

    def _gap(self, claim: AnyClaim, first: int, last: int, format: Format) -> Body:
        """Return the body of a gap notice."""
        segment = self._segment_of(claim)
        resume: dict[str, str | int] = {"segment": segment.segment, "sequence": last}
        return gap_body(format, segment, GapNotice(first, last, resume, claim.gap_reason or ""))

    async def _groups(
        self,
        connection: Connection,
        claimed: Sequence[AnyClaim],
        endpoints: Mapping[int, CallbackEndpoint],
        found: Sequence[Sequence[Body | None]],
    ) -> dict[int, frozenset[str]]:
        """Return the present groups of the clients that get an event with an audience, by id."""
        clients = {
            endpoints[each.endpoint_id].client_id
            for each, bodies in zip(claimed, found, strict=True)
            if any(body is not None and body.facts.audience for body in bodies)
        }
        return await _load_groups(connection, clients) if clients else {}

    def _built_bodies(
        self,
        claim: AnyClaim,
        bodies: Sequence[Body | None],
        format: Format,
        events: Mapping[EventName, EventBytes | GapNotice],
        count: int,
    ) -> Sequence[Body | None]:
        """Return the first bodies of a claim; those that are missing are built from their events,
        unless they were built for a claim before it.
        """
        if None not in bodies[:count]:
            return bodies
        known = self._known_bodies(claim, format)
        built = [
            body or cached or self._build_body(claim, sequence, format, events)
            for sequence, body, cached in zip(
                claim.sequences[:count], bodies[:count], known[:count], strict=True
            )
        ]
        return built + [None] * (len(bodies) - count)

    def _build_body(
        self,
        claimed: AnyClaim,
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
        body = event_body(format, LoggedEvent(segment, sequence, *found), report)
        self._events.put((*name, format, report), body)
        return body

    def _segment_of(self, claimed: AnyClaim) -> SegmentName:
        return self._segments.get(claimed.segment_id, _UNKNOWN)

    def _has_annotations(self, claimed: AnyClaim) -> bool:
        """Return False if annotations are unknown: then nothing is sent rather than too much."""
        return all(id in self._annotations for id in claimed.version_ids or ())

    def _report(self, claimed: AnyClaim) -> ReportTemplate | None:
        """Return the merged report; None unless all registrations have one."""
        versions = [self._annotations[id] for id in claimed.version_ids or ()]
        if not versions or len(versions) < len(claimed.registrations):
            return None
        return merged_report(each.report for each in versions)

    def _variables(self, claimed: AnyClaim) -> Mapping[int, str]:
        """Return the variables that are bound to the event, by registration."""
        versions = (self._annotations.get(id) for id in claimed.version_ids or ())
        return {each.registration: each.variable for each in versions if each and each.variable}

    async def _load_annotations(self, connection: Connection, claimed: Sequence[AnyClaim]) -> None:
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

    async def _load_segments(self, connection: Connection, claimed: Sequence[AnyClaim]) -> None:
        missing = {each.segment_id for each in claimed} - self._segments.keys()
        if not missing:
            return
        if len(self._segments) + len(missing) > limits.CALLBACK_NAMES_CACHED_MAX:
            self._segments.clear()
            missing = {each.segment_id for each in claimed}
        self._segments.update(await claims.load_segments(connection, missing))


def _first_bodies(bodies: Sequence[Body | None], count: int) -> Sequence[Body | None]:
    """Return the bodies with None in place of those after the first ones."""
    left = len(bodies) - count
    return [*bodies[:count], *[None] * left] if left else bodies


def _sizes(
    claim: AnyClaim, bodies: Sequence[Body | None], known: Mapping[EventName, ClaimedEvent]
) -> list[int]:
    """Return the bytes of the bodies of a claim, as far as they are known: events that are still to
    be read count as they are stored, and those outside of the database are taken for large.
    """
    return [
        body.size
        if body is not None
        else (found.size if (found := known.get((claim.segment_id, each))) else _UNKNOWN_BYTES)
        for each, body in zip(claim.sequences, bodies, strict=True)
    ]


def _visible(
    bodies: Sequence[Body | None],
    endpoint: CallbackEndpoint,
    groups: Mapping[int, frozenset[str]],
) -> list[bool]:
    """Return which of the events the endpoint may get. Most are for everyone."""
    return [
        body is None
        or (not (facts := body.facts).audience and not facts.endpoint_id)
        or _is_visible(facts, endpoint, groups)
        for body in bodies
    ]


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
    is_cloud = endpoint.format not in ("native", "mcp")
    return BatchSize(events_max, bytes_max, is_cloud)


class _GroupsRow(NamedTuple):
    """A client and its groups, as JSON."""

    id: int
    groups: str


async def _load_groups(connection: Connection, clients: Iterable[int]) -> dict[int, frozenset[str]]:
    """Return the groups of clients, by the clients' ids."""
    values = {"clients": int8_array([*clients])}
    rows = await fetch_all(connection, _GroupsRow, claims.SQL["groups"], values)
    return {id: frozenset(orjson.loads(groups)) for id, groups in rows}
