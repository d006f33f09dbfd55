"""The part of a client's budget that a filter takes: the work that the stream's strategy spends on
it for every event. Plain module.

`index` and `auto` find an alternative by a value, a prefix, a range or the existence of an
attribute, so that most events never reach its other tests. Some of these are free: usual filters
take no budget. More of them count, because every event may have that value. The tests of the gate
do not find an alternative in this sense: all events of a stream may be of one type.

`access`, `counting` and `compile` find by values only. The other strategies find nothing: they
evaluate every filter whose attributes exist.
"""

from eventhub.base import limits
from registrations.filters.ast import Compare, Const, Exists, Node, OfType, Path, Text
from registrations.filters.evaluation_cost import weight
from registrations.filters.normal import NormalForm
from registrations.match_index.format.terms import (
    Above,
    AboveText,
    Below,
    BelowText,
    OneOf,
    Prefix,
    Value,
    keys_of_test,
)

_BY_VALUES = frozenset({"access", "counting", "compile"})
_BY_NOTHING = frozenset({"sig", "memo", "lattice", "scan"})
PAIR_INDEXED = frozenset({"auto", "index", *_BY_VALUES})  # strategies that find a filter of pairs
_GATE = ("domain", "type", "application")
_FINDING = (Value, OneOf, Prefix, Above, Below, AboveText, BelowText)


def budget_of(form: NormalForm, strategy: str = "auto") -> int:
    """Return the budget that a filter takes, in units of evaluation_cost.py; 0 for a filter that
    the strategy finds by an event's values.
    """
    if strategy in _BY_NOTHING:
        return sum(max(sum(map(weight, alternative)), 1) for alternative in form)
    finds = _is_pair if strategy in _BY_VALUES else _finds
    tried = found = 0
    for alternative in form:
        work = sum(weight(part) for part in alternative if not _is_looked_up(part))
        if work and not any(map(finds, alternative)):
            tried += work
        else:
            found += work
    return tried + max(found - limits.FILTER_FOUND_FREE, 0)


def _is_looked_up(part: Node) -> bool:
    """Return whether a part is a pair, a part of the gate or a type, which a look-up decides."""
    if not isinstance(part, Compare):
        return isinstance(part, OfType)
    path = part.left
    if part.op != "=" or not isinstance(path, Path) or not isinstance(part.right, Const):
        return False
    return path.space == "attributes" or (path.space == "envelope" and path.name in _GATE)


def _is_pair(part: Node) -> bool:
    return isinstance(part, Compare) and _is_looked_up(part) and not _is_of_gate(part)


def _is_of_gate(part: Compare) -> bool:
    return isinstance(part.left, Path) and part.left.space == "envelope"


def _finds(part: Node) -> bool:
    if isinstance(part, Text) and not part.text:
        return False  # every text has the empty prefix
    if isinstance(part, Exists):
        return part.path.space == "attributes"
    keys = keys_of_test(part, None)
    return keys is not None and any(isinstance(key, _FINDING) for key in keys[0])
