"""An epoch of a stream's match index as a forwarder queries it: engines, and columns that describe
versions. Plain module.

Versions in it are not objects; their properties are in mapped columns, by dense position.
"""

from collections.abc import Callable, Mapping

from eventhub.event.audience import may_see
from eventhub.event.envelope import Event
from eventhub.event.filterable import filterable
from registrations.filters.evaluate import TypeHierarchy, no_supertypes
from registrations.match_index.engines.available import AUTO, new_engine
from registrations.match_index.epochs.epoch import Epoch
from registrations.matching.versions import EffectRules, Recipients, add_by_columns, without_ended


class IndexedVersions:
    """The versions in one epoch, for one task. `names`: the names of its clients; a client without
    one sees only events that are for everybody.
    """

    def __init__(
        self, epoch: Epoch, names: Mapping[int, str], hierarchy: TypeHierarchy = no_supertypes
    ) -> None:
        self.epoch = epoch
        self.engines = [new_engine(AUTO, shard, hierarchy) for shard in epoch.base.shards]
        self._names = names

    def __len__(self) -> int:
        return len(self.epoch.base)

    def __contains__(self, id: int) -> bool:
        return id in self.epoch

    def find(self, event: Event, sequence: int, rules: EffectRules, match: Recipients) -> None:
        """Add the versions that match and are in force, in no order. Raises IndexDamaged."""
        event = filterable(event)
        is_shown = self._is_shown(event, rules) if event.destinations or event.audience else None
        for engine, columns in zip(self.engines, self.epoch.columns, strict=True):
            positions = engine.match(event, positions=True).tolist()
            if positions and is_shown is not None:
                positions = [
                    position for position in positions if is_shown(columns.client[position])
                ]
            if positions and (rules.ends or rules.suspensions):
                positions = without_ended(positions, columns, rules, sequence)
            add_by_columns(positions, columns, sequence, match)

    def _is_shown(self, event: Event, rules: EffectRules) -> Callable[[int], bool]:
        """Return a test whether a client may see the event; it caches the result per client."""
        known: dict[int, bool] = {}

        def is_shown(client: int) -> bool:
            if client not in known:
                name = self._names.get(client)
                groups = rules.groups_of(name) if name is not None and event.audience else None
                known[client] = name is not None and may_see(event, name, groups or frozenset())
            return known[client]

        return is_shown
