"""How many deliveries and lanes one claim requests for the slots of each endpoint. SQL module."""

from collections.abc import Mapping

from delivery.callbacks.claims import CallbackEndpoint, LaneCounts
from delivery.callbacks.throttles import Throttle
from eventhub.base import limits


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


def lanes_requested(
    slots: Mapping[int, int],
    due: Mapping[int, CallbackEndpoint],
    probes: frozenset[int],
    throttle: Throttle,
) -> dict[int, LaneCounts]:
    """Return how many lanes to take for the slots of each endpoint. A lane has a slot, but several
    lanes share a batch.
    """
    requested = {}
    for endpoint_id, count in deliveries_requested(slots, due, probes).items():
        if due[endpoint_id].batch_events_max is not None and endpoint_id not in probes:
            requested[endpoint_id] = LaneCounts(count, count, count)
        else:
            lane = throttle.per_slot(endpoint_id)
            requested[endpoint_id] = LaneCounts(count, count * lane, lane)
    return requested


def requests_of(claimed: Mapping[int, int], due: Mapping[int, CallbackEndpoint]) -> dict[int, int]:
    """Return how many requests the claimed deliveries of each endpoint take."""
    return {each: -(-count // due[each].events_per_request) for each, count in claimed.items()}
