"""The three languages of patterns: a parsed text is what the engines take, and says what its owner
must be allowed to do and what it costs. Plain module.
"""

from collections.abc import Callable, Iterable
from typing import NamedTuple

from eventhub.base.errors import EventHubError, InvalidField
from registrations.agents.compiler import compile_program
from registrations.agents.program import AgentProgram
from registrations.filters.ast import Node
from registrations.filters.normal import normal
from registrations.matching.cost import every_event_cost
from registrations.patterns.ast import AnnounceAction, NotifyAction, Pattern, elements_of
from registrations.patterns.checks import actions_of
from registrations.patterns.parser import parse_pattern
from registrations.temporal.language import parse_temporal
from registrations.temporal.pattern import TemporalPattern

Tree = Pattern | TemporalPattern | AgentProgram
READY, TEMPORAL, AGENT = "ready", "temporal", "agent"
LANGUAGES = (READY, TEMPORAL, AGENT)
_PARSERS: dict[str, Callable[[str], Tree]] = {
    READY: parse_pattern,
    TEMPORAL: parse_temporal,
    AGENT: compile_program,
}


class PatternDefinition(NamedTuple):
    """The definition in a version of a pattern, as the client wrote it."""

    language: str
    text: str
    once: bool = False
    recent: bool = False
    suspended: bool = False


class ParsedPattern(NamedTuple):
    """A parsed text. `streams`: that it announces into by name; `sessions`: that it notifies;
    `cost`: for every event of its group, in units of registrations/matching/cost.py.
    """

    tree: Tree
    streams: frozenset[str]
    sessions: frozenset[str]
    cost: int


def parse_text(language: str, text: str) -> Tree:
    """Parse a text. Raises the errors of its language, at `text`, with line and column."""
    try:
        return _PARSERS[language](text)
    except EventHubError as error:
        error.field = error.field or "text"
        raise


def parsed(definition: PatternDefinition) -> ParsedPattern:
    """Parse a definition. Raises the errors of its language, and InvalidField for an option that
    the language lacks.
    """
    if definition.once and definition.language == AGENT:
        message = "An agent runs until it is suspended or deleted; omit `once`."
        raise InvalidField(message, field="once")
    if definition.recent and definition.language == READY:
        message = "A pattern in READY sees later events only; omit `recent`."
        raise InvalidField(message, field="recent")
    tree = parse_text(definition.language, definition.text)
    cost = sum(every_event_cost(normal(node)) for node in filters_of(tree))
    streams, sessions = _named(tree) if isinstance(tree, Pattern) else ((), ())
    return ParsedPattern(tree, frozenset(streams), frozenset(sessions), cost)


def filters_of(tree: Tree) -> list[Node]:
    """Return the filters that the group's index has of a pattern."""
    match tree:
        case Pattern():
            return [one.node for one in elements_of(tree.part)]
        case TemporalPattern():
            absent = (one.event for one in tree.absent)
            return [one.filter for one in (*tree.events, *absent)]
        case AgentProgram():
            return [tree.trigger, *(one.filter for one in tree.recent)]


def _named(pattern: Pattern) -> tuple[Iterable[str], Iterable[str]]:
    """Return the streams and the sessions that the actions of a pattern name."""
    actions = [*actions_of(pattern.part)]
    streams = [one.stream for one in actions if isinstance(one, AnnounceAction)]
    sessions = [one.target for one in actions if isinstance(one, NotifyAction)]
    return filter(None, streams), filter(None, sessions)
