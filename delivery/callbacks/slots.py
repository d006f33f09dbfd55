"""Who may have how many requests under way: fair shares, and small ones for endpoints in trouble.

Plain; a free choice of clock makes it a table to test. One loop uses it, so nothing is locked.

An endpoint begins with a few slots, and each good answer doubles them. A time-out or a refused
connection leaves it one, and so does a request that is kept longer than CALLBACK_SLOW_S: what hangs
is noticed before it times out. Those that are new and those in trouble have a share each, so that
what is known to hang takes nothing from what was never tried, and both together leave the healthy
their part. A new one that hangs is in trouble from then on, and its slots are free for other new
ones, up to the bound of both. No client holds more than its share, however good its endpoints were:
those of one receiver hang together.
"""

from collections import Counter
from collections.abc import Mapping
from typing import Literal

from eventhub import limits
from eventhub.clock import Clock

Standing = Literal["new", "trouble", "proven"]


class _Endpoint:
    """How an endpoint did lately, and when each of its requests under way began."""

    __slots__ = ("began_s", "cap", "held", "standing")

    def __init__(self) -> None:
        self.cap = limits.CALLBACK_SLOTS_NEW_ENDPOINT_MAX
        self.standing: Standing = "new"
        self.held = 0  # claimed and not finished
        self.began_s: dict[int, float] = {}  # by request, in the order of their beginning


class Slots:
    """All slots of one worker."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._endpoints: dict[int, _Endpoint] = {}
        self._busy: dict[int, _Endpoint] = {}  # those that hold slots
        self._clients: dict[int, int] = {}  # whose these are, and those that were granted some
        self.held = 0
        self._requests = 0

    @property
    def free(self) -> int:
        return limits.CALLBACK_SLOTS_MAX - self.held

    def grant(self, clients: Mapping[int, int]) -> dict[int, int]:
        """How many deliveries may be claimed for each endpoint; those with none are left out.
        `clients`: whose they are, by endpoint.

        The slots are dealt in rounds and in the order given, so that a few endpoints get more than
        their share only of what the others do not need. One that is not proven gets one in a round.
        """
        now_s = self._clock.monotonic_s()
        free = min(self.free, limits.CALLBACK_CLAIM_DELIVERIES_MAX)
        left = self._left(now_s)
        own = self._held_by_client()
        room = {each: self._room(each, now_s) for each in clients}
        standings = {each: self._standing(each, now_s) for each in room}
        granted: dict[int, int] = {}
        while free > 0 and room:
            share = max(1, free // len(room))
            for each, wanted in list(room.items()):
                standing = standings[each]
                most = share if standing == "proven" else 1
                client_left = limits.CALLBACK_SLOTS_PER_CLIENT_MAX - own[clients[each]]
                count = max(0, min(wanted, most, free, left[standing], client_left))
                granted[each] = granted.get(each, 0) + count
                own[clients[each]] += count
                free -= count
                left[standing] -= count
                room[each] -= count
                if not count or not room[each]:
                    del room[each]
        granted = {each: count for each, count in granted.items() if count}
        self._clients.update({each: clients[each] for each in granted})
        return granted

    def hold(self, endpoint_id: int) -> None:
        """A claimed delivery, or an ordered lane, takes a slot."""
        endpoint = self._endpoints.setdefault(endpoint_id, _Endpoint())
        self._busy[endpoint_id] = endpoint
        endpoint.held += 1
        self.held += 1

    def release(self, endpoint_id: int) -> None:
        endpoint = self._busy[endpoint_id]
        endpoint.held -= 1
        self.held -= 1
        if not endpoint.held:
            del self._busy[endpoint_id]
            self._clients.pop(endpoint_id, None)
        if len(self._endpoints) > limits.CALLBACK_ENDPOINTS_REMEMBERED_MAX:
            self._endpoints = dict(self._busy)
            self._clients = {each: self._clients.get(each, 0) for each in self._busy}

    def began(self, endpoint_id: int) -> int:
        """A request is under way; `ended` takes the number."""
        self._requests += 1
        self._endpoints[endpoint_id].began_s[self._requests] = self._clock.monotonic_s()
        return self._requests

    def ended(self, endpoint_id: int, request: int, outcome: str) -> None:
        """A try is over; it says how the endpoint does."""
        endpoint = self._endpoints[endpoint_id]
        took_s = self._clock.monotonic_s() - endpoint.began_s.pop(request)
        if outcome in ("delivered", "status", "redirect") and took_s < limits.CALLBACK_SLOW_S:
            endpoint.cap = min(limits.CALLBACK_SLOTS_PER_ENDPOINT_MAX, endpoint.cap * 2)
            endpoint.standing = "proven"
        else:
            endpoint.cap = 1
            endpoint.standing = "trouble"

    def _room(self, endpoint_id: int, now_s: float) -> int:
        endpoint = self._endpoints.get(endpoint_id)
        if endpoint is None:
            return limits.CALLBACK_SLOTS_NEW_ENDPOINT_MAX
        return (1 if _hangs(endpoint, now_s) else endpoint.cap) - endpoint.held

    def _standing(self, endpoint_id: int, now_s: float) -> Standing:
        endpoint = self._endpoints.get(endpoint_id)
        return "new" if endpoint is None else _standing(endpoint, now_s)

    def _held_by_client(self) -> Counter[int]:
        held: Counter[int] = Counter()
        for endpoint_id, endpoint in self._busy.items():
            held[self._clients.get(endpoint_id, 0)] += endpoint.held
        return held

    def _left(self, now_s: float) -> dict[Standing, int]:
        """What may still be granted to endpoints of each standing."""
        held: Counter[Standing] = Counter()
        for endpoint in self._busy.values():
            held[_standing(endpoint, now_s)] += endpoint.held
        unproven = limits.CALLBACK_SLOTS_UNPROVEN_MAX - held["new"] - held["trouble"]
        return {
            "new": min(limits.CALLBACK_SLOTS_NEW_MAX - held["new"], unproven),
            "trouble": min(limits.CALLBACK_SLOTS_TROUBLE_MAX - held["trouble"], unproven),
            "proven": limits.CALLBACK_SLOTS_MAX,
        }


def _standing(endpoint: _Endpoint, now_s: float) -> Standing:
    return "trouble" if _hangs(endpoint, now_s) else endpoint.standing


def _hangs(endpoint: _Endpoint, now_s: float) -> bool:
    oldest = next(iter(endpoint.began_s.values()), now_s)
    return now_s - oldest > limits.CALLBACK_SLOW_S
