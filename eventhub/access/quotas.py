"""The quotas that operators set for zones and clients. Plain module.

A quota of a zone bounds the zone as a whole, one of a client this client; where both are set, both
apply. Without a quota, the bounds of the hub apply (base/limits.py).
"""

import math
from typing import Literal, NamedTuple

from eventhub.base.errors import TooManyRequests

Kind = Literal["events_per_s", "registrations", "endpoints"]
KINDS: tuple[Kind, ...] = ("events_per_s", "registrations", "endpoints")


class EmitRates(NamedTuple):
    """The events per second that a client and its zone may emit; None: no quota."""

    client: int | None
    zone: int | None


class RateLimited(TooManyRequests):
    """The quota of events per second is used up; emit again after the seconds in Retry-After."""

    def __init__(self, *, scope: str, rate: int, wait_s: float) -> None:
        """Initialize for the quota of `scope`, `client` or `zone`."""
        message = (
            f"The {scope} may emit {rate:,} events per second, and has emitted more; emit again"
            " after the seconds in Retry-After."
        )
        self._state = RateState(scope, rate, 0, wait_s)
        wait = max(math.ceil(wait_s), 1)
        super().__init__(message, retry_after_s=wait, scope=scope, events_per_s=rate)

    @property
    def headers(self) -> list[tuple[bytes, bytes]]:
        return [*super().headers, *rate_headers([self._state])]


class RateState(NamedTuple):
    """How much of a rate is left: events at once, and the seconds until there are more."""

    scope: str
    rate: int
    left: int
    wait_s: float


def rate_headers(states: list[RateState]) -> list[tuple[bytes, bytes]]:
    """Return the fields of draft-ietf-httpapi-ratelimit-headers-10, in events per second."""
    policies = ", ".join(f'"{each.scope}";q={each.rate};w=1;qu="events"' for each in states)
    left = ", ".join(
        f'"{each.scope}";r={each.left};t={max(math.ceil(each.wait_s), 1)}' for each in states
    )
    return [(b"ratelimit-policy", policies.encode()), (b"ratelimit", left.encode())]
