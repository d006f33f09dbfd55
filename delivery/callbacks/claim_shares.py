"""How many deliveries and lanes one claim requests for the slots of each endpoint. SQL module."""

from collections.abc import Callable, Mapping
from typing import NamedTuple

from delivery.callbacks.claims import CallbackEndpoint, LaneCounts
from delivery.callbacks.throttles import Throttle
from eventhub.base import limits


class ByteBound(NamedTuple):
    """The bytes of a claim, and the average sizes of events, of endpoints with large ones."""

    bytes_max: int
    large: Mapping[int, int]


def deliveries_requested(
    slots: Mapping[int, int], due: Mapping[int, CallbackEndpoint], probes: frozenset[int]
) -> dict[int, int]:
    """Return how many deliveries to claim for the slots of each endpoint. Of the bound of those
    that are posted in batches each endpoint has an equal share, in whole batches if it can.
    """
    requested = dict(slots)
    full = {
        each: count * due[each].events_per_request
        for each, count in slots.items()
        if each not in probes and due[each].batch_events_max is not None
    }
    free, left = limits.BATCH_DELIVERIES_CLAIMED_MAX, len(full)
    for each in sorted(full, key=full.__getitem__):
        share = min(full[each], max(slots[each], free // left))
        size = due[each].events_per_request
        requested[each] = share if share < size else share - share % size
        free, left = max(0, free - requested[each]), left - 1
    return requested


def ahead(
    slots: Mapping[int, int],
    due: Mapping[int, CallbackEndpoint],
    probes: frozenset[int],
    per_slot: Callable[[int], int],
) -> dict[int, int]:
    """Return how many deliveries to claim for the slots of endpoints without batches, each in a
    request of its own. All slots share the bound of a claim alike. Endpoints with limits of their
    own are left out, because a claim counts as a request.
    """
    single = [
        each
        for each in slots
        if each not in probes and not due[each].is_limited and due[each].batch_events_max is None
    ]
    most = limits.CALLBACK_CLAIM_DELIVERIES_MAX // max(1, sum(slots.values()))
    return {each: slots[each] * max(1, min(most, per_slot(each))) for each in single}


def within_bytes(
    requested: Mapping[int, int], slots: Mapping[int, int], bound: ByteBound
) -> dict[int, int]:
    """Return the counts of deliveries, lower for endpoints with large events, so that most of what
    is claimed fits into the bytes of a claim. Each slot has a delivery.
    """
    large = bound.large
    share = bound.bytes_max // max(1, len(large))
    return {
        each: max(slots[each], min(count, share // large[each])) if each in large else count
        for each, count in requested.items()
    }


def lanes_requested(
    slots: Mapping[int, int],
    due: Mapping[int, CallbackEndpoint],
    probes: frozenset[int],
    throttle: Throttle,
    bound: ByteBound,
) -> dict[int, LaneCounts]:
    """Return how many lanes to take for the slots of each endpoint. A lane has a slot, but several
    lanes share a batch.
    """
    counts = deliveries_requested(slots, due, probes)
    batches = {
        each for each in counts if due[each].batch_events_max is not None and each not in probes
    }
    of_each = {each: count if each in batches else throttle.per_slot(each)
               for each, count in counts.items()}  # fmt: skip
    all = {each: count if each in batches else count * of_each[each]
           for each, count in counts.items()}  # fmt: skip
    fitting = within_bytes(all, slots, bound)
    return {
        each: LaneCounts(
            min(count, fitting[each]), fitting[each], min(of_each[each], fitting[each])
        )
        for each, count in counts.items()
    }


def requests_of(claimed: Mapping[int, int], due: Mapping[int, CallbackEndpoint]) -> dict[int, int]:
    """Return how many requests the claimed deliveries of each endpoint take."""
    return {each: -(-count // due[each].events_per_request) for each, count in claimed.items()}
