"""The action of an outbox after a refusal of the hub, without I/O. Plain module."""

from typing import Literal, NamedTuple

from eventhub.base import limits
from eventhub_client.errors import Missing, NotAllowed, ProducerWindow, Unavailable
from eventhub_client.types import HubProblem


class RefusalAction(NamedTuple):
    """`dead_letter`: the hub will never accept the event at index `at`. `renumber`: the event at
    `at` needs a new id. `halve`: send fewer at once. `wait`: send the same again. `block`: send the
    same again, which needs a manual action first.
    """

    kind: Literal["dead_letter", "renumber", "halve", "wait", "block"]
    at: int = 0
    after_s: float = 0.0


def action_after(problem: HubProblem, count: int) -> RefusalAction:
    """Return the action after a request of `count` events was refused and stored none of them.

    `outcome_unknown` is an `Unavailable`: ids make repeating safe.
    """
    if isinstance(problem, Unavailable):
        return RefusalAction("wait", after_s=problem.retry_after_s or 0.0)
    if isinstance(problem, NotAllowed | Missing):
        return RefusalAction("block", after_s=limits.OUTBOX_HELD_S)
    index = problem.position.get("index", 0 if count == 1 else None)
    if not isinstance(index, int) or not 0 <= index < count:
        return RefusalAction("halve") if count > 1 else RefusalAction("dead_letter")
    return RefusalAction(
        "renumber" if isinstance(problem, ProducerWindow) else "dead_letter", index
    )
