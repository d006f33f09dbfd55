"""The estimated cost of a filter for a matcher: the events for which it is evaluated, and the
part of its client's budget that it takes: its work for every event. Plain module.

Only a matcher knows which of several pairs is the rarest.

`index` and `auto` find an alternative by a value, a prefix, a range or the existence of an
attribute, so that most events never reach its other tests. Some of these are free: usual filters
take no budget. More of them count, because every event may have that value. The tests of the gate
do not find an alternative in this sense: all events of a stream may be of one type.

`access`, `counting` and `compile` find by values only. The other strategies find nothing: they
evaluate every filter whose attributes exist.
"""

from typing import Any, Literal, NamedTuple

from eventhub.base import limits
from registrations.filters.ast import Compare, Const, Exists, Node, OfType, Path, Text
from registrations.filters.evaluation_cost import weight
from registrations.filters.normal import NormalForm
from registrations.match_index.format.terms import (
    Above,
    AboveText,
    Below,
    BelowText,
    Key,
    OneOf,
    Value,
    keys_of_test,
)
from registrations.match_index.format.text_keys import TextKey, WildcardKey
from registrations.matching.atoms import atoms_of
from registrations.matching.conditions import anchor_of
from registrations.matching.gates import gate_of
from registrations.matching.spec import Spec, specs_of_form

_BY_VALUES = frozenset({"access", "counting", "compile"})
_BY_NOTHING = frozenset({"sig", "memo", "lattice", "scan"})
# strategies that find a filter of pairs
PAIR_INDEXED = frozenset({"auto", "index", *_BY_VALUES})
_GATE = ("domain", "type", "application")
_FINDING = (Value, OneOf, TextKey, Above, Below, AboveText, BelowText)

_PART_BYTES_MIN = 4  # of a wildcard: its longest text between stars
# from the cheapest: events with the pair, events with the attribute, events of the domain, type and
# application, all events
By = Literal["pair", "attribute", "gate", "event"]


class LookupPath(NamedTuple):
    """The way an event reaches a spec. `names`: its pairs, of which the rarest is used, the
    attribute, or the parts of its gate.
    """

    by: By
    names: tuple[str, ...]


class FilterCost(NamedTuple):
    """The cost of a filter. `reached_by` has one entry for each spec; `tests` counts the tests that
    are not pairs.
    """

    reached_by: tuple[LookupPath, ...]
    every_event: bool  # a spec is evaluated for every event
    pairs: int
    tests: int
    every_event_cost: int  # taken of the client's budget on each stream

    def json(self) -> dict[str, Any]:
        """Return the JSON of API responses."""
        reached = [{"by": one.by, "names": list(one.names)} for one in self.reached_by]
        return {**self._asdict(), "reached_by": reached}


def cost_of(form: NormalForm) -> FilterCost:
    """Return the cost of a filter; a filter that never matches has none."""
    specs = specs_of_form(form)
    reached = tuple(map(_lookup_path, specs))
    return FilterCost(
        reached,
        any(one.by == "event" for one in reached),
        sum(len(atoms_of(spec)) for spec in specs),
        sum(len(spec.tests) for spec in specs),
        every_event_cost(form),
    )


def _lookup_path(spec: Spec) -> LookupPath:
    if spec.pairs:
        return LookupPath("pair", tuple(dict.fromkeys(path for path, _ in spec.pairs)))
    anchor = anchor_of(spec.tests)
    if anchor is not None:
        return LookupPath("attribute", (anchor,))
    parts = zip(("domain", "type", "application"), gate_of(spec), strict=True)
    given = tuple(name for name, value in parts if value is not None)
    return LookupPath("gate", given) if given else LookupPath("event", ())


def every_event_cost(form: NormalForm, strategy: str = "auto") -> int:
    """Return the cost of a filter for every event, in units of evaluation_cost.py; 0 if the
    strategy finds the filter by an event's values.
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
    if not isinstance(part, Compare) or not _is_looked_up(part):
        return False
    return isinstance(part.left, Path) and part.left.space == "attributes"


def _finds(part: Node) -> bool:
    if isinstance(part, Text) and not part.text:
        return False  # every text has the empty prefix
    if isinstance(part, Exists):
        return part.path.space == "attributes"
    keys = keys_of_test(part, None)
    return keys is not None and any(map(_leads_to_few, keys[0]))


def _leads_to_few(key: Key) -> bool:
    """Return whether a key usually leads an event to few filters; many texts have short parts."""
    if isinstance(key, WildcardKey):
        return max(map(len, key.parts)) >= _PART_BYTES_MIN
    return isinstance(key, _FINDING)
