"""The quotas that operators set for zones and clients. Plain module.

A quota of a zone bounds the zone as a whole, one of a client this client; where both are set, both
apply. Without a quota, the bounds of the hub apply (base/limits.py).
"""

import math
from typing import Literal, NamedTuple, get_args

from eventhub.base import limits
from eventhub.base.errors import EventHubError, LimitReached, TooManyRequests

Kind = Literal[
    "events_per_s",
    "stored_bytes",
    "sockets",
    "registrations",
    "endpoints",
    "timers",
    "patterns",
    "backlog_events",
    "backlog_bytes",
]
KINDS: tuple[Kind, ...] = get_args(Kind)
OF_ZONES: tuple[Kind, ...] = ("stored_bytes",)  # that a single client cannot have
OF_CLIENTS = tuple(kind for kind in KINDS if kind not in OF_ZONES)


class EmitRates(NamedTuple):
    """The events per second that a client and its zone may emit; None: no quota."""

    client: int | None
    zone: int | None


def quota_reached(kind: Kind, value: int, *, of_zone: bool) -> LimitReached:
    """Return the error for more than a quota allows."""
    message = (
        f"The quota of the {'zone' if of_zone else 'client'} is {value:,} {kind};"
        " delete some first, or ask an operator for more."
    )
    return LimitReached(message, limit=value)


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


class ZoneStorageFull(EventHubError):
    """The zone's quota of stored bytes is used up; nothing was stored."""

    status = 507

    def __init__(self, quota_bytes: int) -> None:
        message = (
            f"The zone's quota of {quota_bytes:,} stored bytes is used up; nothing was stored."
            " Shorten the retention of its streams or delete some, or ask an operator for more."
        )
        super().__init__(
            message, retry_after_s=limits.STORAGE_FULL_RETRY_S, quota_bytes=quota_bytes
        )


class SocketsLimited(TooManyRequests):
    """The quota of sockets is used up; close some, or try again after the seconds in
    Retry-After.
    """

    def __init__(self, *, scope: str, quota: int) -> None:
        """Initialize for the quota of `scope`, `client` or `zone`."""
        message = (
            f"The {scope} may have {quota:,} sockets at a time, listeners over HTTP included, and"
            " has them; close some, or ask an operator for more."
        )
        wait_s = limits.SOCKETS_FULL_RETRY_S
        super().__init__(message, retry_after_s=wait_s, scope=scope, sockets_max=quota)

    @property
    def headers(self) -> list[tuple[bytes, bytes]]:
        scope, quota = self.details["scope"], self.details["sockets_max"]
        policy = f'"{scope}";q={quota};qu="concurrent-requests"'
        left = f'"{scope}";r=0;t={self.retry_after_s}'
        return [
            *super().headers,
            (b"ratelimit-policy", policy.encode()),
            (b"ratelimit", left.encode()),
        ]


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
