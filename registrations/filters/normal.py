"""The normal form of a filter: alternatives, of each of which all parts must hold. Plain module.

Negations stand before single tests only; what is false, what stands twice, and alternatives that
ask for more than another one are left out. Two filters with equal forms match the same events; the
opposite is not promised.
"""

from collections.abc import Iterable, Iterator
from functools import reduce
from operator import itemgetter, or_

from eventhub.base import limits
from registrations.filters.ast import (
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
    Place,
    Truth,
    Within,
)
from registrations.filters.constant_tests import certain
from registrations.filters.errors import FilterTooLarge
from registrations.filters.object_tests import implied_by
from registrations.filters.printed import printed

Alternative = frozenset[Node]  # tests, and tests behind a `Not`
Form = tuple[Alternative, ...]  # (): never; one without parts: always

_ONE_TEXT = ("domain", "type", "source", "name", "version", "node", "key", "id")


def normal(node: Node) -> Form:
    """Raises FilterTooLarge, with the place of the `and` or `or`, if the alternatives, the tests in
    all of them, or the work to find them are too much.
    """
    tests = _Tests()
    found = tests.form(node, positive=True)
    if sum(map(int.bit_count, found)) > limits.FILTER_TESTS_MAX:
        raise FilterTooLarge(tests_max=limits.FILTER_TESTS_MAX)
    return tests.sorted(found)


def normal_of_pairs(node: Node) -> Form:
    """The same of a tree of the pairs language: equalities of different fields, all of which must
    hold, so that none excludes or contains another.
    """
    match node:
        case And(items):
            return (frozenset(map(_plain, items)),)
        case Truth():
            return (frozenset(),)
    return (frozenset((_plain(node),)),)


def always(form: Form) -> bool:
    return frozenset() in form


def in_order(form: Form) -> Iterator[list[tuple[str, Node]]]:
    """Of each alternative the parts with their predicate form, in the order of these. A form has
    its parts in common, so each is printed once.
    """
    texts: dict[int, str] = {}
    for alternative in form:
        found = []
        for part in alternative:
            text = texts.get(id(part))
            if text is None:
                text = texts[id(part)] = printed(part)
            found.append((text, part))
        yield sorted(found, key=itemgetter(0))


# an alternative while the form is made: its tests as bits, and those that surely exclude it, as far
# as they were known when its own were; so of two that exclude each other one says so
_Bits = dict[int, int]


class _Tests:
    """The tests of one filter, each once, by number."""

    def __init__(self) -> None:
        self._tests: dict[str, Node] = {}  # by their predicate forms
        self._bits: dict[str, int] = {}
        self._opposites: dict[int, int] = {}  # of a test the one that holds where it does not
        self._texts: dict[str, int] = {}  # tests for one text, by the field of the envelope
        self._steps = 0

    def form(self, node: Node, *, positive: bool) -> _Bits:
        match node:
            case OfType(None, None):
                return self.form(Truth(True), positive=positive)
            case Truth(value):
                return {0: 0} if value == positive else {}
            case Not(item):
                return self.form(item, positive=not positive)
            case And(items, place) | Or(items, place):
                forms = (self.form(item, positive=positive) for item in items)
                together = self._all if isinstance(node, And) == positive else self._any
                return together(forms, place)
            case Within():
                return self._within(node, positive=positive)
        return self._test(node, positive=positive)

    def _within(self, node: Within, *, positive: bool) -> _Bits:
        """Beside the test what follows from it for the whole event, by which it is found."""
        if not _Tests().form(node.item, positive=True):
            return {} if positive else {0: 0}
        if not positive:
            return self._test(node, positive=False)
        found = self._test(node, positive=True)
        return self._both(found, self.form(implied_by(node), positive=True), node.place)

    def _test(self, node: Node, *, positive: bool) -> _Bits:
        """Of what is no connective."""
        test = _plain(node)
        known = certain(test)
        if known is not None:
            return {0: 0} if known == positive else {}
        text = printed(test)
        opposite = f"(not {text})"
        if positive:
            return self._one(test, text, opposite)
        return self._one(Not(test), opposite, text)

    def sorted(self, found: Iterable[int]) -> Form:
        """Alternatives as they are known outside, in the order of their predicate forms. Sets of
        one test are joined, because that takes no hash anew.
        """
        order = sorted(self._bits)
        ranks = {self._bits[text]: rank for rank, text in enumerate(order)}
        single = [frozenset((self._tests[text],)) for text in order]
        nothing: Alternative = frozenset()
        ranked = sorted(sorted(ranks[bit] for bit in _each(bits)) for bits in found)
        return tuple(nothing.union(*map(single.__getitem__, each)) for each in ranked)

    def _one(self, test: Node, text: str, opposite: str) -> _Bits:
        bit = self._bits.get(text)
        if bit is None:
            bit = self._bits[text] = 1 << len(self._bits)
            self._tests[text] = test
            other = self._bits.get(opposite)
            if other is not None:
                self._opposites |= {bit: other, other: bit}
        return {bit: self._opposites.get(bit, 0) | self._other_texts(test, bit)}

    def _other_texts(self, test: Node, bit: int) -> int:
        """Two texts of one field of the envelope exclude each other. Two values of an attribute do
        not: it may be a list.
        """
        match test:
            case Compare("=", Path(name, "envelope"), Const()) if name in _ONE_TEXT:
                self._texts[name] = self._texts.get(name, 0) | bit
                return self._texts[name] & ~bit
        return 0

    def _any(self, forms: Iterable[_Bits], place: Place | None) -> _Bits:
        found: _Bits = {}
        for form in forms:
            for one, against in form.items():
                if self._opposites.get(one) in found:
                    return {0: 0}  # one of the two holds
                if one in found or self._asks_for_more(one, found, place):
                    continue
                for other in [other for other in found if other & one == one]:
                    del found[other]
                found[one] = against
            _check(found, place)
        return found

    def _all(self, forms: Iterable[_Bits], place: Place | None) -> _Bits:
        """The small ones first: single tests come to one alternative before others are joined."""
        found, *others = sorted(forms, key=len) or [{0: 0}]
        for form in others:
            found = self._both(found, form, place)
            _check(found, place)
        return found

    def _both(self, found: _Bits, form: _Bits, place: Place | None) -> _Bits:
        """The alternatives of two that must both hold. What both have, and what asks for all that
        one of the others does, stays as it is; the rest is joined, each with each.
        """
        if len(found) == len(form) == 1:
            return self._joined(found, form, place)  # a part of the other adds nothing to it
        common = {one: against for one, against in found.items() if one in form}
        mine, theirs = _without(found, common), _without(form, common)
        if not common and not _tests_of(mine) & _tests_of(theirs) and 0 not in (*mine, *theirs):
            return self._joined(mine, theirs, place)  # none comes to ask for more than another
        kept = self._that_ask_for_more(mine, theirs, place)
        if len(kept) == len(mine):
            return found
        others = self._that_ask_for_more(theirs, mine, place)
        if len(others) == len(theirs):
            return form
        joined = self._joined(_without(mine, kept), _without(theirs, others), place)
        return self._least({**joined, **kept, **others}, common, place)

    def _joined(self, found: _Bits, form: _Bits, place: Place | None) -> _Bits:
        count = len(found) * len(form)
        if count > limits.FILTER_PRODUCT_MAX:
            raise _too_many(place)
        self._take(count, place)
        return {
            one | other: against | opposed
            for one, against in found.items()
            for other, opposed in form.items()
            if not (one & opposed or other & against)
        }

    def _that_ask_for_more(self, found: _Bits, form: _Bits, place: Place | None) -> _Bits:
        return {
            one: against for one, against in found.items() if self._asks_for_more(one, form, place)
        }

    def _least(self, found: _Bits, least: _Bits, place: Place | None) -> _Bits:
        """Those that are the least, and of the others what does not ask for more than another."""
        kept = dict(least)
        for one in sorted(found, key=int.bit_count):
            if not self._asks_for_more(one, kept, place):
                kept[one] = found[one]
                _check(kept, place)
        return kept

    def _asks_for_more(self, one: int, found: _Bits, place: Place | None) -> bool:
        """Or for the same."""
        self._take(len(found), place)
        return one in map(one.__or__, found)

    def _take(self, steps: int, place: Place | None) -> None:
        """What the bounds of what comes out do not hold back: work that comes to little."""
        self._steps += steps
        if self._steps > limits.FILTER_STEPS_MAX:
            raise FilterTooLarge(place=place, steps_max=limits.FILTER_STEPS_MAX)


def _plain(test: Node) -> Node:
    """A test as all that say the same are written."""
    match test:
        case In(path, (value,)):
            test = Compare("=", path, value)
        case Compare("=", Const() as left, Path() as right):
            test = Compare("=", right, left)
        case In(path, values):
            return In(path, tuple(map(_whole_const, values)))
    if not isinstance(test, Compare):
        return test
    sides = _whole(test.left), _whole(test.right)
    same = sides[0] is test.left and sides[1] is test.right
    return test if same else Compare(test.op, *sides, test.place)


def _whole(operand: Operand) -> Operand:
    return _whole_const(operand) if isinstance(operand, Const) else operand


def _whole_const(const: Const) -> Const:
    """1 for 1.0: they compare alike, though they do not calculate alike."""
    value = const.value
    if not isinstance(value, float) or not value.is_integer():
        return const
    whole = int(value)
    if not limits.INTEGER_MIN <= whole <= limits.INTEGER_MAX:
        return const
    return Const(whole, const.place)


def _without(found: _Bits, some: _Bits) -> _Bits:
    return {one: against for one, against in found.items() if one not in some}


def _tests_of(found: _Bits) -> int:
    return reduce(or_, found, 0)


def _each(bits: int) -> Iterator[int]:
    while bits:
        last = bits & -bits
        yield last
        bits ^= last


def _check(found: _Bits, place: Place | None) -> None:
    if len(found) > limits.FILTER_ALTERNATIVES_MAX:
        raise _too_many(place)


def _too_many(place: Place | None) -> FilterTooLarge:
    return FilterTooLarge(place=place, alternatives_max=limits.FILTER_ALTERNATIVES_MAX)
