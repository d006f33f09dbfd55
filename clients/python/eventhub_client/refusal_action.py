"""What an outbox does after the hub refused a batch, as a table without I/O. Plain module."""

from typing import Literal, NamedTuple

from eventhub.base import limits
from eventhub_client.errors import NotAllowed, NotThere, ProducerWindow, Unavailable
from eventhub_client.types import HubProblem


class RefusalAction(NamedTuple):
    """`bury`: the event `at` that index will never be taken. `renumber`: the event `at` needs a
    new id. `halve`: send fewer at once. `wait`: send the same again. `hold`: the same, when
    somebody has mended it.
    """

    kind: Literal["bury", "renumber", "halve", "wait", "hold"]
    at: int = 0
    after_s: float = 0.0


def action_after(problem: HubProblem, count: int) -> RefusalAction:
    """After a refusal of `count` events in one request, none of which were stored by it.

    `outcome_unknown` is an `Unavailable`: ids make repeating safe.
    """
    if isinstance(problem, Unavailable):
        return RefusalAction("wait", after_s=problem.retry_after_s or 0.0)
    if isinstance(problem, NotAllowed | NotThere):
        return RefusalAction("hold", after_s=limits.OUTBOX_HELD_S)
    index = problem.position.get("index", 0 if count == 1 else None)
    if not isinstance(index, int) or not 0 <= index < count:
        return RefusalAction("halve") if count > 1 else RefusalAction("bury")
    return RefusalAction("renumber" if isinstance(problem, ProducerWindow) else "bury", index)
