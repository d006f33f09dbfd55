"""An epoch of a stream's match index as a forwarder asks it: engines, and columns that stand for
versions. Plain.

No version of it is an object: what is asked of one stands in mapped columns, by dense place.
"""

from collections.abc import Callable, Mapping
from typing import NamedTuple

from eventhub.access.audience import may_see
from eventhub.event.envelope import Event
from registrations.catalog import Suspension
from registrations.index.epoch import Columns, Epoch
from registrations.lang.evaluate import Kin, only_itself
from registrations.match.base.engines import AUTO, new_engine

GroupsOf = Callable[[str], frozenset[str]]  # a client's, by its name


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


class Rules(NamedTuple):
    """What holds of versions beside their columns."""

    ends: Mapping[int, int]  # of versions that ended since the epoch was built: inclusive
    suspensions: Mapping[int, tuple[Suspension, ...]]  # by group
    groups_of: GroupsOf


class Based:
    """One epoch. One task uses it. `names`: of its clients; one that is not there sees nothing that
    is not for everybody.
    """

    def __init__(self, epoch: Epoch, names: Mapping[int, str], kin: Kin = only_itself) -> None:
        self.epoch = epoch
        self.engines = [new_engine(AUTO, shard, kin) for shard in epoch.base.shards]
        self._names = names

    def __len__(self) -> int:
        return len(self.epoch.base)

    def __contains__(self, id: int) -> bool:
        return id in self.epoch

    def find(self, event: Event, sequence: int, rules: Rules, owed: Owed) -> None:
        """Add the versions that match and hold, in no order. Raises IndexDamaged."""
        is_shown = self._is_shown(event, rules) if event.destinations or event.audience else None
        for engine, columns in zip(self.engines, self.epoch.columns, strict=True):
            places = engine.match(event, places=True).tolist()
            if places and is_shown is not None:
                places = [place for place in places if is_shown(columns.client[place])]
            if places and (rules.ends or rules.suspensions):
                places = living(places, columns, rules, sequence)
            hold(places, columns, sequence, owed)

    def _is_shown(self, event: Event, rules: Rules) -> Callable[[int], bool]:
        """By client, asked once for each."""
        known: dict[int, bool] = {}

        def is_shown(client: int) -> bool:
            if client not in known:
                name = self._names.get(client)
                groups = rules.groups_of(name) if name is not None and event.audience else None
                known[client] = name is not None and may_see(event, name, groups or frozenset())
            return known[client]

        return is_shown


# --- the hot loops ---


def living(places: list[int], columns: Columns, rules: Rules, sequence: int) -> list[int]:
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


def hold(places: list[int], columns: Columns, sequence: int, owed: Owed) -> None:
    """Add those whose bounds hold a sequence."""
    _, endpoints, _, registrations, report, since, until, ids = columns
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
