"""The matched versions of registrations that are in effect for an event: their bounds in the
stream, suspensions, and the audience of the event. Plain module.

A version is in effect for the event of sequence q if `since < q` and, once it has ended,
`q <= until`; a version of a group only while the group is not suspended.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import NamedTuple, Protocol

from eventhub.event.audience import is_visible_in_zone, may_see
from eventhub.event.envelope import Event
from registrations.matching.spec import Specs

GroupsOf = Callable[[str], frozenset[str]]  # returns the groups of a client, by its name


class StreamVersion(NamedTuple):
    """One version of a registration in one stream. `id`: its number in matchers."""

    id: int
    registration: int
    client: str  # its name
    endpoint_id: int | None
    specs: Specs
    since: int  # exclusive: the stream's last sequence when the version started
    until: int | None  # inclusive; None: it has not ended
    zone: str | None = None  # on `system`: it gets only events of this zone and of the whole hub
    suspended: bool = False  # the registration itself: it is never in effect
    group: int | None = None
    report: str | None = None  # as JSON; None: the whole event
    variable: str | None = None  # that a READY filter binds to the event (RDY-17)

    def holds(self, sequence: int) -> bool:
        """Return whether a sequence is within the bounds; suspensions of its group do not count."""
        within = self.since < sequence and (self.until is None or sequence <= self.until)
        return within and not self.suspended

    def is_visible(self, event: Event, groups: GroupsOf) -> bool:
        """Return whether the client, in its groups of now, may see the event, and its zone may.

        `groups` is called only if the event has an audience.
        """
        if event.destinations or event.audience:
            own = groups(self.client) if event.audience else frozenset()
            if not may_see(event, self.client, own):
                return False
        return self.zone is None or is_visible_in_zone(event, self.zone)


class SuspensionSpan(NamedTuple):
    """The sequences of one stream for which a group is suspended."""

    since: int  # exclusive
    until: int | None  # inclusive; None: it is not resumed

    def covers(self, sequence: int) -> bool:
        return self.since < sequence and (self.until is None or sequence <= self.until)


class Recipients(NamedTuple):
    """The endpoints to which an event must be delivered."""

    endpoints: dict[int, list[int]]  # endpoint -> registrations that match, ascending
    # endpoint -> registrations with a report or a variable -> their versions
    annotated: dict[int, dict[int, int]]
    binding: set[int]  # endpoints of a registration with a variable

    @property
    def shapes(self) -> dict[int, list[int]]:
        """The endpoints whose notification depends on versions, each with these: with a report or a
        variable. If no registration has a variable, reports count only if all have one: else the
        endpoint gets the whole event (OIF-06).
        """
        return {
            endpoint: [versions[id] for id in self.endpoints[endpoint] if id in versions]
            for endpoint, versions in self.annotated.items()
            if endpoint in self.binding or len(versions) == len(self.endpoints[endpoint])
        }

    def annotate(self, endpoint: int, registration: int, version: int, *, binds: bool) -> None:
        """Add the version of a matching registration that has a report or a variable."""
        self.annotated.setdefault(endpoint, {})[registration] = version
        if binds:
            self.binding.add(endpoint)

    def sort(self) -> None:
        """Sort the registrations of each endpoint (SUN-15)."""
        for registrations in self.endpoints.values():
            if len(registrations) > 1:
                registrations.sort()


class EffectRules(NamedTuple):
    """The facts about versions that are not in their columns."""

    ends: Mapping[int, int]  # of versions that ended since the columns were built: inclusive
    suspensions: Mapping[int, tuple[SuspensionSpan, ...]]  # by group
    groups_of: GroupsOf


class VersionColumns(Protocol):
    """The columns of versions in an index, by dense number."""

    @property
    def endpoint(self) -> Sequence[int]: ...
    @property
    def group(self) -> Sequence[int]: ...  # 0: none
    @property
    def registration(self) -> Sequence[int]: ...
    @property
    def report(self) -> Sequence[int]: ...  # 1: it has one; 2: it binds a variable; 3: both
    @property
    def since(self) -> Sequence[int]: ...
    @property
    def until(self) -> Sequence[int]: ...
    @property
    def ids(self) -> Sequence[int]: ...


# --- the hot loops ---


def add_versions(
    found: Iterable[StreamVersion],
    event: Event,
    sequence: int,
    rules: EffectRules,
    recipients: Recipients,
) -> None:
    """Add the matched versions that are in effect. Their own ends count."""
    suspensions, groups_of = rules.suspensions, rules.groups_of
    for version in found:
        endpoint_id = version.endpoint_id
        if endpoint_id is None or not version.holds(sequence):
            continue
        if not version.is_visible(event, groups_of):
            continue
        if suspensions and version.group is not None:
            spans = suspensions.get(version.group, ())
            if any(span.covers(sequence) for span in spans):
                continue
        recipients.endpoints.setdefault(endpoint_id, []).append(version.registration)
        variable = version.variable
        if version.report is not None or variable is not None:
            binds = variable is not None
            recipients.annotate(endpoint_id, version.registration, version.id, binds=binds)


def without_ended(
    positions: list[int], columns: VersionColumns, rules: EffectRules, sequence: int
) -> list[int]:
    """Drop versions that have ended since the columns were built, and those of suspended groups."""
    ends, suspensions = rules.ends, rules.suspensions
    ids, group = columns.ids, columns.group
    if ends:
        positions = [
            position for position in positions if ends.get(ids[position], sequence) >= sequence
        ]
    if suspensions:
        positions = [
            position
            for position in positions
            if group[position] not in suspensions
            or not any(span.covers(sequence) for span in suspensions[group[position]])
        ]
    return positions


def add_by_columns(
    positions: list[int], columns: VersionColumns, sequence: int, recipients: Recipients
) -> None:
    """Add the versions whose bounds contain a sequence."""
    endpoints, registrations = columns.endpoint, columns.registration
    since, until, report, ids = columns.since, columns.until, columns.report, columns.ids
    found = recipients.endpoints
    for position in positions:
        if since[position] < sequence <= until[position]:
            endpoint, registration = endpoints[position], registrations[position]
            if endpoint in found:
                found[endpoint].append(registration)
            else:
                found[endpoint] = [registration]
            if report[position]:
                binds = report[position] > 1
                recipients.annotate(endpoint, registration, ids[position], binds=binds)
