"""A compiled program: its instructions, the filter of the events that start it, and the filters of
the recent events that it examines. Plain module.
"""

from typing import NamedTuple

from registrations.agents.machine import Code
from registrations.filters.ast import Node


class RecentEvents(NamedTuple):
    """Events that a program examines: of the most recent ones those that a filter passes.
    `count_max`: of how many, as far as the text says; the limit if it is calculated.
    """

    filter: Node
    count_max: int


class AgentProgram(NamedTuple):
    """A program. `codes`: the program itself, then its functions."""

    text: str
    trigger: Node
    codes: tuple[Code, ...]
    recent: tuple[RecentEvents, ...]
