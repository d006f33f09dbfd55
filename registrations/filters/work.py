"""The work of evaluating an expression for one event, and its result. Plain module."""

from typing import NamedTuple

from eventhub.base import limits


class Result(NamedTuple):
    """The result of an expression; after an error it is false. `why`: in words."""

    holds: bool
    why: str


class TooMuchWork(Exception):
    """An evaluation exceeds its steps. It ends, and the expression does not hold."""


class Work:
    """The steps that are left, each of about 1 us. They do not depend on other expressions: the
    result for an event has to be the same in every strategy of matching, in any order.
    """

    __slots__ = ("_left",)

    def __init__(self) -> None:
        self._left = limits.EXPRESSION_STEPS_MAX

    def spend(self, steps: int) -> None:
        """Take steps. Raises TooMuchWork if there are too few."""
        self._left -= steps
        if self._left < 0:
            raise TooMuchWork
