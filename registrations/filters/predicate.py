"""The predicate language: comparisons of fields and constants, joined by and, or and not, in
Cambridge prefix form: `(and (= type 'error) (> size 9))` (OIF-16, OIF-18). Plain module.

It can express every tree, so every filter can be printed in it: printed.py.
"""

from collections.abc import Callable
from typing import cast, get_args

from registrations.filters.ast import (
    And,
    Arithmetic,
    Compare,
    Comparison,
    Const,
    Exists,
    Expression,
    ExpressionLanguage,
    In,
    Node,
    Not,
    OfType,
    Operand,
    Or,
    Path,
    Text,
    TextPosition,
    TextTest,
    Truth,
    Within,
)
from registrations.filters.errors import FilterSyntax
from registrations.filters.expressions import program_of
from registrations.filters.printed import is_plain
from registrations.filters.sexpr import Item, Literal, ParenthesizedForm, Word, read, syntax_error
from registrations.filters.text_tests import range_of
from registrations.filters.values import ENVELOPE
from registrations.filters.wildcard import wildcard_parts

_COMPARISONS = ("=", "!=", "<", "<=", ">", ">=")
_ARITHMETIC = ("+", "-", "*", "/")
_TESTS = get_args(TextTest)
ENVIRONMENT = "env."
Args = tuple[Item, ...]


def parse_predicate(text: str) -> Node:
    """Parse a text into a tree. Raises FilterSyntax with its position, FilterTooLarge."""
    return _node(read(text))


def parse_predicate_form(item: Item) -> Node:
    """Parse a form that is part of another text. Raises FilterSyntax with its position."""
    return _node(item)


def path_of(name: str, position: TextPosition) -> Path:
    """Parse a path as all languages write it: `a.b`, `@type`, `env.trace`.

    Raises FilterSyntax for a field that the envelope does not have.
    """
    if name.startswith(ENVIRONMENT) and len(name) > len(ENVIRONMENT):
        return Path(name.removeprefix(ENVIRONMENT), "environment", position)
    if not name.startswith("@"):
        return Path(name, position=position)
    if name[1:] in ("body", "body_base64", "content_type"):
        raise syntax_error("A filter tests a JSON body as `data`, and no other body.", position)
    if name[1:] not in ENVELOPE:
        known = ", ".join(f"@{one}" for one in sorted(ENVELOPE))
        raise syntax_error(f"An event has no field {name}; there are {known}.", position)
    return Path(name[1:], "envelope", position)


def check_plain(word: Word) -> None:
    """Raise FilterSyntax for a word that may be a mistyped constant or of another language."""
    if not is_plain(word.text):
        message = (
            f"`{word.text}` is neither a constant nor a plain name (letters, digits, _ . - and a "
            "letter first); put other names in back quotes and texts in double quotes."
        )
        raise syntax_error(message, word.position)


def type_pattern(text: str, position: TextPosition) -> OfType:
    """Parse `D::T`, where `*` is any domain or type and `a.b.*` the types below `a.b`; without
    `D::` the domain may be any (RDY-14, RDY-44).
    """
    domain, _, name = text.partition("::") if "::" in text else ("*", "", text)
    below = name.endswith(".*")
    name = name.removesuffix(".*")
    if not domain or not name or (below and name == "*"):
        raise syntax_error("A type is written domain::type; each of them may be `*`.", position)
    if any("*" in one for one in (domain, name) if one != "*"):
        raise syntax_error(
            "`*` replaces a whole domain or type, or follows the last dot.", position
        )
    return OfType(None if domain == "*" else domain, None if name == "*" else name, below, position)


def _node(item: Item) -> Node:
    if isinstance(item, Literal) and isinstance(item.value, bool):
        return Truth(item.value, item.position)
    if not isinstance(item, ParenthesizedForm):
        raise syntax_error(
            'A filter begins with a parenthesis, as in (= state "online").', item.position
        )
    if not item.items:
        raise syntax_error("The parentheses are empty.", item.position)
    head, *rest = item.items
    if not isinstance(head, Word) or not head.plain or head.text not in _FORMS:
        known = " ".join(_FORMS)
        raise syntax_error(f"After a parenthesis, expected one of: {known}.", head.position)
    return _FORMS[head.text](head, tuple(rest))


def _many(head: Word, args: Args) -> Node:
    if not args:
        raise syntax_error(f"`{head.text}` takes at least one form.", head.position)
    items = tuple(_node(arg) for arg in args)
    return And(items, head.position) if head.text == "and" else Or(items, head.position)


def _not(head: Word, args: Args) -> Node:
    _count(head, args, 1)
    return Not(_node(args[0]), head.position)


def _compare(head: Word, args: Args) -> Node:
    _count(head, args, 2)
    left, right = (_operand(arg) for arg in args)
    return Compare(cast(Comparison, head.text), left, right, head.position)


def _in(head: Word, args: Args) -> Node:
    if len(args) < 2:
        raise syntax_error("`in` takes a path and its allowed values.", head.position)
    path, *values = args
    return In(_path(path), tuple(_const(value) for value in values), head.position)


def _test(head: Word, args: Args) -> Node:
    _count(head, args, 2)
    path, text = _path(args[0]), _text(args[1])
    if head.text in ("wildcard", "cidr"):
        try:
            (wildcard_parts if head.text == "wildcard" else range_of)(text)
        except ValueError as error:
            raise syntax_error(str(error), args[1].position) from error
    return Text(cast(TextTest, head.text), path, text, head.position)


def _exists(head: Word, args: Args) -> Node:
    _count(head, args, 1)
    return Exists(_path(args[0]), head.position)


def _within(head: Word, args: Args) -> Node:
    _count(head, args, 2)
    path = _path(args[0])
    if path.space != "attributes":
        raise syntax_error("`within` takes a path into the attributes.", args[0].position)
    return Within(path, _node(args[1]), head.position)


def _type(head: Word, args: Args) -> Node:
    _count(head, args, 1)
    return type_pattern(_text(args[0]), args[0].position)


def _expression(head: Word, args: Args) -> Node:
    _count(head, args, 1)
    language = cast(ExpressionLanguage, head.text)
    found = Expression(language, _text(args[0]), head.position)
    try:
        program_of(found)
    except FilterSyntax as error:
        where = f"line {error.details['line']}, column {error.details['column']}"
        raise syntax_error(
            f"{error.message} It is at {where} of the text.", args[0].position
        ) from error
    return found


_FORMS: dict[str, Callable[[Word, Args], Node]] = {
    "and": _many,
    "or": _many,
    "not": _not,
    **dict.fromkeys(_COMPARISONS, _compare),
    "in": _in,
    **dict.fromkeys(_TESTS, _test),
    "exists": _exists,
    "within": _within,
    "type": _type,
    **dict.fromkeys(get_args(ExpressionLanguage), _expression),
}


def _operand(item: Item) -> Operand:
    if isinstance(item, Word):
        return _path(item)
    if isinstance(item, Literal):
        return _const(item)
    head = item.items[0] if item.items else item
    if not isinstance(head, Word):
        raise syntax_error("Expected a value: a path, a constant, or (+ a b).", item.position)
    if head.text not in _ARITHMETIC:
        raise syntax_error(
            f"Expected a value, and `{head.text}` has none; use + - * or /.", head.position
        )
    numbers = [_operand(arg) for arg in item.items[1:]]
    if len(numbers) == 1 and head.text == "-":
        numbers.insert(0, Const(0, head.position))
    if len(numbers) < 2:
        raise syntax_error(f"`{head.text}` takes at least two values.", head.position)
    result = numbers[0]
    for number in numbers[1:]:
        result = Arithmetic(head.text, result, number, head.position)  # type: ignore[arg-type]
    return result


def _path(item: Item) -> Path:
    if not isinstance(item, Word):
        raise syntax_error("Expected a path, as in address.city.", item.position)
    if not item.plain:
        return Path(item.text, position=item.position)
    path = path_of(item.text, item.position)
    if path.space == "attributes":
        check_plain(item)
    return path


def _const(item: Item) -> Const:
    if not isinstance(item, Literal):
        raise syntax_error('Expected a constant: 5, "text", true, false or null.', item.position)
    return Const(item.value, item.position)


def _text(item: Item) -> str:
    if not isinstance(item, Literal) or not isinstance(item.value, str):
        raise syntax_error('Expected a text, as in "Basel".', item.position)
    return item.value


def _count(head: Word, args: Args, expected: int) -> None:
    if len(args) != expected:
        arguments = "one argument" if expected == 1 else "two arguments"
        raise syntax_error(f"`{head.text}` takes {arguments}, not {len(args)}.", head.position)
