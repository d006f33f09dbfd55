"""Which of the versions of registrations that match an event hold for it: their bounds as a stream
sees them, suspensions, and for whom the event is. Plain module.

A version holds for the event of a sequence q if `since < q` and, if it has ended, `q <= until`; one
of a group only while the group is not suspended.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import NamedTuple, Protocol

from eventhub.event.audience import is_visible_in_zone, may_see
from eventhub.event.envelope import Event
from registrations.matching.spec import Specs

GroupsOf = Callable[[str], frozenset[str]]  # a client's, by its name


class Version(NamedTuple):
    """One version of a registration, as one stream sees it. `id` is the matcher's id."""

    id: int
    registration: int
    client: str  # its name
    endpoint_id: int | None
    specs: Specs
    since: int  # exclusive: the stream's last sequence when the version began
    until: int | None  # inclusive; None: it has not ended
    zone: str | None = None  # on `system`: only this zone's events and the whole hub's are wanted
    suspended: bool = False  # by itself: it never holds
    group: int | None = None
    report: str | None = None  # as JSON; None: the whole event

    def holds(self, sequence: int) -> bool:
        """True if the event of that sequence lies within the bounds; its group is not asked."""
        within = self.since < sequence and (self.until is None or sequence <= self.until)
        return within and not self.suspended

    def may_tell(self, event: Event, groups: GroupsOf) -> bool:
        """False for an event that the client, of those groups now, may not see, or of another zone.

        The groups are asked for only if the event has an audience.
        """
        if event.destinations or event.audience:
            own = groups(self.client) if event.audience else frozenset()
            if not may_see(event, self.client, own):
                return False
        return self.zone is None or is_visible_in_zone(event, self.zone)


class Suspension(NamedTuple):
    """When a group matches nothing, as one stream sees it."""

    since: int  # exclusive
    until: int | None  # inclusive; None: it is not resumed

    def covers(self, sequence: int) -> bool:
        return self.since < sequence and (self.until is None or sequence <= self.until)


class Owed(NamedTuple):
    """To whom an event is owed."""

    endpoints: dict[int, list[int]]  # endpoint -> registrations that match, ascending
    reports: dict[int, dict[int, int]]  # endpoint -> registrations with a report -> their versions

    @property
    def shapes(self) -> dict[int, list[int]]:
        """Of the endpoints those that are told a derived event (OIF-06), each with the versions
        whose reports say which; an endpoint with a registration without a report gets the whole
        event.
        """
        return {
            endpoint: [versions[registration] for registration in self.endpoints[endpoint]]
            for endpoint, versions in self.reports.items()
            if len(versions) == len(self.endpoints[endpoint])
        }

    def sort(self) -> None:
        """Bring each endpoint's registrations into their order (SUN-15)."""
        for registrations in self.endpoints.values():
            if len(registrations) > 1:
                registrations.sort()


class Rules(NamedTuple):
    """What holds of versions beside what stands in their columns."""

    ends: Mapping[int, int]  # of versions that ended since their columns were made: inclusive
    suspensions: Mapping[int, tuple[Suspension, ...]]  # by group
    groups_of: GroupsOf


class Bounds(Protocol):
    """Columns of versions in an index, by dense place."""

    @property
    def endpoint(self) -> Sequence[int]: ...
    @property
    def group(self) -> Sequence[int]: ...  # 0: none
    @property
    def registration(self) -> Sequence[int]: ...
    @property
    def report(self) -> Sequence[int]: ...  # 1: it has one
    @property
    def since(self) -> Sequence[int]: ...
    @property
    def until(self) -> Sequence[int]: ...
    @property
    def ids(self) -> Sequence[int]: ...


# --- the hot loops ---


def holding(
    found: Iterable[Version], event: Event, sequence: int, rules: Rules, owed: Owed
) -> None:
    """Add those of the versions that match, which hold. Their own ends count."""
    suspensions, groups_of = rules.suspensions, rules.groups_of
    for version in found:
        endpoint_id = version.endpoint_id
        if endpoint_id is None or not version.holds(sequence):
            continue
        if not version.may_tell(event, groups_of):
            continue
        if suspensions and version.group is not None:
            spans = suspensions.get(version.group, ())
            if any(span.covers(sequence) for span in spans):
                continue
        owed.endpoints.setdefault(endpoint_id, []).append(version.registration)
        if version.report is not None:
            owed.reports.setdefault(endpoint_id, {})[version.registration] = version.id


def living(places: list[int], columns: Bounds, rules: Rules, sequence: int) -> list[int]:
    """Without versions that have ended since, and those whose group is suspended."""
    ends, suspensions = rules.ends, rules.suspensions
    ids, group = columns.ids, columns.group
    if ends:
        places = [place for place in places if ends.get(ids[place], sequence) >= sequence]
    if suspensions:
        places = [
            place
            for place in places
            if group[place] not in suspensions
            or not any(span.covers(sequence) for span in suspensions[group[place]])
        ]
    return places


def hold(places: list[int], columns: Bounds, sequence: int, owed: Owed) -> None:
    """Add those whose bounds hold a sequence."""
    endpoints, registrations = columns.endpoint, columns.registration
    since, until, report, ids = columns.since, columns.until, columns.report, columns.ids
    found = owed.endpoints
    for place in places:
        if since[place] < sequence <= until[place]:
            endpoint, registration = endpoints[place], registrations[place]
            if endpoint in found:
                found[endpoint].append(registration)
            else:
                found[endpoint] = [registration]
            if report[place]:
                owed.reports.setdefault(endpoint, {})[registration] = ids[place]
