"""The circuit breaker of an endpoint as a state chart: what each event does in each state. The
statements in delivery/sql/circuits.sql perform it, and a test compares them with this table. Plain
module.

The state is shared by all workers, in a row of `circuits`; an endpoint without a row is closed.
"""

from typing import Literal, NamedTuple

CircuitState = Literal["closed", "open", "half_open"]
CircuitEvent = Literal[
    "success",  # a request was answered with 2xx
    "failure",  # a request failed
    "last_failure",  # the fifth in a row, or a 429 with a Retry-After
    "pause_over",  # the pause is over and a delivery is pending
    "endpoint_changed",  # its URL was corrected, or it was enabled again
    "probe_failed",
    "probe_returned",  # no request was made: the event had expired, or the worker stops
    "probe_lost",  # its result did not come in time
]


class Transition(NamedTuple):
    """What an event does in a state; `effect` is for readers."""

    state: CircuitState
    event: CircuitEvent
    next: CircuitState
    effect: str


CHART = (
    Transition("closed", "success", "closed", "failures are counted from 0 again"),
    Transition("closed", "failure", "closed", "the failure is counted"),
    Transition("closed", "last_failure", "open", "nothing is sent for 1 s, or for the Retry-After"),
    Transition("open", "success", "closed", "of a request that was under way; deliveries continue"),
    Transition("open", "failure", "open", "of a request that was under way; the pause stays"),
    Transition("open", "pause_over", "half_open", "one worker sends one request, the probe"),
    Transition("open", "endpoint_changed", "half_open", "the same, before the pause is over"),
    Transition("half_open", "success", "closed", "deliveries continue"),
    Transition("half_open", "failure", "half_open", "of a request that was under way"),
    Transition("half_open", "probe_failed", "open", "the pause is twice as long, up to 5 minutes"),
    Transition("half_open", "probe_returned", "open", "the pause is over at once, or in a second"),
    Transition("half_open", "probe_lost", "half_open", "another worker sends a probe"),
)

# Events of `system` about the deliveries to an endpoint. An endpoint gets none about itself: each
# would be one more delivery that fails.
OPERATIONAL_TYPES = frozenset(
    {
        *("endpoint.circuit_opened", "endpoint.circuit_closed", "endpoint.failing"),
        *("endpoint.recovered", "endpoint.disabled"),
        *("delivery.dead_lettered", "delivery.dropped"),
    }
)
