"""The slots of one worker: how many requests each endpoint may have under way, with fair shares,
and small ones for failing endpoints. Used by one event loop, so nothing is locked. Plain module.

An endpoint starts with a few slots; each delivery that it accepts doubles them, and each error
response halves them. If it has all of them and answers quickly, a slot takes several deliveries,
which are posted one after the other and do not wait for the next claim. A timeout or a refused
connection leaves an endpoint one slot, and so does a request that lasts longer than
CALLBACK_SLOW_S: a hanging endpoint is noticed before the timeout. New and failing endpoints have a
share each, so that endpoints known to hang take nothing from those never tried. A new endpoint that
hangs counts as failing from then on, and its slots are free for other new ones, up to the bound of
both.

Endpoints of one receiver hang together, however healthy they were. So no client holds more than
twice what is free, which leaves a part to clients that hold nothing. Requests that hang occupy no
slot, up to a bound of their own, so they delay others for CALLBACK_SLOW_S only.
"""

import math
from collections import Counter
from collections.abc import Iterable, Mapping
from itertools import takewhile
from typing import Literal

from eventhub.base import limits
from eventhub.base.clock import Clock

EndpointState = Literal["new", "failing", "healthy"]


class _EndpointSlots:
    """The recent behaviour of an endpoint, and the start time of each of its requests under way."""

    __slots__ = ("bytes_held", "cap", "event_bytes", "held", "request_s", "started_s", "state")

    def __init__(self) -> None:
        self.cap = limits.CALLBACK_SLOTS_NEW_ENDPOINT_MAX
        self.state: EndpointState = "new"
        self.held = 0  # claimed and not finished
        self.bytes_held = 0  # of their bodies
        self.event_bytes = 0  # of an event, on average, when it held a slot last
        self.request_s = math.inf  # the duration of its recent requests, on average
        self.started_s: dict[int, float] = {}  # by request number, in the order of their start


class CallbackSlots:
    """All slots of one worker."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._endpoints: dict[int, _EndpointSlots] = {}
        self._busy: dict[int, _EndpointSlots] = {}  # endpoints that hold slots
        self._clients: dict[
            int, int
        ] = {}  # client ids of endpoints that hold or were granted slots
        self.held = 0
        self._bytes_held = 0
        self._requests = 0

    @property
    def free(self) -> int:
        return self._free(self._hanging_requests())

    @property
    def bytes_per_claim(self) -> int:
        """How many bytes of events the next claim may take: a third of what is unused, so that
        there is room for clients that hold none; one event always.
        """
        unused = limits.CALLBACK_BYTES_HELD_MAX - self._bytes_held
        return max(1, min(limits.CALLBACK_CLAIM_BYTES_MAX, unused // 3))

    def _free(self, hanging: Mapping[int, int]) -> int:
        spared = min(sum(hanging.values()), limits.CALLBACK_HANGING_MAX)
        return limits.CALLBACK_SLOTS_MAX - (self.held - spared)

    def grant(self, clients: Mapping[int, int]) -> dict[int, int]:
        """Return how many deliveries may be claimed for each endpoint, without endpoints that get
        none. `clients` maps each endpoint to its client.

        Slots are allocated in rounds, in the given order, so that a few endpoints get more than
        their share only of what the others do not need. An endpoint that is not healthy gets one
        per round. A client whose requests hold too many bytes gets none, and large events take
        their bytes of what one claim may have.
        """
        if self._bytes_held >= limits.CALLBACK_BYTES_HELD_MAX:
            return {}
        now_s = self._clock.monotonic_s()
        hanging = self._hanging_requests()
        unused = self._free(hanging)
        free = min(unused, limits.CALLBACK_CLAIM_DELIVERIES_MAX)
        remaining = self._remaining(now_s)
        held_by_client = self._held_by_client(hanging)
        bounded = self._bounded_clients()
        allowed = {
            each: self._allowed(each, now_s)
            for each, client in clients.items()
            if client not in bounded
        }
        states = {each: self._state(each, now_s) for each in allowed}
        sizes = self.large_events(allowed)
        bytes_max = bytes_left = self.bytes_per_claim
        granted: dict[int, int] = {}
        while free > 0 and allowed:
            share = max(1, free // len(allowed))
            for each, requested in list(allowed.items()):
                state, size = states[each], sizes.get(each, 0)
                limit = share if state == "healthy" else 1
                if size:
                    limit = min(limit, max(bytes_left // size, bytes_left == bytes_max))
                count = max(0, min(requested, limit, free, remaining[state],
                                   _share(unused, held_by_client[clients[each]])))  # fmt: skip
                bytes_left -= count * size
                granted[each] = granted.get(each, 0) + count
                held_by_client[clients[each]] += count
                free -= count
                unused -= count
                remaining[state] -= count
                allowed[each] -= count
                if not count or not allowed[each]:
                    del allowed[each]
        granted = {each: count for each, count in granted.items() if count}
        self._clients.update({each: clients[each] for each in granted})
        return granted

    def large_events(self, endpoint_ids: Iterable[int]) -> dict[int, int]:
        """Return the average size of the events of those endpoints that have large ones, of which a
        claim cannot have as many as otherwise.
        """
        least = limits.CALLBACK_CLAIM_BYTES_MAX // limits.BATCH_DELIVERIES_CLAIMED_MAX
        known = {each: self._endpoints[each] for each in endpoint_ids if each in self._endpoints}
        return {id: each.event_bytes for id, each in known.items() if each.event_bytes > least}

    def per_slot(self, endpoint_id: int) -> int:
        """Return how many deliveries a slot may take, to post them one after the other."""
        endpoint = self._endpoints.get(endpoint_id)
        if endpoint is None or endpoint.cap < limits.CALLBACK_SLOTS_PER_ENDPOINT_MAX:
            return 1
        within = int(limits.CALLBACK_PER_SLOT_S / max(endpoint.request_s, 1e-3))
        return max(1, min(within, limits.CALLBACK_PER_SLOT_MAX))

    def exceeds(self, endpoint_id: int) -> bool:
        """Return whether the endpoint holds more slots than it has now."""
        endpoint = self._endpoints[endpoint_id]
        return endpoint.held > endpoint.cap

    def hold(self, endpoint_id: int, bytes_held: int = 0, events: int = 0) -> None:
        """Take a slot for a claimed delivery, a batch or an ordered lane, and the bytes of the
        bodies of so many events.
        """
        endpoint = self._endpoints.setdefault(endpoint_id, _EndpointSlots())
        self._busy[endpoint_id] = endpoint
        endpoint.held += 1
        self.held += 1
        endpoint.bytes_held += bytes_held
        self._bytes_held += bytes_held
        if events:
            endpoint.event_bytes = bytes_held // events

    def release(self, endpoint_id: int, bytes_held: int = 0) -> None:
        """Free a slot with the bytes that `hold` took."""
        endpoint = self._busy[endpoint_id]
        endpoint.held -= 1
        self.held -= 1
        endpoint.bytes_held -= bytes_held
        self._bytes_held -= bytes_held
        if not endpoint.held:
            del self._busy[endpoint_id]
            self._clients.pop(endpoint_id, None)
        if len(self._endpoints) > limits.CALLBACK_ENDPOINTS_REMEMBERED_MAX:
            self._endpoints = dict(self._busy)
            self._clients = {each: self._clients.get(each, 0) for each in self._busy}

    def start_request(self, endpoint_id: int) -> int:
        """Record the start of a request; return its number for `end_request`."""
        self._requests += 1
        self._endpoints[endpoint_id].started_s[self._requests] = self._clock.monotonic_s()
        return self._requests

    def end_request(self, endpoint_id: int, request: int, outcome: str) -> None:
        """Record the outcome of a request, which decides the endpoint's number of slots."""
        endpoint = self._endpoints[endpoint_id]
        duration_s = self._clock.monotonic_s() - endpoint.started_s.pop(request)
        endpoint.request_s = _average(endpoint.request_s, duration_s)
        if outcome in ("delivered", "status", "redirect") and duration_s < limits.CALLBACK_SLOW_S:
            cap = endpoint.cap * 2 if outcome == "delivered" else max(1, endpoint.cap // 2)
            endpoint.cap = min(limits.CALLBACK_SLOTS_PER_ENDPOINT_MAX, cap)
            endpoint.state = "healthy"
        else:
            endpoint.cap = 1
            endpoint.state = "failing"

    def _allowed(self, endpoint_id: int, now_s: float) -> int:
        endpoint = self._endpoints.get(endpoint_id)
        if endpoint is None:
            return limits.CALLBACK_SLOTS_NEW_ENDPOINT_MAX
        return (1 if _is_hanging(endpoint, now_s) else endpoint.cap) - endpoint.held

    def _state(self, endpoint_id: int, now_s: float) -> EndpointState:
        endpoint = self._endpoints.get(endpoint_id)
        return "new" if endpoint is None else _state(endpoint, now_s)

    def _hanging_requests(self) -> dict[int, int]:
        """Return the number of requests that last too long, by endpoint."""
        slow_s = self._clock.monotonic_s() - limits.CALLBACK_SLOW_S
        return {
            endpoint_id: sum(1 for _ in takewhile(slow_s.__gt__, endpoint.started_s.values()))
            for endpoint_id, endpoint in self._busy.items()
            if next(iter(endpoint.started_s.values()), slow_s) < slow_s
        }

    def _held_by_client(self, hanging: Mapping[int, int]) -> Counter[int]:
        held: Counter[int] = Counter()
        for endpoint_id, endpoint in self._busy.items():
            held_by_client = endpoint.held - hanging.get(endpoint_id, 0)
            held[self._clients.get(endpoint_id, 0)] += held_by_client
        return held

    def _bounded_clients(self) -> frozenset[int]:
        """Return the clients whose requests hold their share of the bytes."""
        held: Counter[int] = Counter()
        for endpoint_id, endpoint in self._busy.items():
            held[self._clients.get(endpoint_id, 0)] += endpoint.bytes_held
        unused = limits.CALLBACK_BYTES_HELD_MAX - self._bytes_held
        return frozenset(each for each, count in held.items() if _share(unused, count) <= 0)

    def _remaining(self, now_s: float) -> dict[EndpointState, int]:
        """Return the slots that may still be granted to endpoints in each state."""
        held: Counter[EndpointState] = Counter()
        for endpoint in self._busy.values():
            if (
                endpoint.state != "healthy"
            ):  # a healthy endpoint that hangs takes nothing from these shares
                held[_state(endpoint, now_s)] += endpoint.held
        unproven = limits.CALLBACK_SLOTS_UNPROVEN_MAX - held["new"] - held["failing"]
        return {
            "new": min(limits.CALLBACK_SLOTS_NEW_MAX - held["new"], unproven),
            "failing": min(limits.CALLBACK_SLOTS_TROUBLE_MAX - held["failing"], unproven),
            "healthy": limits.CALLBACK_SLOTS_MAX,
        }


def _average(average_s: float, latest_s: float) -> float:
    return latest_s if average_s == math.inf else average_s + (latest_s - average_s) / 8


def _share(unused: int, held_by_client: int) -> int:
    """Return the slots a client may be granted so that it holds no more than its share of what is
    then free; a client that holds none gets one.
    """
    per_free = limits.CALLBACK_CLIENT_SLOTS_PER_FREE
    return max((per_free * unused - held_by_client) // (per_free + 1), 0 if held_by_client else 1)


def _state(endpoint: _EndpointSlots, now_s: float) -> EndpointState:
    return "failing" if _is_hanging(endpoint, now_s) else endpoint.state


def _is_hanging(endpoint: _EndpointSlots, now_s: float) -> bool:
    oldest = next(iter(endpoint.started_s.values()), now_s)
    return now_s - oldest > limits.CALLBACK_SLOW_S
