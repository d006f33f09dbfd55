"""The tree of a CEL filter. Plain module.

A filter with an error does not match, so each part becomes two filters: where it is true and where
it is false. Tests of one field and a constant are tests of the tree, so that indexes find the
filter; all else stays an expression, which is evaluated.
"""

from dataclasses import replace

from eventhub.base import limits
from registrations.filters.ast import (
    FLIPPED,
    And,
    Compare,
    Comparison,
    Const,
    Exists,
    Expression,
    In,
    Node,
    Not,
    Or,
    Path,
    Text,
    TextTest,
    Truth,
    Within,
)
from registrations.filters.cel.fields import path_of_term
from registrations.filters.cel.program import checked_cel
from registrations.filters.errors import FilterTooLarge
from registrations.filters.junctions import ALWAYS, NEVER, all_of, any_of
from registrations.filters.paths import has_expression, paths_of
from registrations.filters.terms import Term

_Pair = tuple[Node, Node]  # where a term is true, and where it is false
_INVERSE: dict[Comparison, Comparison] = {"<": ">=", "<=": ">", ">": "<=", ">=": "<"}
_TEXTS: dict[str, TextTest] = {
    "startsWith": "prefix",
    "endsWith": "suffix",
    "contains": "substring",
}


def parse_cel(text: str) -> Node:
    """Parse a text into a tree. Raises FilterSyntax with its position, FilterTooLarge."""
    return _CelTree(text).pair(checked_cel(text))[0]


class _CelTree:
    """The tree of one filter. `variable`: in the condition of a macro, the object that it tests."""

    def __init__(self, text: str, variable: str | None = None) -> None:
        self._text = text
        self._variable = variable

    def pair(self, term: Term) -> _Pair:
        """Return the filters where a term is true and where it is false."""
        op = term.op
        if op in ("&&", "||"):
            found = self._joined(term)
        elif op == "!":
            one, other = self.pair(term.args[0])
            return other, one
        elif op == "?:":
            found = self._conditional(term)
        else:
            found = self._tested(term) or self._expression(term)
        for node in found:
            _check_size(node, term)
        return found

    def _joined(self, term: Term) -> _Pair:
        pairs = [self.pair(arg) for arg in term.args]
        trues, falses = [one for one, _ in pairs], [other for _, other in pairs]
        if all(isinstance(node, Expression) for node in trues):
            return self._expression(term)
        if term.op == "&&":
            return all_of(trues), any_of(falses)
        return any_of(trues), all_of(falses)

    def _conditional(self, term: Term) -> _Pair:
        (if_true, if_false), one, other = (self.pair(arg) for arg in term.args)
        true, false = (
            any_of((all_of((if_true, one[case])), all_of((if_false, other[case]))))
            for case in (0, 1)
        )
        return true, false

    def _tested(self, term: Term) -> _Pair | None:
        """Return the tests of a field and constants; None for all other terms."""
        op = term.op
        if op == "literal" and isinstance(term.value, bool):
            return (ALWAYS, NEVER) if term.value else (NEVER, ALWAYS)
        if op in ("==", "!=", *_INVERSE):
            return self._compared(term)
        if op == "in":
            return self._in(term)
        if op in _TEXTS:
            return self._text_test(term)
        if op == "has":
            return self._has(term)
        if op == "exists":
            return self._exists(term)
        path = self._path(term)
        if path is None:
            return None
        true, false = (Compare("=", path, Const(each), term.position) for each in (True, False))
        return true, false

    def _compared(self, term: Term) -> _Pair | None:
        left, right = term.args
        op: Comparison = "=" if term.op == "==" else term.op  # type: ignore[assignment]
        path, constant = self._path(left), right
        if path is None:
            path, constant, op = self._path(right), left, FLIPPED[op]
        if path is None or constant.op != "literal":
            return None
        value = constant.value
        test = Compare(op, path, Const(value), term.position)
        if op in _INVERSE:
            if not isinstance(value, str | int | float) or isinstance(value, bool):
                return None
            return test, replace(test, op=_INVERSE[op])
        found = _existing(replace(test, op="="), path)
        if path.space != "attributes":  # only these may be objects or lists
            found = found[0], replace(test, op="!=")
        return found if op == "=" else found[::-1]

    def _in(self, term: Term) -> _Pair | None:
        left, right = term.args
        path = self._path(left)
        if path is not None and right.op == "list":
            if not right.args or not all(_is_scalar(arg) for arg in right.args):
                return None
            values = tuple(dict.fromkeys(Const(arg.value) for arg in right.args))
            return _existing(In(path, values, term.position), path)
        path = self._path(right)
        if path is None or not _is_scalar(left):
            return None
        if isinstance(left.value, str) and "." in left.value:
            return None  # it may be a name of an object, which no path expresses
        return _existing(_member(Compare("=", path, Const(left.value), term.position)), path)

    def _text_test(self, term: Term) -> _Pair | None:
        path, part = self._path(term.args[0]), term.args[1]
        if path is None or part.op != "literal" or not isinstance(part.value, str):
            return None
        test = Text(_TEXTS[term.op], path, part.value, term.position)
        is_text = Text("prefix", path, "", term.position)
        return test, all_of((is_text, Not(test, term.position)))

    def _has(self, term: Term) -> _Pair | None:
        field = term.args[0]
        path = self._path(field)
        if path is None:
            return None
        exists, missing = Exists(path, term.position), Not(Exists(path), term.position)
        of = self._path(field.args[0]) if field.args else None
        return exists, missing if of is None else all_of((Exists(of, term.position), missing))

    def _exists(self, term: Term) -> _Pair | None:
        """Return `exists` of a list: `within` for conditions on the fields of its objects, or the
        test of one member.
        """
        on, body = term.args
        path = self._path(on)
        if path is None or path.space != "attributes":
            return None
        found = self._member_test(path, body, term.value)
        if found is None:
            inner = _CelTree(self._text, term.value).pair(body)[0]
            if not has_expression(inner) and not _may_hold_without_object(inner):
                found = Within(path, inner, term.position)
        return None if found is None else (found, self._expression(term)[1])

    def _member_test(self, path: Path, body: Term, variable: str) -> Node | None:
        """Return the test of a list one of whose members has to pass a single test."""
        if body.op not in ("==", *_INVERSE, *_TEXTS):
            return None
        if not any(arg.op == "variable" and arg.value == variable for arg in body.args):
            return None
        found = _MemberTree(self._text, path)._tested(body)
        if found is None:
            return None
        return _member(found[0]) if isinstance(found[0], Compare) else found[0]

    def _expression(self, term: Term) -> _Pair:
        text = self._text[term.start : term.end]
        is_in_parentheses = text[0] == "(" and term.args and term.args[0].start > term.start
        negated = f"!{text}" if is_in_parentheses else f"!({text})"
        one, other = (Expression("cel", each, term.position) for each in (text, negated))
        return one, other

    def _path(self, term: Term) -> Path | None:
        path = path_of_term(term, self._variable)
        if path is None or self._variable is None or path.space != "attributes":
            return path
        return path if _root(term).op == "variable" else None


class _MemberTree(_CelTree):
    """The tree of a condition on the members of the list at a path."""

    def __init__(self, text: str, path: Path) -> None:
        super().__init__(text)
        self._list = path

    def _path(self, term: Term) -> Path | None:
        return self._list if term.op == "variable" else None


def _existing(test: Node, path: Path) -> _Pair:
    return test, all_of((Exists(path, test.position), Not(test, test.position)))


def _member(test: Compare) -> Node:
    """Return the test of the members of a list; a text may also be a name of an object."""
    match test:
        case Compare("=", Path(name, "attributes"), Const(str(text))) if text and "." not in text:
            return any_of((test, Exists(Path(f"{name}.{text}"), test.position)))
    return test


def _may_hold_without_object(node: Node) -> bool:
    """Return whether the condition of `exists` may hold for a member that is no object, of which
    `within` does not know. Only tests of its fields require an object.
    """
    match node:
        case And(items):
            return all(map(_may_hold_without_object, items))
        case Or(items):
            return any(map(_may_hold_without_object, items))
        case Not() | Truth(True):
            return True
    return any(path.space != "attributes" for path in paths_of(node))


def _is_scalar(term: Term) -> bool:
    return term.op == "literal"


def _root(term: Term) -> Term:
    while term.op in ("field", "index"):
        term = term.args[0]
    return term


def _check_size(node: Node, term: Term) -> None:
    """Raise FilterTooLarge early: conditions that are repeated multiply."""
    waiting, size = [node], 0
    while waiting:
        part = waiting.pop()
        size += 1
        if size > 2 * limits.FILTER_PARTS_MAX:
            raise FilterTooLarge(position=term.position, parts_max=limits.FILTER_PARTS_MAX)
        if isinstance(part, And | Or):
            waiting += part.items
        elif isinstance(part, Within):
            waiting.append(part.item)
