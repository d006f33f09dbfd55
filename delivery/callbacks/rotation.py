"""Whose turn it is among endpoints with due deliveries: those that were granted slots longest ago.
A scan sees one page of what is due; what was due on other pages a moment ago is remembered here, so
that the order goes across pages. There is one of these for parallel and one for ordered deliveries.
Clients take turns too, so that one with many endpoints does not stand before the others. Plain
module.
"""

from collections import Counter
from collections.abc import Iterable
from random import Random
from typing import Any

from delivery.callbacks.claims import Endpoint, Found
from eventhub.base import limits


class Turns:
    """The turns of one worker."""

    def __init__(self, random: Random) -> None:
        self._start = random.getrandbits(62)  # workers begin at different places
        self._grants = 0
        self._granted: dict[int, int] = {}  # the number of an endpoint's last grant
        self._waiting: dict[Any, Endpoint] = {}  # by endpoint id, or by lane

    def due(self, after: Any, found: Found) -> dict[Any, Endpoint]:
        """What a scan from `after` on found, and what waits on other pages: one lane for each
        endpoint.
        """
        known = set()
        due = dict(found.due)
        for place, endpoint in self._waiting.items():
            passed = place > after and (found.last is None or place <= found.last)
            if not passed and endpoint.id not in known:
                known.add(endpoint.id)
                due[place] = endpoint
        return due

    def order(self, endpoints: Iterable[Endpoint]) -> dict[int, int]:
        """Endpoints' ids with their clients', in order: of each client the one that has waited
        longest, then its next.
        """
        clients = {each.id: each.client_id for each in endpoints}
        waited = sorted(clients, key=lambda each: (self._granted.get(each, 0), each ^ self._start))
        before: Counter[int] = Counter()
        ranks = {}
        for each in waited:
            ranks[each] = before[clients[each]]
            before[clients[each]] += 1
        return {each: clients[each] for each in sorted(waited, key=ranks.__getitem__)}

    def grant(self, due: dict[Any, Endpoint], endpoint_ids: Iterable[int]) -> None:
        """These were granted slots now; the others of `due` wait."""
        granted = set(endpoint_ids)
        if len(self._granted) + len(granted) > limits.CALLBACK_ENDPOINTS_REMEMBERED_MAX:
            self._granted.clear()
        self._grants += 1
        self._granted.update(dict.fromkeys(granted, self._grants))
        left = {place: each for place, each in due.items() if each.id not in granted}
        self._waiting = left if len(left) <= limits.CALLBACK_ENDPOINTS_REMEMBERED_MAX else {}
