"""The forms of programs, each compiled into instructions. Plain module."""

from typing import NamedTuple

from eventhub.base import limits
from registrations.agents.errors import program_syntax, program_too_large
from registrations.agents.function_compiler import (
    Args,
    FunctionCompiler,
    SpecialForms,
    check_count,
    variable_name,
)
from registrations.agents.machine import (
    Instruction,
    begin_loop,
    collect,
    constant,
    drop,
    end_loop,
    jump,
    jump_if_or_drop,
    jump_unless,
    jump_unless_or_drop,
    load,
    load_global,
    next_item,
    recent,
    store,
    store_global,
)
from registrations.agents.program import RecentEvents
from registrations.filters.ast import Truth
from registrations.filters.predicate import parse_predicate_form
from registrations.filters.sexpr import Literal, ParenthesizedForm, Word

_LATER = -1  # a target that is not known yet


def _define(compiler: FunctionCompiler, head: Word, args: Args) -> None:
    raise program_syntax("`define` is a form of the program itself, not within others.",
                         head.position)  # fmt: skip


def _set(compiler: FunctionCompiler, head: Word, args: Args) -> None:
    check_count(head, args, 2, 2)
    name = args[0]
    if not isinstance(name, Word):
        raise program_syntax("Expected a variable.", name.position)
    kind, slot = compiler.find(name)
    compiler.form(args[1])
    if kind == "local":
        compiler.emit(store, slot, head.position)
        compiler.emit(load, slot, head.position)
    else:
        compiler.emit(store_global, slot, head.position)
        compiler.emit(load_global, slot, head.position)


def _let(compiler: FunctionCompiler, head: Word, args: Args) -> None:
    """Compile variables, each of which knows those before it, and forms that use them."""
    if len(args) < 2 or not isinstance(args[0], ParenthesizedForm):
        raise program_syntax("`let` takes ((name value) …) and forms.", head.position)
    compiler.open_scope()
    for binding in args[0].items:
        if not isinstance(binding, ParenthesizedForm) or len(binding.items) != 2:
            raise program_syntax("Expected (name value).", binding.position)
        compiler.form(binding.items[1])
        slot = compiler.define_local(variable_name(binding.items[0]))
        compiler.emit(store, slot, binding.position)
    compiler.body(args[1:])
    compiler.close_scope()


def _if(compiler: FunctionCompiler, head: Word, args: Args) -> None:
    check_count(head, args, 2, 3)
    compiler.form(args[0])
    otherwise = compiler.emit(jump_unless, _LATER, head.position)
    compiler.form(args[1])
    end = compiler.emit(jump, _LATER, head.position)
    compiler.land(otherwise)
    compiler.body(args[2:], head.position)
    compiler.land(end)


def _when(compiler: FunctionCompiler, head: Word, args: Args) -> None:
    check_count(head, args, 1, None)
    compiler.form(args[0])
    otherwise = compiler.emit(jump_unless, _LATER, head.position)
    compiler.body(args[1:], head.position)
    end = compiler.emit(jump, _LATER, head.position)
    compiler.land(otherwise)
    compiler.emit(constant, None, head.position)
    compiler.land(end)


def _cond(compiler: FunctionCompiler, head: Word, args: Args) -> None:
    """Compile `(cond (test form …) … (else form …))`."""
    ends: list[int] = []
    for arg in args:
        if not isinstance(arg, ParenthesizedForm) or len(arg.items) < 2:
            raise program_syntax("Expected (test form …) or (else form …).", arg.position)
        test, *forms = arg.items
        if isinstance(test, Word) and test.text == "else":
            compiler.emit(constant, True, test.position)
        else:
            compiler.form(test)
        otherwise = compiler.emit(jump_unless, _LATER, arg.position)
        compiler.body(forms)
        ends.append(compiler.emit(jump, _LATER, arg.position))
        compiler.land(otherwise)
    compiler.emit(constant, None, head.position)
    compiler.land(*ends)


def _do(compiler: FunctionCompiler, head: Word, args: Args) -> None:
    compiler.body(args, head.position)


def _and(compiler: FunctionCompiler, head: Word, args: Args) -> None:
    _short_circuit(compiler, head, args, jump_unless_or_drop)


def _or(compiler: FunctionCompiler, head: Word, args: Args) -> None:
    _short_circuit(compiler, head, args, jump_if_or_drop)


def _short_circuit(
    compiler: FunctionCompiler, head: Word, args: Args, instruction: Instruction
) -> None:
    check_count(head, args, 1, None)
    ends: list[int] = []
    for arg in args[:-1]:
        compiler.form(arg)
        ends.append(compiler.emit(instruction, _LATER, arg.position))
    compiler.form(args[-1])
    compiler.land(*ends)


def _while(compiler: FunctionCompiler, head: Word, args: Args) -> None:
    check_count(head, args, 1, None)
    begin = compiler.here()
    compiler.form(args[0])
    end = compiler.emit(jump_unless, _LATER, head.position)
    compiler.body(args[1:], head.position)
    compiler.emit(drop, None, head.position)
    compiler.emit(jump, begin, head.position)
    compiler.land(end)
    compiler.emit(constant, None, head.position)


def _for(compiler: FunctionCompiler, head: Word, args: Args) -> None:
    """Compile `(for (name list) form …)`."""
    loop = _begin(compiler, head, args)
    compiler.scoped(loop.scope, args[1:])
    compiler.emit(drop, None, head.position)
    _end(compiler, head, loop)
    compiler.emit(constant, None, head.position)


def _map(compiler: FunctionCompiler, head: Word, args: Args) -> None:
    """Compile `(map (name list) form …)`: the list of the values."""
    loop = _begin(compiler, head, args)
    compiler.scoped(loop.scope, args[1:])
    compiler.emit(collect, loop.slot, head.position)
    _end(compiler, head, loop)
    compiler.emit(end_loop, loop.slot, head.position)


def _filter(compiler: FunctionCompiler, head: Word, args: Args) -> None:
    """Compile `(filter (name list) test …)`: the list of the items for which the test holds."""
    loop = _begin(compiler, head, args)
    compiler.scoped(loop.scope, args[1:])
    compiler.emit(jump_unless, loop.begin, head.position)
    (item,) = loop.scope.values()
    compiler.emit(load, item, head.position)
    compiler.emit(collect, loop.slot, head.position)
    _end(compiler, head, loop)
    compiler.emit(end_loop, loop.slot, head.position)


def _fold(compiler: FunctionCompiler, head: Word, args: Args) -> None:
    """Compile `(fold (name start) (name list) form …)`: the value of the first name at the end,
    which becomes the value of the forms for each item.
    """
    total = args[0] if args else head
    if len(args) < 3 or not isinstance(total, ParenthesizedForm) or len(total.items) != 2:
        raise program_syntax("`fold` takes (name start), (name list) and forms.", head.position)
    compiler.form(total.items[1])
    slot = compiler.slot()
    compiler.emit(store, slot, total.position)
    loop = _begin(compiler, head, args[1:])
    compiler.scoped({variable_name(total.items[0]): slot, **loop.scope}, args[2:])
    compiler.emit(store, slot, head.position)
    _end(compiler, head, loop)
    compiler.emit(load, slot, head.position)


class _Loop(NamedTuple):
    """A loop: its slots, the scope of its body, the place where each round begins, and the jump out
    of it.
    """

    slot: int
    scope: dict[str, int]
    begin: int
    exit: int


def _begin(compiler: FunctionCompiler, head: Word, args: Args) -> _Loop:
    target = args[0] if args else head
    if len(args) < 2 or not isinstance(target, ParenthesizedForm) or len(target.items) != 2:
        raise program_syntax(f"`{head.text}` takes (name list) and forms.", head.position)
    name = variable_name(target.items[0])
    compiler.form(target.items[1])
    slot, item = compiler.slot(2), compiler.slot()
    compiler.emit(begin_loop, slot, target.position)
    begin = compiler.here()
    exit = compiler.emit(next_item, (slot, _LATER), head.position)
    compiler.emit(store, item, head.position)
    return _Loop(slot, {name: item}, begin, exit)


def _end(compiler: FunctionCompiler, head: Word, loop: _Loop) -> None:
    compiler.emit(jump, loop.begin, head.position)
    compiler.land(loop.exit)


def _recent(compiler: FunctionCompiler, head: Word, args: Args) -> None:
    """Compile `(recent count filter)`. The filter is a part of the text, not a value."""
    check_count(head, args, 1, 2)
    count_max = limits.AGENT_RECENT_MAX
    if isinstance(args[0], Literal) and isinstance(args[0].value, int):
        if args[0].value > count_max:
            raise program_too_large(args[0].position, recent_max=count_max)
        count_max = max(args[0].value, 1)
    node = parse_predicate_form(args[1]) if len(args) > 1 else Truth(True)
    number = len(compiler.names.recent)
    compiler.names.recent.append(RecentEvents(node, count_max))
    compiler.form(args[0])
    compiler.emit(recent, number, head.position)


def _on(compiler: FunctionCompiler, head: Word, args: Args) -> None:
    raise program_syntax("`on` is the first form of a program.", head.position)


SPECIAL_FORMS: SpecialForms = {
    "on": _on,
    "define": _define,
    "set!": _set,
    "let": _let,
    "if": _if,
    "when": _when,
    "cond": _cond,
    "do": _do,
    "and": _and,
    "or": _or,
    "while": _while,
    "for": _for,
    "map": _map,
    "filter": _filter,
    "fold": _fold,
    "recent": _recent,
}
