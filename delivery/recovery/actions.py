"""The changes of a delivery's state that a client may request, as data. Plain module."""

from typing import NamedTuple


class Action(NamedTuple):
    """A requested change: the states in which it is possible, and those in which `force` makes it
    possible; the state that it leads to, and the event of `system` that announces it.
    """

    name: str
    states: frozenset[str]
    forced: frozenset[str]
    result: str
    announced: str

    def possible(self, *, force: bool) -> frozenset[str]:
        """Return the states in which the action is possible."""
        return self.states | self.forced if force else self.states


_FAILED = frozenset({"dead_lettered", "dropped", "cancelled", "discarded"})
RESEND = Action(
    "resend",
    _FAILED | {"pending"},
    frozenset({"delivered", "expired"}),
    "pending",
    "delivery.resent",
)
SKIP = Action("skip", frozenset({"pending"}), frozenset(), "discarded", "delivery.skipped")
DISCARD = Action(
    "discard",
    frozenset({"dead_lettered", "dropped", "cancelled", "expired"}),
    frozenset(),
    "discarded",
    "delivery.discarded",
)
