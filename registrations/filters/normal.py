"""The disjunctive normal form of a filter: alternatives, each a conjunction of tests. Plain module.

Negations apply to single tests only. False alternatives, duplicates, and alternatives that another
one absorbs are dropped. Filters with equal normal forms match the same events; the converse does
not always hold.
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
    TextPosition,
    Truth,
    Within,
)
from registrations.filters.constant_tests import constant_result
from registrations.filters.errors import FilterTooLarge
from registrations.filters.object_tests import implied_by
from registrations.filters.printed import printed

Alternative = frozenset[Node]  # tests and negated tests
NormalForm = tuple[Alternative, ...]  # (): never; one without parts: always

_ONE_TEXT = ("domain", "type", "source", "name", "version", "node", "key", "id")


def normal(node: Node) -> NormalForm:
    """Return the normal form of a tree. Raises FilterTooLarge, with the position of the `and` or
    `or`, if the alternatives, all their tests, or the work to find them exceed a limit.
    """
    tests = _Tests()
    found = tests.form(node, positive=True)
    if sum(map(int.bit_count, found)) > limits.FILTER_TESTS_MAX:
        raise FilterTooLarge(tests_max=limits.FILTER_TESTS_MAX)
    return tests.sorted(found)


def normal_of_pairs(node: Node) -> NormalForm:
    """Return the normal form of a tree of the pairs language: a conjunction of equalities of
    different fields, of which none excludes or implies another.
    """
    match node:
        case And(items):
            return (frozenset(map(_plain, items)),)
        case Truth():
            return (frozenset(),)
    return (frozenset((_plain(node),)),)


def always(form: NormalForm) -> bool:
    return frozenset() in form


def printed_parts(form: NormalForm) -> Iterator[list[tuple[str, Node]]]:
    """Yield the parts of each alternative with their predicate forms, sorted by these. Alternatives
    share parts, so each part is printed once.
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


# An alternative while the form is built: its tests as bits, and the known tests that exclude it. Of
# two alternatives that exclude each other, at least one has this entry.
_Bits = dict[int, int]


class _Tests:
    """The distinct tests of one filter, each as a bit."""

    def __init__(self) -> None:
        self._tests: dict[str, Node] = {}  # by their predicate forms
        self._bits: dict[str, int] = {}
        self._opposites: dict[int, int] = {}  # a test and its negation
        self._texts: dict[str, int] = {}  # equality tests, by the field of the envelope
        self._steps = 0

    def form(self, node: Node, *, positive: bool) -> _Bits:
        match node:
            case OfType(None, None):
                return self.form(Truth(True), positive=positive)
            case Truth(value):
                return {0: 0} if value == positive else {}
            case Not(item):
                return self.form(item, positive=not positive)
            case And(items, position) | Or(items, position):
                forms = (self.form(item, positive=positive) for item in items)
                together = self._all if isinstance(node, And) == positive else self._any
                return together(forms, position)
            case Within():
                return self._within(node, positive=positive)
        return self._test(node, positive=positive)

    def _within(self, node: Within, *, positive: bool) -> _Bits:
        """Add the tests that follow for the whole event, by which an index finds it."""
        if not _Tests().form(node.item, positive=True):
            return {} if positive else {0: 0}
        if not positive:
            return self._test(node, positive=False)
        found = self._test(node, positive=True)
        return self._both(found, self.form(implied_by(node), positive=True), node.position)

    def _test(self, node: Node, *, positive: bool) -> _Bits:
        """Build the form of a single test."""
        test = _plain(node)
        known = constant_result(test)
        if known is not None:
            return {0: 0} if known == positive else {}
        text = printed(test)
        opposite = f"(not {text})"
        if positive:
            return self._one(test, text, opposite)
        return self._one(Not(test), opposite, text)

    def sorted(self, found: Iterable[int]) -> NormalForm:
        """Return the alternatives as sets, sorted by predicate form. Sets of one test are joined,
        because this computes no hash again.
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
        """Return the equality tests for another text of the same envelope field; these exclude each
        other. Two values of an attribute do not, because it may be a list.
        """
        match test:
            case Compare("=", Path(name, "envelope"), Const()) if name in _ONE_TEXT:
                self._texts[name] = self._texts.get(name, 0) | bit
                return self._texts[name] & ~bit
        return 0

    def _any(self, forms: Iterable[_Bits], position: TextPosition | None) -> _Bits:
        found: _Bits = {}
        for form in forms:
            for one, against in form.items():
                if self._opposites.get(one) in found:
                    return {0: 0}  # one of the two holds
                if one in found or self._implies_one(one, found, position):
                    continue
                for other in [other for other in found if other & one == one]:
                    del found[other]
                found[one] = against
            _check(found, position)
        return found

    def _all(self, forms: Iterable[_Bits], position: TextPosition | None) -> _Bits:
        """Join forms that must all hold, the small ones first: single tests become one alternative
        before the others multiply.
        """
        found, *others = sorted(forms, key=len) or [{0: 0}]
        for form in others:
            found = self._both(found, form, position)
            _check(found, position)
        return found

    def _both(self, found: _Bits, form: _Bits, position: TextPosition | None) -> _Bits:
        """Return the alternatives of two forms that must both hold. Alternatives that both have, or
        that imply one of the other form, remain; the rest is multiplied.
        """
        if len(found) == len(form) == 1:
            return self._joined(found, form, position)  # a subset of the other adds nothing
        common = {one: against for one, against in found.items() if one in form}
        mine, theirs = _without(found, common), _without(form, common)
        if not common and not _tests_of(mine) & _tests_of(theirs) and 0 not in (*mine, *theirs):
            return self._joined(mine, theirs, position)  # no product can imply another
        kept = self._implying(mine, theirs, position)
        if len(kept) == len(mine):
            return found
        others = self._implying(theirs, mine, position)
        if len(others) == len(theirs):
            return form
        joined = self._joined(_without(mine, kept), _without(theirs, others), position)
        return self._least({**joined, **kept, **others}, common, position)

    def _joined(self, found: _Bits, form: _Bits, position: TextPosition | None) -> _Bits:
        count = len(found) * len(form)
        if count > limits.FILTER_PRODUCT_MAX:
            raise _too_many(position)
        self._count_work(count, position)
        return {
            one | other: against | opposed
            for one, against in found.items()
            for other, opposed in form.items()
            if not (one & opposed or other & against)
        }

    def _implying(self, found: _Bits, form: _Bits, position: TextPosition | None) -> _Bits:
        return {
            one: against for one, against in found.items() if self._implies_one(one, form, position)
        }

    def _least(self, found: _Bits, least: _Bits, position: TextPosition | None) -> _Bits:
        """Return the minimal alternatives `least`, and those of `found` that imply no other."""
        kept = dict(least)
        for one in sorted(found, key=int.bit_count):
            if not self._implies_one(one, kept, position):
                kept[one] = found[one]
                _check(kept, position)
        return kept

    def _implies_one(self, one: int, found: _Bits, position: TextPosition | None) -> bool:
        """Return whether an alternative implies one of `found`, or equals it."""
        self._count_work(len(found), position)
        return one in map(one.__or__, found)

    def _count_work(self, steps: int, position: TextPosition | None) -> None:
        """Count work, which limits of the result alone would not bound. Raises FilterTooLarge."""
        self._steps += steps
        if self._steps > limits.FILTER_STEPS_MAX:
            raise FilterTooLarge(position=position, steps_max=limits.FILTER_STEPS_MAX)


def _plain(test: Node) -> Node:
    """Return a test in its canonical form."""
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
    return test if same else Compare(test.op, *sides, test.position)


def _whole(operand: Operand) -> Operand:
    return _whole_const(operand) if isinstance(operand, Const) else operand


def _whole_const(const: Const) -> Const:
    """Return 1 for 1.0: they compare as equal, though arithmetic differs."""
    value = const.value
    if not isinstance(value, float) or not value.is_integer():
        return const
    whole = int(value)
    if not limits.INTEGER_MIN <= whole <= limits.INTEGER_MAX:
        return const
    return Const(whole, const.position)


def _without(found: _Bits, some: _Bits) -> _Bits:
    return {one: against for one, against in found.items() if one not in some}


def _tests_of(found: _Bits) -> int:
    return reduce(or_, found, 0)


def _each(bits: int) -> Iterator[int]:
    while bits:
        last = bits & -bits
        yield last
        bits ^= last


def _check(found: _Bits, position: TextPosition | None) -> None:
    if len(found) > limits.FILTER_ALTERNATIVES_MAX:
        raise _too_many(position)


def _too_many(position: TextPosition | None) -> FilterTooLarge:
    return FilterTooLarge(position=position, alternatives_max=limits.FILTER_ALTERNATIVES_MAX)
