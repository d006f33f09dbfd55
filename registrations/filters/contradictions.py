"""Finds alternatives of a filter that no event can pass, for a warning. Plain module.

It finds the frequent ones, and never reports one that an event can pass. An attribute may be a
list, of which each test may hold for another member, so two values do not contradict there.
"""

from collections.abc import Iterator

from registrations.filters.ast import Compare, Comparison, Const, Exists, Node, Not, OfType, Path
from registrations.filters.normal import Alternative, NormalForm
from registrations.filters.paths import paths_of
from registrations.filters.values import ordered, same

_SEVERAL = "application"  # the only field of the envelope with several values
_DOMAIN = Path("domain", "envelope")
_Bound = tuple[Comparison, Const]


def never(form: NormalForm) -> bool:
    """Return whether every alternative contradicts itself."""
    return all(map(_contradicts, form))


def _contradicts(alternative: Alternative) -> bool:
    absent = {path for part in alternative for path in _absent(part)}
    bounds: dict[Path, list[_Bound]] = {}
    for part in alternative:
        if not absent.isdisjoint(paths_of(part)):
            return True
        for path, bound in _bounds(part):
            bounds.setdefault(path, []).append(bound)
    return any(map(_excludes, bounds.values()))


def _absent(part: Node) -> Iterator[Path]:
    """Yield the path that a test requires to be missing."""
    match part:
        case Not(Exists(path)):
            yield path


def _bounds(part: Node) -> Iterator[tuple[Path, _Bound]]:
    """Yield the comparison of a field that has one value."""
    match part:
        case Compare(op, Path(name, space) as path, Const() as value) if space != "attributes":
            if name != _SEVERAL:
                yield path, (op, value)
        case OfType(str(domain)):
            yield _DOMAIN, ("=", Const(domain))


def _excludes(bounds: list[_Bound]) -> bool:
    """Return whether no single value is within all bounds."""
    equal = [value.value for op, value in bounds if op == "="]
    if equal:
        return not all(_holds(op, equal[0], value) for op, value in bounds)
    lower = [one for one in bounds if one[0] in (">", ">=")]
    upper = [one for one in bounds if one[0] in ("<", "<=")]
    return any(_misses(one, other) for one in lower for other in upper)


def _holds(op: Comparison, value: object, bound: Const) -> bool:
    if op in ("=", "!="):
        return same(value, bound.value) == (op == "=")
    return ordered(op, value, bound.value)


def _misses(lower: _Bound, upper: _Bound) -> bool:
    """Return whether no number is within a lower and an upper bound."""
    least, most = lower[1].value, upper[1].value
    if isinstance(least, str) or isinstance(most, str):  # a text may be compared as a number
        return False
    if same(least, most):
        return lower[0] == ">" or upper[0] == "<"
    return ordered(">", least, most)
