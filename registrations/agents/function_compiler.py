"""The compiler of one function of a program: names, instructions and jumps; the forms themselves
are in forms.py. Plain module.

Variables are resolved while the text is compiled, so an unknown name is an error of the text, with
its position, and not of a run. Every form leaves one value on the stack.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from registrations.agents.errors import program_syntax
from registrations.agents.functions import FUNCTIONS
from registrations.agents.machine import (
    Code,
    Instruction,
    apply,
    call,
    constant,
    drop,
    leave,
    load,
    load_global,
    store_global,
)
from registrations.agents.program import RecentEvents
from registrations.filters.ast import TextPosition
from registrations.filters.printed import is_plain
from registrations.filters.sexpr import Item, Literal, ParenthesizedForm, Word

Args = tuple[Item, ...]
SpecialForms = Mapping[str, Callable[["FunctionCompiler", Word, Args], None]]


class Names(NamedTuple):
    """The forms, the program's variables with their slots, its functions with their numbers and
    counts of parameters, and its filters of recent events.
    """

    forms: SpecialForms
    variables: dict[str, int]
    functions: dict[str, tuple[int, int]]
    recent: list[RecentEvents]


class FunctionCompiler:
    """Compiles one function, or the program itself."""

    def __init__(self, name: str, names: Names, parameters: Sequence[str]) -> None:
        self._name = name
        self.names = names
        self._parameters = len(parameters)
        self._slots = len(parameters)
        self._scopes: list[dict[str, int]] = [{one: i for i, one in enumerate(parameters)}]
        self._instructions: list[tuple[Instruction, Any]] = []
        self._positions: list[TextPosition] = []

    def program(self, items: Sequence[Item]) -> None:
        """Compile the program itself, whose first slots are its variables."""
        self._slots = len(self.names.variables)
        for item in items:
            if isinstance(item, ParenthesizedForm) and item.items:
                head, *args = item.items
                if isinstance(head, Word) and head.text == "define":
                    self._define(*args)
                    continue
            self.form(item)
            self.emit(drop, None, item.position)

    def code(self) -> Code:
        """Return the instructions, which end with the return to the caller."""
        self.emit(leave, None, TextPosition(1, 1))
        return Code(self._name, self._parameters, self._slots, self._instructions, self._positions)

    def emit(self, instruction: Instruction, argument: Any, position: TextPosition) -> int:
        """Add an instruction; return its place."""
        self._instructions.append((instruction, argument))
        self._positions.append(position)
        return len(self._instructions) - 1

    def here(self) -> int:
        """Return the place of the next instruction."""
        return len(self._instructions)

    def land(self, *places: int) -> None:
        """Set the target of jumps to the next instruction."""
        for place in places:
            instruction, argument = self._instructions[place]
            target: Any = self.here()
            if isinstance(argument, tuple):
                target = (argument[0], target)
            self._instructions[place] = (instruction, target)

    def slot(self, count: int = 1) -> int:
        """Return the first of some new local variables."""
        self._slots += count
        return self._slots - count

    def body(self, items: Sequence[Item], position: TextPosition | None = None) -> None:
        """Compile several forms, of which the last one gives the value; null if there are none."""
        if not items:
            self.emit(constant, None, position or TextPosition(1, 1))
        for index, item in enumerate(items):
            if index:
                self.emit(drop, None, item.position)
            self.form(item)

    def scoped(self, scope: dict[str, int], items: Sequence[Item]) -> None:
        """Compile forms that have further variables."""
        self._scopes.append(scope)
        self.body(items)
        self._scopes.pop()

    def form(self, item: Item) -> None:
        """Compile a constant, a variable or a form."""
        if isinstance(item, Literal):
            self.emit(constant, item.value, item.position)
        elif isinstance(item, Word):
            self._variable(item)
        elif not item.items:
            raise program_syntax("The parentheses are empty.", item.position)
        else:
            self._call(item)

    def find(self, word: Word) -> tuple[str, int]:
        """Return whether a variable is `local` or `global`, and its slot. Raises ProgramSyntax."""
        for scope in reversed(self._scopes):
            if word.text in scope:
                return "local", scope[word.text]
        if word.text in self.names.variables:
            return "global", self.names.variables[word.text]
        hint = f"; a text is written '{word.text}" if is_plain(word.text) else ""
        raise program_syntax(f"Unknown variable `{word.text}`{hint}.", word.position)

    def define_local(self, name: str) -> int:
        """Add a variable to the innermost scope and return its slot."""
        slot = self._scopes[-1][name] = self.slot()
        return slot

    def open_scope(self) -> None:
        self._scopes.append({})

    def close_scope(self) -> None:
        self._scopes.pop()

    def _define(self, name: Item, value: Item) -> None:
        assert isinstance(name, Word)  # noqa: S101
        self.form(value)
        self.emit(store_global, self.names.variables[name.text], name.position)

    def _variable(self, word: Word) -> None:
        kind, slot = self.find(word)
        self.emit(load if kind == "local" else load_global, slot, word.position)

    def _call(self, form: ParenthesizedForm) -> None:
        head, *rest = form.items
        args = tuple(rest)
        if not isinstance(head, Word) or not head.plain:
            raise program_syntax("Expected the name of a form or a function.", head.position)
        if head.text in self.names.forms:
            self.names.forms[head.text](self, head, args)
            return
        if head.text in self.names.functions:
            number, count = self.names.functions[head.text]
            check_count(head, args, count, count)
            self._arguments(args)
            self.emit(call, number, head.position)
            return
        if head.text not in FUNCTIONS:
            raise program_syntax(f"Unknown function `{head.text}`.", head.position)
        function, least, most = FUNCTIONS[head.text]
        check_count(head, args, least, most)
        self._arguments(args)
        self.emit(apply, (function, len(args)), head.position)

    def _arguments(self, args: Args) -> None:
        for arg in args:
            self.form(arg)


def check_count(head: Word, args: Args, least: int, most: int | None) -> None:
    """Raise ProgramSyntax unless a form has so many arguments."""
    if len(args) < least or (most is not None and len(args) > most):
        expected = f"{least}" if least == most else f"{least} to {most}"
        expected = f"at least {least}" if most is None else expected
        plural = "" if expected in ("1", "at least 1") else "s"
        message = f"`{head.text}` takes {expected} argument{plural}, not {len(args)}."
        raise program_syntax(message, head.position)


def variable_name(item: Item) -> str:
    """Return the name of a new variable. Raises ProgramSyntax."""
    if not isinstance(item, Word) or not item.plain or not is_plain(item.text.rstrip("?!")):
        raise program_syntax("Expected a name: letters, digits, - and _.", item.position)
    return item.text
