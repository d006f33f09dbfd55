"""An epoch of a stream's match index as a forwarder asks it: engines, and columns that stand for
versions. Plain module.

No version of it is an object: what is asked of one stands in mapped columns, by dense place.
"""

from collections.abc import Callable, Mapping

from eventhub.event.audience import may_see
from eventhub.event.envelope import Event
from registrations.filters.evaluate import TypeHierarchy, no_supertypes
from registrations.match_index.engines.available import AUTO, new_engine
from registrations.match_index.epochs.epoch import Epoch
from registrations.matching.versions import HoldRules, Recipients, add_by_columns, without_ended


class Based:
    """One epoch. One task uses it. `names`: of its clients; one that is not there sees nothing that
    is not for everybody.
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

    def find(self, event: Event, sequence: int, rules: HoldRules, owed: Recipients) -> None:
        """Add the versions that match and hold, in no order. Raises IndexDamaged."""
        is_shown = self._is_shown(event, rules) if event.destinations or event.audience else None
        for engine, columns in zip(self.engines, self.epoch.columns, strict=True):
            places = engine.match(event, places=True).tolist()
            if places and is_shown is not None:
                places = [place for place in places if is_shown(columns.client[place])]
            if places and (rules.ends or rules.suspensions):
                places = without_ended(places, columns, rules, sequence)
            add_by_columns(places, columns, sequence, owed)

    def _is_shown(self, event: Event, rules: HoldRules) -> Callable[[int], bool]:
        """By client, asked once for each."""
        known: dict[int, bool] = {}

        def is_shown(client: int) -> bool:
            if client not in known:
                name = self._names.get(client)
                groups = rules.groups_of(name) if name is not None and event.audience else None
                known[client] = name is not None and may_see(event, name, groups or frozenset())
            return known[client]

        return is_shown
