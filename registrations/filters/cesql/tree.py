"""The tree of a CESQL filter. Plain module.

A filter with an error does not match, so each part becomes up to three filters: where it is true,
where it is false, and where it has no error. Tests of one attribute and a constant are tests of the
tree, so that indexes find the filter; all else stays an expression, which is evaluated.
"""

from collections.abc import Iterable, Iterator

from eventhub.base import limits
from registrations.filters.ast import And, Compare, Const, Expression, In, Node, Operand, Or, Text
from registrations.filters.cesql.attributes import REQUIRED, name_of
from registrations.filters.cesql.cases import (
    DEFINED,
    FALSE,
    TRUE,
    Cases,
    cases_of,
    fits_missing,
    path_of_term,
    presence_of,
    present_path,
    text_test,
)
from registrations.filters.cesql.program import checked_term
from registrations.filters.errors import FilterTooLarge
from registrations.filters.junctions import ALWAYS, all_of, any_of
from registrations.filters.terms import Term


def parse_cesql(text: str) -> Node:
    """Parse a text into a tree. Raises FilterSyntax with its position, FilterTooLarge."""
    term = checked_term(text)
    if term.op == "attribute":  # not cast: its value must be true itself
        path = path_of_term(term)
        if path is not None:
            return Compare("=", path, Const(True), term.position)
    return _Translation(text).node(term, TRUE)


class _Translation:
    """The trees of the terms of one filter. Each is built when it is needed, once."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._nodes: dict[tuple[Term, int], Node] = {}
        self._cases: dict[Term, Cases] = {}
        self._steps = 0

    def node(self, term: Term, case: int) -> Node:
        """Return the filter of a case of a term: TRUE, FALSE or DEFINED, which is without error."""
        found = self._nodes.get((term, case))
        if found is None:
            found = self._nodes[term, case] = self._built(term, case)
        return found

    def _built(self, term: Term, case: int) -> Node:
        if term.op == "NOT":
            return self.node(term.args[0], (FALSE, TRUE, DEFINED)[case])
        if term.op not in ("AND", "OR", "XOR") or self._is_expression(term):
            return self._tested(term)[case]
        if term.op == "XOR":
            return self._either(term.args, case)
        if case == DEFINED:
            return self._defined(term)
        decisive = FALSE if term.op == "AND" else TRUE
        if case != decisive:
            return self._all(self.node(arg, case) for arg in term.args)
        return self._decided(term, case)

    def _decided(self, term: Term, case: int) -> Node:
        """Build the filter of the case that one part decides, if those before it have no error."""
        found: list[Node] = []
        before: Node = ALWAYS
        for arg in term.args:
            found.append(self._all((before, self.node(arg, case))))
            before = self._all((before, self.node(arg, DEFINED)))
        return self._any(found)

    def _either(self, args: tuple[Term, ...], case: int) -> Node:
        one, other = args
        if case == DEFINED:
            return self._all(self.node(arg, DEFINED) for arg in args)
        unlike = FALSE if case == TRUE else TRUE
        pairs = ((TRUE, unlike), (FALSE, FALSE if unlike == TRUE else TRUE))
        return self._any([self._all((self.node(one, a), self.node(other, b))) for a, b in pairs])

    def _defined(self, term: Term) -> Node:
        """Build the test that no part has an error, up to the one that decides."""
        decisive = FALSE if term.op == "AND" else TRUE
        found = self.node(term.args[-1], DEFINED)
        for arg in term.args[-2::-1]:
            rest = self._any((self.node(arg, decisive), found))
            found = self._all((self.node(arg, DEFINED), rest))
        return found

    def _is_expression(self, term: Term) -> bool:
        """Return whether nothing in a term is a test of the tree."""
        if term.op in ("AND", "OR", "XOR", "NOT"):
            return all(map(self._is_expression, term.args))
        return isinstance(self._tested(term)[TRUE], Expression)

    def _tested(self, term: Term) -> Cases:
        found = self._cases.get(term)
        if found is None:
            found = self._cases[term] = self._test(term)
        return found

    def _test(self, term: Term) -> Cases:
        found = cases_of(term)
        if found is None:
            found = self._expression(term)
            if term.op == "LIKE":
                found = self._narrowed(term, found)
        return found

    def _expression(self, term: Term) -> Cases:
        text = self._text[term.start : term.end]
        written = (text, f"NOT ({text})", f"({text}) OR TRUE")
        if term.op in ("LIKE", "IN") and term.value:
            written = (written[1], text, written[2])
        one, other, defined = (Expression("cesql", each, term.position) for each in written)
        return one, other, defined

    def _narrowed(self, term: Term, cases: Cases) -> Cases:
        """Add a test of the texts of a pattern to its expression, by which an index finds it."""
        path, parts = path_of_term(term.args[0]), term.args[1].value
        if path is None:
            return cases
        one, other, _ = cases
        name = name_of(term.args[0].value)
        if not fits_missing(name, parts):
            one = all_of((text_test(path, parts, term), one))
        return one, other, ALWAYS if name in REQUIRED else presence_of(path)

    def _all(self, nodes: Iterable[Node]) -> Node:
        """Join by `and`. A test that an attribute has a value is left out if others require it."""
        found = all_of(self._counted(nodes))
        if not isinstance(found, And):
            return found
        required = {path for node in found.items for path in _required(node)}
        items = tuple(node for node in found.items if present_path(node) not in required)
        return And(items, found.position) if len(items) > 1 else items[0]

    def _any(self, nodes: Iterable[Node]) -> Node:
        return any_of(self._counted(nodes))

    def _counted(self, nodes: Iterable[Node]) -> list[Node]:
        """Count the parts of nodes before they are joined: parts that are repeated multiply, and
        what compares trees reads each of their parts. Raises FilterTooLarge.
        """
        found = list(nodes)
        waiting, parts = found[:], 0
        while waiting:
            node = waiting.pop()
            parts += 1
            if isinstance(node, And | Or):
                waiting += node.items
            elif isinstance(node, In):
                parts += len(node.values)
            if parts > limits.FILTER_PARTS_MAX:
                raise FilterTooLarge(position=found[0].position, parts_max=limits.FILTER_PARTS_MAX)
        self._steps += parts
        if self._steps > limits.FILTER_STEPS_MAX:
            raise FilterTooLarge(position=found[0].position, steps_max=limits.FILTER_STEPS_MAX)
        return found


def _required(node: Node) -> Iterator[Operand]:
    """Yield the attributes that a test requires to have a value."""
    match node:
        case Compare(op, left) if op != "!=":
            yield left
        case In(path) | Text(_, path):
            yield path
