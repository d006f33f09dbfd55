"""The search for the registrations that an event matched, and for the nearest misses, in chunks and
up to a limit. Plain module.
"""

import asyncio
from typing import Annotated, NamedTuple, TypedDict

from msgspec import Meta

from eventhub.access.principal import Principal
from eventhub.base import limits
from eventhub.eventlog.log import Log
from eventhub.eventlog.stored import CursorJson
from eventhub.eventlog.system import SYSTEM_STREAM_ID
from eventhub.http.messages import Peer
from eventhub.postgresql.connections import reading
from registrations.explain.conditions import (
    ConditionJson,
    DeliveryCondition,
    EvaluatedEvent,
    VersionJson,
    VersionStatus,
    applicable_versions,
    conditions_of,
    version_json,
)
from registrations.explain.nearest import (
    Alternatives,
    FailedJson,
    Miss,
    Nearest,
    alternatives_of,
    failed_json,
    miss_of,
)
from registrations.explain.statements import ExplainScope, read_registrations_naming, read_statuses
from registrations.explain.time_slice import TimeSlice
from registrations.filter_source import stored_filter
from registrations.filters.evaluate import TypeHierarchy


class NearMissJson(VersionJson):
    """A registration that did not match, with the failed `tests` and conditions (`against`)."""

    predicate: str
    tests: int
    failed: list[FailedJson]
    against: list[ConditionJson]


class SearchJson(TypedDict):
    """The result of a search."""

    looked_at: Annotated[int, Meta(description="Number of evaluated registrations.")]
    truncated: bool
    next: Annotated[str | None, Meta(description="Pass it as `after` to continue.")]
    matched: int
    matches: list[VersionJson]
    nearest: list[NearMissJson]


class EventMatchesJson(SearchJson, CursorJson):
    """The registrations that an event matched, and the nearest misses."""

    stream: str


class NearMiss(NamedTuple):
    """A registration that an event did not match."""

    version: VersionStatus
    miss: Miss
    against: list[DeliveryCondition]


class MatchSearch:
    """One search over registrations in the order of their ids."""

    def __init__(
        self, principal: Principal, evaluated: EvaluatedEvent, hierarchy: TypeHierarchy
    ) -> None:
        self.looked_at = 0
        self.matched = 0
        self.next: int | None = None  # the last evaluated one, if there may be more
        self._principal = principal
        self._evaluated = evaluated
        self._hierarchy = hierarchy
        self._shown: list[VersionStatus] = []
        self._near: Nearest[NearMiss] = Nearest(limits.NEAREST_SHOWN_MAX)
        self._compiled: dict[tuple[str, str], Alternatives] = {}

    async def run(self, log: Log, scope: ExplainScope, after: int, peer: Peer) -> None:
        """Evaluate all registrations after one, or as many as the limits allow: then `next` is
        set.
        """
        clock = asyncio.get_running_loop().time
        until_s, slice = clock() + limits.MATCHES_S_MAX, TimeSlice()
        async with reading(log.pool) as connection:
            ids = await read_registrations_naming(
                connection, scope, after, limits.MATCHES_SCANNED_MAX
            )
        for at in range(0, len(ids), limits.MATCHES_PAGE):
            chunk = ids[at : at + limits.MATCHES_PAGE]
            async with reading(log.pool) as connection:
                page = await read_statuses(connection, scope, chunk)
            for version in applicable_versions(page, self._evaluated.sequence):
                self._look(version, scope)
                if slice.over:
                    await slice.rest()
            if chunk[-1] != ids[-1] and (clock() > until_s or peer.over):
                self.next = chunk[-1]
                return
        if len(ids) == limits.MATCHES_SCANNED_MAX:
            self.next = ids[-1]

    def json(self) -> SearchJson:
        """Return the result."""
        return {
            "looked_at": self.looked_at,
            "truncated": self.next is not None,
            "next": None if self.next is None else str(self.next),
            "matched": self.matched,
            "matches": [version_json(version) for version in self._shown],
            "nearest": [self._near_json(near) for near in self._near],
        }

    def _look(self, version: VersionStatus, scope: ExplainScope) -> None:
        if not all(map(self._principal.may_listen, version.streams)):
            return
        self.looked_at += 1
        miss = miss_of(self._tests(version), self._evaluated.event, self._hierarchy)
        if miss is None:
            return
        zone = self._principal.zone if scope.stream_id == SYSTEM_STREAM_ID else None
        conditions = conditions_of(version, zone, self._evaluated)
        against = [one for one in conditions if not one.held]
        failed = len(miss.failed) + len(against)
        if failed:
            self._near.offer(failed, miss.held, NearMiss(version, miss, against))
            return
        self.matched += 1
        if len(self._shown) < limits.MATCHES_SHOWN_MAX:
            self._shown.append(version)

    def _tests(self, version: VersionStatus) -> Alternatives:
        key = (version.language, version.filter_json)
        found = self._compiled.get(key)
        if found is None:
            found = self._compiled[key] = alternatives_of(stored_filter(*key).specs())
        return found

    def _near_json(self, near: NearMiss) -> NearMissJson:
        version, miss, against = near
        filter = stored_filter(version.language, version.filter_json)
        return {
            **version_json(version),
            "predicate": filter.summary().predicate,
            "tests": miss.tests,
            "failed": failed_json(miss, self._evaluated.event, self._hierarchy),
            "against": [one.json() for one in against],
        }
