"""The program of an expression, what both expression languages make of a text. Plain module."""

from collections.abc import Callable
from typing import NamedTuple

from registrations.filters.ast import Path
from registrations.filters.event_values import EventValues
from registrations.filters.work import Result, Work


class Program(NamedTuple):
    """A parsed expression. `required`: paths without which it does not hold; `paths`: all that it
    may read; `size`: its parts; `cost`: to evaluate it, in tests of one value. `run` raises
    TooMuchWork.
    """

    required: tuple[Path, ...]
    paths: tuple[Path, ...]
    size: int
    cost: int
    run: Callable[[EventValues, Work], Result]
