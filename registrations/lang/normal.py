"""The normal form of a filter: alternatives, of each of which all parts must hold. Plain.

Negations stand before single tests only; what is false, what stands twice, and alternatives that
ask for more than another one are left out. Two filters with equal forms match the same events; the
opposite is not promised.
"""

from collections.abc import Iterable

from eventhub import limits
from registrations.errors import FilterTooLarge
from registrations.lang.ast import (
    And,
    Compare,
    Const,
    In,
    Node,
    Not,
    OfType,
    Operand,
    Or,
    Path,
    Truth,
)
from registrations.lang.printed import printed

Alternative = frozenset[Node]  # tests, and tests behind a `Not`
Form = tuple[Alternative, ...]  # (): never; one without parts: always

_ONE_TEXT = ("domain", "type", "source", "name", "version", "node", "key", "id")
_INTEGER_MAX = 1 << 63


def normal(node: Node) -> Form:
    """Raises FilterTooLarge if the alternatives are too many."""
    return _sorted(_form(node, positive=True))


def always(form: Form) -> bool:
    return frozenset() in form


def _form(node: Node, *, positive: bool) -> set[Alternative]:
    match node:
        case OfType(None, None):
            return _form(Truth(True), positive=positive)
        case Truth(value):
            return {frozenset()} if value == positive else set()
        case Not(item):
            return _form(item, positive=not positive)
        case And(items) | Or(items):
            forms = (_form(item, positive=positive) for item in items)
            return _all(forms) if isinstance(node, And) == positive else _any(forms)
        case In(path, (value,)):
            node = Compare("=", path, value)
        case Compare("=", Const() as left, Path() as right):
            node = Compare("=", right, left)
        case In(path, values):
            node = In(path, tuple(map(_whole_const, values)))
    if isinstance(node, Compare):
        node = Compare(node.op, _whole(node.left), _whole(node.right), node.place)
    return {frozenset({node if positive else Not(node)})}


def _whole(operand: Operand) -> Operand:
    return _whole_const(operand) if isinstance(operand, Const) else operand


def _whole_const(const: Const) -> Const:
    """1 for 1.0: they compare alike, though they do not calculate alike."""
    value = const.value
    if not isinstance(value, float) or not value.is_integer() or abs(value) >= _INTEGER_MAX:
        return const
    return Const(int(value), const.place)


def _any(forms: Iterable[set[Alternative]]) -> set[Alternative]:
    found: set[Alternative] = set()
    for form in forms:
        found = _least(found | form)
        _check(found)
    return found


def _all(forms: Iterable[set[Alternative]]) -> set[Alternative]:
    found: set[Alternative] = {frozenset()}
    for form in forms:
        if len(found) * len(form) > limits.FILTER_PRODUCT_MAX:
            raise FilterTooLarge(alternatives_max=limits.FILTER_ALTERNATIVES_MAX)
        joined = {one | other for one in found for other in form if not _contradict(one, other)}
        found = _least(joined)
        _check(found)
    return found


def _check(found: set[Alternative]) -> None:
    if len(found) > limits.FILTER_ALTERNATIVES_MAX:
        raise FilterTooLarge(alternatives_max=limits.FILTER_ALTERNATIVES_MAX)


def _contradict(some: Alternative, more: Alternative) -> bool:
    """True if no event has all the parts of both, as far as that is plain to see: a test and its
    opposite, or two texts of one field of the envelope. Not two values of an attribute: it may be a
    list. Each by itself does not, so only the fewer are gone through.
    """
    few, many = (some, more) if len(some) < len(more) else (more, some)
    for part in few:
        if (part.item if isinstance(part, Not) else Not(part)) in many:
            return True
    texts = _envelope(few)
    return bool(texts) and any(
        texts.get(name, value) != value for name, value in _envelope(many).items()
    )


def _envelope(parts: Alternative) -> dict[str, object]:
    """The texts that fields of the envelope must equal, of those that have one only."""
    return {
        part.left.name: part.right.value
        for part in parts
        if isinstance(part, Compare)
        and part.op == "="
        and isinstance(part.left, Path)
        and part.left.space == "envelope"
        and part.left.name in _ONE_TEXT
        and isinstance(part.right, Const)
    }


def _least(found: set[Alternative]) -> set[Alternative]:
    """Without alternatives that ask for all that another one asks for, and more."""
    return {one for one in found if not any(other < one for other in found)}


def _sorted(found: set[Alternative]) -> Form:
    return tuple(sorted(found, key=lambda parts: sorted(map(printed, parts))))
