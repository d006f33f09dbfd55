"""Who may have how many requests under way: fair shares, and small ones for endpoints in trouble.

Plain; a free choice of clock makes it a table to test. One loop uses it, so nothing is locked.

An endpoint begins with a few slots, and each good answer doubles them. A time-out or a refused
connection leaves it one, and so does a request that is kept longer than CALLBACK_SLOW_S: what hangs
is noticed before it times out. All that are not proven share a part of the slots, so that many of
them at once cannot take what the healthy need.
"""

from collections.abc import Iterable

from eventhub import limits
from eventhub.clock import Clock


class _Endpoint:
    """How an endpoint did lately, and when each of its requests under way began."""

    __slots__ = ("began_s", "cap", "held", "proven")

    def __init__(self) -> None:
        self.cap = limits.CALLBACK_SLOTS_NEW_ENDPOINT_MAX
        self.proven = False
        self.held = 0  # claimed and not finished
        self.began_s: dict[int, float] = {}  # by request, in the order of their beginning


class Slots:
    """All slots of one worker."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._endpoints: dict[int, _Endpoint] = {}
        self._busy: dict[int, _Endpoint] = {}  # those that hold slots
        self.held = 0
        self._requests = 0

    @property
    def free(self) -> int:
        return limits.CALLBACK_SLOTS_MAX - self.held

    def grant(self, endpoint_ids: Iterable[int]) -> dict[int, int]:
        """How many deliveries may be claimed for each endpoint; those with none are left out.

        The slots are dealt in rounds, so that a few endpoints get more than their share only of
        what the others do not need.
        """
        now_s = self._clock.monotonic_s()
        free = min(self.free, limits.CALLBACK_CLAIM_DELIVERIES_MAX)
        unproven = limits.CALLBACK_SLOTS_UNPROVEN_MAX - self._unproven(now_s)
        room = {each: self._room(each, now_s) for each in endpoint_ids}
        proven = {each for each in room if self._is_proven(each, now_s)}
        granted: dict[int, int] = {}
        while free > 0 and room:
            share = max(1, free // len(room))
            for each, wanted in list(room.items()):
                most = free if each in proven else min(free, unproven)
                count = max(0, min(wanted, share, most))
                granted[each] = granted.get(each, 0) + count
                free -= count
                unproven -= 0 if each in proven else count
                room[each] -= count
                if not count or not room[each]:
                    del room[each]
        return {each: count for each, count in granted.items() if count}

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
        if len(self._endpoints) > limits.CALLBACK_ENDPOINTS_REMEMBERED_MAX:
            self._endpoints = dict(self._busy)

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
            endpoint.proven = True
        else:
            endpoint.cap = 1
            endpoint.proven = False

    def _room(self, endpoint_id: int, now_s: float) -> int:
        endpoint = self._endpoints.get(endpoint_id)
        if endpoint is None:
            return limits.CALLBACK_SLOTS_NEW_ENDPOINT_MAX
        return (1 if _hangs(endpoint, now_s) else endpoint.cap) - endpoint.held

    def _is_proven(self, endpoint_id: int, now_s: float) -> bool:
        endpoint = self._endpoints.get(endpoint_id)
        return endpoint is not None and endpoint.proven and not _hangs(endpoint, now_s)

    def _unproven(self, now_s: float) -> int:
        """Slots held by endpoints that are not proven."""
        return sum(
            endpoint.held
            for endpoint in self._busy.values()
            if not endpoint.proven or _hangs(endpoint, now_s)
        )


def _hangs(endpoint: _Endpoint, now_s: float) -> bool:
    oldest = next(iter(endpoint.began_s.values()), now_s)
    return now_s - oldest > limits.CALLBACK_SLOW_S
