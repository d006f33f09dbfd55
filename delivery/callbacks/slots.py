"""Who may have how many requests under way: fair shares, and small ones for endpoints in trouble.
One loop uses it, so nothing is locked. Plain module.

An endpoint begins with a few slots; each delivery that it takes doubles them, and each that it
refuses halves them. A time-out or a refused connection leaves it one, and so does a request that is
kept longer than CALLBACK_SLOW_S: what hangs is noticed before it times out. Those that are new and
those in trouble have a share each, so that what is known to hang takes nothing from what was never
tried. A new one that hangs is in trouble from then on, and its slots are free for other new ones,
up to the bound of both.

Endpoints of one receiver hang together, however good they were. So no client holds more than twice
what is free, which leaves a part to clients that hold nothing; and requests that hang take no slot,
up to a bound of their own, so that whatever hung is over for the others after CALLBACK_SLOW_S.
"""

from collections import Counter
from collections.abc import Mapping
from itertools import takewhile
from typing import Literal

from eventhub.base import limits
from eventhub.base.clock import Clock

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
        return self._free(self._hanging())

    def _free(self, hanging: Mapping[int, int]) -> int:
        spared = min(sum(hanging.values()), limits.CALLBACK_HANGING_MAX)
        return limits.CALLBACK_SLOTS_MAX - (self.held - spared)

    def grant(self, clients: Mapping[int, int]) -> dict[int, int]:
        """How many deliveries may be claimed for each endpoint; those with none are left out.
        `clients`: whose they are, by endpoint.

        The slots are dealt in rounds and in the order given, so that a few endpoints get more than
        their share only of what the others do not need. One that is not proven gets one in a round.
        """
        now_s = self._clock.monotonic_s()
        hanging = self._hanging()
        unused = self._free(hanging)
        free = min(unused, limits.CALLBACK_CLAIM_DELIVERIES_MAX)
        left = self._left(now_s)
        own = self._held_by_client(hanging)
        room = {each: self._room(each, now_s) for each in clients}
        standings = {each: self._standing(each, now_s) for each in room}
        granted: dict[int, int] = {}
        while free > 0 and room:
            share = max(1, free // len(room))
            for each, wanted in list(room.items()):
                standing = standings[each]
                most = share if standing == "proven" else 1
                count = max(0, min(wanted, most, free, left[standing],
                                   _share(unused, own[clients[each]])))  # fmt: skip
                granted[each] = granted.get(each, 0) + count
                own[clients[each]] += count
                free -= count
                unused -= count
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
            cap = endpoint.cap * 2 if outcome == "delivered" else max(1, endpoint.cap // 2)
            endpoint.cap = min(limits.CALLBACK_SLOTS_PER_ENDPOINT_MAX, cap)
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

    def _hanging(self) -> dict[int, int]:
        """By endpoint: requests that are kept too long."""
        slow_s = self._clock.monotonic_s() - limits.CALLBACK_SLOW_S
        return {
            endpoint_id: sum(1 for _ in takewhile(slow_s.__gt__, endpoint.began_s.values()))
            for endpoint_id, endpoint in self._busy.items()
            if next(iter(endpoint.began_s.values()), slow_s) < slow_s
        }

    def _held_by_client(self, hanging: Mapping[int, int]) -> Counter[int]:
        held: Counter[int] = Counter()
        for endpoint_id, endpoint in self._busy.items():
            own = endpoint.held - hanging.get(endpoint_id, 0)
            held[self._clients.get(endpoint_id, 0)] += own
        return held

    def _left(self, now_s: float) -> dict[Standing, int]:
        """What may still be granted to endpoints of each standing."""
        held: Counter[Standing] = Counter()
        for endpoint in self._busy.values():
            if endpoint.standing != "proven":  # what was good and hangs takes nothing from these
                held[_standing(endpoint, now_s)] += endpoint.held
        unproven = limits.CALLBACK_SLOTS_UNPROVEN_MAX - held["new"] - held["trouble"]
        return {
            "new": min(limits.CALLBACK_SLOTS_NEW_MAX - held["new"], unproven),
            "trouble": min(limits.CALLBACK_SLOTS_TROUBLE_MAX - held["trouble"], unproven),
            "proven": limits.CALLBACK_SLOTS_MAX,
        }


def _share(unused: int, own: int) -> int:
    """What a client may be granted so that it holds no more than its share of what is then free;
    one that holds nothing, a slot.
    """
    per_free = limits.CALLBACK_CLIENT_SLOTS_PER_FREE
    return max((per_free * unused - own) // (per_free + 1), 0 if own else 1)


def _standing(endpoint: _Endpoint, now_s: float) -> Standing:
    return "trouble" if _hangs(endpoint, now_s) else endpoint.standing


def _hangs(endpoint: _Endpoint, now_s: float) -> bool:
    oldest = next(iter(endpoint.began_s.values()), now_s)
    return now_s - oldest > limits.CALLBACK_SLOW_S
