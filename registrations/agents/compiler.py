"""The compiler of agents' programs: from Cambridge prefix form to the instructions of the machine
(OIF-23). Plain module.

A program is a list of forms, which run from the first to the last for each event. `(on filter)`
states the events that start it, `(define …)` defines a variable or a function of the program.
"""

from collections.abc import Sequence
from typing import NamedTuple

from eventhub.base import limits
from registrations.agents.errors import as_program, program_syntax
from registrations.agents.forms import SPECIAL_FORMS
from registrations.agents.function_compiler import FunctionCompiler, Names, variable_name
from registrations.agents.functions import FUNCTIONS
from registrations.agents.machine import Code
from registrations.agents.program import AgentProgram
from registrations.filters.ast import Node, Truth
from registrations.filters.predicate import parse_predicate_form
from registrations.filters.sexpr import FormBounds, Item, ParenthesizedForm, Word, read_forms
from registrations.matching.spec import specs_of

_BOUNDS = FormBounds(limits.PROGRAM_CHARS_MAX, limits.PROGRAM_PARTS_MAX, limits.PROGRAM_DEPTH_MAX)


class _Definition(NamedTuple):
    """A function of the program."""

    name: Word
    parameters: tuple[str, ...]
    body: tuple[Item, ...]


def compile_program(text: str) -> AgentProgram:
    """Compile a text. Raises ProgramSyntax with line and column, ProgramTooLarge."""
    with as_program():
        return _compiled(text, read_forms(text, _BOUNDS))


def _compiled(text: str, items: Sequence[Item]) -> AgentProgram:
    names = Names(SPECIAL_FORMS, {}, {}, [])
    triggers: list[Node] = []
    definitions: list[_Definition] = []
    forms: list[Item] = []
    for item in items:
        head = _head(item)
        if head == "on":
            triggers.append(_trigger(item, is_first=not (triggers or forms or definitions)))
        elif head == "define" and isinstance(item, ParenthesizedForm):
            definition = _define(item, names)
            if definition is None:
                forms.append(item)
            else:
                definitions.append(definition)
        else:
            forms.append(item)
    main = FunctionCompiler("the program", names, ())
    main.program(forms)
    codes = [main.code(), *(_function(one, names) for one in definitions)]
    (trigger,) = triggers or [Truth(True)]
    for node in (trigger, *(recent.filter for recent in names.recent)):
        specs_of(node)  # raises if it is too complex
    return AgentProgram(text, trigger, tuple(codes), tuple(names.recent))


def _head(item: Item) -> str:
    if isinstance(item, ParenthesizedForm) and item.items and isinstance(item.items[0], Word):
        return item.items[0].text
    return ""


def _trigger(item: Item, *, is_first: bool) -> Node:
    assert isinstance(item, ParenthesizedForm)  # noqa: S101
    if len(item.items) != 2 or not is_first:
        raise program_syntax("`on` takes one filter, and is the first form.", item.position)
    return parse_predicate_form(item.items[1])


def _define(form: ParenthesizedForm, names: Names) -> _Definition | None:
    """Note the name of a definition; return it if it is a function."""
    if len(form.items) < 3:
        raise program_syntax("`define` takes a name and a value, or (name parameter …) and a body.",
                             form.position)  # fmt: skip
    target = form.items[1]
    if isinstance(target, Word):
        if len(form.items) != 3:
            raise program_syntax("`define` takes a name and one value.", form.position)
        name = variable_name(target)
        if name in names.variables or name in names.functions:
            raise program_syntax(f"`{name}` is defined already.", target.position)
        names.variables[name] = len(names.variables)
        return None
    if not isinstance(target, ParenthesizedForm) or not target.items:
        raise program_syntax("Expected a name, or (name parameter …).", target.position)
    words = [function_name(target.items[0]), *map(variable_name, target.items[1:])]
    if len(set(words[1:])) < len(words) - 1:
        raise program_syntax("Two parameters have the same name.", target.position)
    if words[0] in names.functions or words[0] in names.variables:
        raise program_syntax(f"`{words[0]}` is defined already.", target.position)
    names.functions[words[0]] = (len(names.functions) + 1, len(words) - 1)
    first = target.items[0]
    assert isinstance(first, Word)  # noqa: S101
    return _Definition(first, tuple(words[1:]), form.items[2:])


def _function(definition: _Definition, names: Names) -> Code:
    compiler = FunctionCompiler(definition.name.text, names, definition.parameters)
    compiler.body(definition.body)
    return compiler.code()


def function_name(item: Item) -> str:
    """Return the name of a new function. Raises ProgramSyntax."""
    name = variable_name(item)
    if name in FUNCTIONS or name in SPECIAL_FORMS:
        raise program_syntax(f"`{name}` has a meaning already.", item.position)
    return name
