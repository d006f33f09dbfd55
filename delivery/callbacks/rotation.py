"""The order in which endpoints with due deliveries are granted slots: least recently granted first.
A scan returns one page of what is due; endpoints that were due on other pages a moment ago are
remembered here, so that the order spans pages. Parallel and ordered deliveries have a rotation
each. Clients alternate, so that one with many endpoints does not delay the others. Plain module.
"""

from collections import Counter
from collections.abc import Iterable
from random import Random

from delivery.callbacks.claims import CallbackEndpoint, ScanResult
from eventhub.base import limits


class Rotation:
    """The rotation of one worker."""

    def __init__(self, random: Random) -> None:
        self._start = random.getrandbits(62)  # workers start at different endpoints
        self._grants = 0
        self._granted: dict[int, int] = {}  # the number of an endpoint's last grant
        self._waiting: dict[int, CallbackEndpoint] = {}

    def due(self, after: int, scan: ScanResult) -> dict[int, CallbackEndpoint]:
        """Return what is due on the page scanned and on others, by endpoint id."""
        due = dict(scan.due)
        for endpoint_id, endpoint in self._waiting.items():
            if endpoint_id <= after or (scan.last is not None and endpoint_id > scan.last):
                due.setdefault(endpoint_id, endpoint)
        return due

    def order(self, endpoints: Iterable[CallbackEndpoint]) -> dict[int, int]:
        """Return endpoint ids with their clients' ids, in order: of each client the endpoint that
        has waited longest, then its next.
        """
        clients = {each.id: each.client_id for each in endpoints}
        by_wait = sorted(clients, key=lambda each: (self._granted.get(each, 0), each ^ self._start))
        before: Counter[int] = Counter()
        ranks = {}
        for each in by_wait:
            ranks[each] = before[clients[each]]
            before[clients[each]] += 1
        return {each: clients[each] for each in sorted(by_wait, key=ranks.__getitem__)}

    def grant(self, due: dict[int, CallbackEndpoint], endpoint_ids: Iterable[int]) -> None:
        """Record which endpoints were granted slots now; the others of `due` wait."""
        granted = set(endpoint_ids)
        if len(self._granted) + len(granted) > limits.CALLBACK_ENDPOINTS_REMEMBERED_MAX:
            self._granted.clear()
        self._grants += 1
        self._granted.update(dict.fromkeys(granted, self._grants))
        waiting = {id: each for id, each in due.items() if id not in granted}
        self._waiting = waiting if len(waiting) <= limits.CALLBACK_ENDPOINTS_REMEMBERED_MAX else {}
