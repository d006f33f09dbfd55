"""The predicate language: comparisons of fields and constants, joined by and, or and not, in
Cambridge prefix form: `(and (= type 'error) (> size 9))` (OIF-16, OIF-18). Plain module.

It can say whatever the tree can hold, so every filter is shown in it: printed.py.
"""

from collections.abc import Callable
from typing import cast

from registrations.filters.ast import (
    And,
    Arithmetic,
    Compare,
    Comparison,
    Const,
    Exists,
    In,
    Node,
    Not,
    OfType,
    Operand,
    Or,
    Path,
    Place,
    Text,
    TextTest,
    Truth,
    Within,
)
from registrations.filters.printed import is_plain
from registrations.filters.sexpr import Form, Item, Literal, Word, read, wrong
from registrations.filters.values import ENVELOPE
from registrations.filters.wildcard import wildcard_parts

_COMPARISONS = ("=", "!=", "<", "<=", ">", ">=")
_ARITHMETIC = ("+", "-", "*", "/")
_TESTS = ("prefix", "suffix", "substring", "wildcard")
ENVIRONMENT = "env."
Args = tuple[Item, ...]


def parse_predicate(text: str) -> Node:
    """The tree of a text. Raises FilterSyntax with its place, FilterTooLarge."""
    return _node(read(text))


def path_of(name: str, place: Place) -> Path:
    """A path as all languages write it: `a.b`, `@type`, `env.trace`.

    Raises FilterSyntax for a field that the envelope does not have.
    """
    if name.startswith(ENVIRONMENT) and len(name) > len(ENVIRONMENT):
        return Path(name.removeprefix(ENVIRONMENT), "environment", place)
    if not name.startswith("@"):
        return Path(name, place=place)
    if name[1:] in ("body", "body_base64", "content_type"):
        raise wrong("The body is opaque; a filter cannot look into it.", place)
    if name[1:] not in ENVELOPE:
        known = ", ".join(f"@{one}" for one in sorted(ENVELOPE))
        raise wrong(f"An event has no field {name}; there are {known}.", place)
    return Path(name[1:], "envelope", place)


def check_plain(word: Word) -> None:
    """Raises FilterSyntax for what may be a mistyped constant, or of another language."""
    if not is_plain(word.text):
        message = (
            f"`{word.text}` is no constant and no plain name, which has letters, digits, _ . - "
            "and begins with a letter; another name stands in back quotes, a text in double ones."
        )
        raise wrong(message, word.place)


def type_pattern(text: str, place: Place) -> OfType:
    """`D::T`, with `*` for any of either and `a.b.*` for the types below one; without `D::`, of any
    domain (RDY-14, RDY-44).
    """
    domain, _, name = text.partition("::") if "::" in text else ("*", "", text)
    below = name.endswith(".*")
    name = name.removesuffix(".*")
    if not domain or not name or (below and name == "*"):
        raise wrong("A type is written domain::type, and each of them may be `*`.", place)
    if any("*" in one for one in (domain, name) if one != "*"):
        raise wrong("`*` stands for a whole domain or type, or behind the last dot.", place)
    return OfType(None if domain == "*" else domain, None if name == "*" else name, below, place)


def _node(item: Item) -> Node:
    if isinstance(item, Literal) and isinstance(item.value, bool):
        return Truth(item.value, item.place)
    if not isinstance(item, Form):
        raise wrong('A filter begins with a parenthesis, as in (= state "online").', item.place)
    if not item.items:
        raise wrong("There is nothing between these parentheses.", item.place)
    head, *rest = item.items
    if not isinstance(head, Word) or not head.plain or head.text not in _FORMS:
        known = " ".join(_FORMS)
        raise wrong(f"After a parenthesis comes one of: {known}.", head.place)
    return _FORMS[head.text](head, tuple(rest))


def _many(head: Word, args: Args) -> Node:
    if not args:
        raise wrong(f"`{head.text}` is of one form at least.", head.place)
    items = tuple(_node(arg) for arg in args)
    return And(items, head.place) if head.text == "and" else Or(items, head.place)


def _not(head: Word, args: Args) -> Node:
    _count(head, args, 1)
    return Not(_node(args[0]), head.place)


def _compare(head: Word, args: Args) -> Node:
    _count(head, args, 2)
    left, right = (_operand(arg) for arg in args)
    return Compare(cast(Comparison, head.text), left, right, head.place)


def _in(head: Word, args: Args) -> Node:
    if len(args) < 2:
        raise wrong("`in` is of a path and the values that it may have.", head.place)
    path, *values = args
    return In(_path(path), tuple(_const(value) for value in values), head.place)


def _test(head: Word, args: Args) -> Node:
    _count(head, args, 2)
    path, text = _path(args[0]), _text(args[1])
    if head.text == "wildcard":
        try:
            wildcard_parts(text)
        except ValueError as error:
            raise wrong(str(error), args[1].place) from error
    return Text(cast(TextTest, head.text), path, text, head.place)


def _exists(head: Word, args: Args) -> Node:
    _count(head, args, 1)
    return Exists(_path(args[0]), head.place)


def _within(head: Word, args: Args) -> Node:
    _count(head, args, 2)
    path = _path(args[0])
    if path.space != "attributes":
        raise wrong("`within` is of a path into the attributes.", args[0].place)
    return Within(path, _node(args[1]), head.place)


def _type(head: Word, args: Args) -> Node:
    _count(head, args, 1)
    return type_pattern(_text(args[0]), args[0].place)


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
}


def _operand(item: Item) -> Operand:
    if isinstance(item, Word):
        return _path(item)
    if isinstance(item, Literal):
        return _const(item)
    head = item.items[0] if item.items else item
    if not isinstance(head, Word):
        raise wrong("Here a value is wanted: a path, a constant, or (+ a b).", item.place)
    if head.text not in _ARITHMETIC:
        raise wrong(
            f"Here a value is wanted, and `{head.text}` gives none; try + - * /.", head.place
        )
    numbers = [_operand(arg) for arg in item.items[1:]]
    if len(numbers) == 1 and head.text == "-":
        numbers.insert(0, Const(0, head.place))
    if len(numbers) < 2:
        raise wrong(f"`{head.text}` is of two values at least.", head.place)
    result = numbers[0]
    for number in numbers[1:]:
        result = Arithmetic(head.text, result, number, head.place)  # type: ignore[arg-type]
    return result


def _path(item: Item) -> Path:
    if not isinstance(item, Word):
        raise wrong("Here a path is wanted, as in address.city.", item.place)
    if not item.plain:
        return Path(item.text, place=item.place)
    path = path_of(item.text, item.place)
    if path.space == "attributes":
        check_plain(item)
    return path


def _const(item: Item) -> Const:
    if not isinstance(item, Literal):
        raise wrong('Here a constant is wanted: 5, "text", true, false or null.', item.place)
    return Const(item.value, item.place)


def _text(item: Item) -> str:
    if not isinstance(item, Literal) or not isinstance(item.value, str):
        raise wrong('Here a text is wanted, as in "Basel".', item.place)
    return item.value


def _count(head: Word, args: Args, wanted: int) -> None:
    if len(args) != wanted:
        things = "one thing" if wanted == 1 else "two things"
        raise wrong(f"`{head.text}` is of {things}; here are {len(args)}.", head.place)
