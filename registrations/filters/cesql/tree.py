"""The tree of a CESQL filter. Plain module.

A filter with an error does not match, so each part becomes up to three filters: where it is true,
where it is false, and where it has no error. Tests of one attribute and a constant are tests of the
tree, so that indexes find the filter; all else stays an expression, which is evaluated.
"""

from collections.abc import Iterable
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
    Scalar,
    Text,
)
from registrations.filters.cesql.attributes import REQUIRED, name_of, path_of_attribute
from registrations.filters.cesql.evaluation import (
    LikePart,
    cast_or_none,
    evaluate,
    fits_parts,
    like_parts,
)
from registrations.filters.cesql.program import checked_term
from registrations.filters.cesql.terms import CesqlValue, attributes_in
from registrations.filters.errors import FilterTooLarge
from registrations.filters.junctions import ALWAYS, NEVER, all_of, any_of, opposite
from registrations.filters.terms import Term
from registrations.filters.values import MISSING, number_of

_INVERSE: dict[Comparison, Comparison] = {"<": ">=", "<=": ">", ">": "<=", ">=": "<"}
_TRUTHS = {True: ("true", "True", "TRUE"), False: ("false", "False", "FALSE")}
_NOTHING = (NEVER, NEVER, NEVER)
TRUE, FALSE, DEFINED = range(3)
_Cases = tuple[Node, Node, Node]


def parse_cesql(text: str) -> Node:
    """Parse a text into a tree. Raises FilterSyntax with its position, FilterTooLarge."""
    term = checked_term(text)
    if term.op == "attribute":  # not cast: its value must be true itself
        path = _path(term)
        if path is not None:
            return Compare("=", path, Const(True), term.position)
    return _Translation(text).node(term, TRUE)


class _Translation:
    """The trees of the terms of one filter. Each is built when it is needed, once."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._nodes: dict[tuple[Term, int], Node] = {}
        self._cases: dict[Term, _Cases] = {}
        self._sizes: dict[int, int] = {}

    def node(self, term: Term, case: int) -> Node:
        """Return the filter of a case of a term: TRUE, FALSE or DEFINED, which is without error."""
        found = self._nodes.get((term, case))
        if found is None:
            found = self._nodes[term, case] = self._built(term, case)
            self._check_size(found, term)
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
            return all_of(self.node(arg, case) for arg in term.args)
        return self._decided(term, case)

    def _decided(self, term: Term, case: int) -> Node:
        """Build the filter of the case that one part decides, if those before it have no error."""
        found: list[Node] = []
        before: Node = ALWAYS
        size = 0
        for arg in term.args:
            part = all_of((before, self.node(arg, case)))
            before = all_of((before, self.node(arg, DEFINED)))
            found.append(part)
            size += len(part.items) if isinstance(part, And) else 1
            if size > limits.FILTER_PARTS_MAX:
                raise FilterTooLarge(position=arg.position, parts_max=limits.FILTER_PARTS_MAX)
        return any_of(found)

    def _either(self, args: tuple[Term, ...], case: int) -> Node:
        one, other = args
        if case == DEFINED:
            return all_of(self.node(arg, DEFINED) for arg in args)
        unlike = FALSE if case == TRUE else TRUE
        pairs = ((TRUE, unlike), (FALSE, FALSE if unlike == TRUE else TRUE))
        return any_of(all_of((self.node(one, a), self.node(other, b))) for a, b in pairs)

    def _defined(self, term: Term) -> Node:
        """Build the test that no part has an error, up to the one that decides."""
        decisive = FALSE if term.op == "AND" else TRUE
        found = self.node(term.args[-1], DEFINED)
        for arg in term.args[-2::-1]:
            rest = any_of((self.node(arg, decisive), found))
            found = all_of((self.node(arg, DEFINED), rest))
        return found

    def _is_expression(self, term: Term) -> bool:
        """Return whether nothing in a term is a test of the tree."""
        if term.op in ("AND", "OR", "XOR", "NOT"):
            return all(map(self._is_expression, term.args))
        return isinstance(self._tested(term)[TRUE], Expression)

    def _tested(self, term: Term) -> _Cases:
        found = self._cases.get(term)
        if found is None:
            found = self._cases[term] = self._test(term)
        return found

    def _test(self, term: Term) -> _Cases:
        if not any(attributes_in(term)):
            value = _constant(term)
            known = None if value is None else cast_or_none(value, "boolean")
            if known is None:
                return _NOTHING
            return (ALWAYS, NEVER, ALWAYS) if known else (NEVER, ALWAYS, ALWAYS)
        found = None
        if term.op == "attribute":
            found = _equal(term, term, True)
        elif term.op in ("=", "!=", *FLIPPED):
            found = _compared(term)
        elif term.op == "EXISTS":
            found = _exists(term)
        elif term.op == "IN":
            found = _in(term)
        elif term.op == "LIKE":
            found = self._like(term)
        return found or self._expression(term)

    def _expression(self, term: Term) -> _Cases:
        text = self._text[term.start : term.end]
        written = (text, f"NOT ({text})", f"({text}) OR TRUE")
        if term.op in ("LIKE", "IN") and term.value:
            written = (written[1], text, written[2])
        one, other, defined = (Expression("cesql", each, term.position) for each in written)
        return one, other, defined

    def _like(self, term: Term) -> _Cases | None:
        path, parts = _path(term.args[0]), like_parts(term.args[1].value)
        if path is None:
            return None
        name, exists = name_of(term.args[0].value), Exists(path, term.position)
        if len(parts) == 1 and len(parts[0].texts) == 1:
            return _of_text(term, name, path, parts[0].texts[0])
        if not any(text for part in parts for text in part.texts) and _is_plain(parts):
            return (ALWAYS, NEVER, ALWAYS) if name in REQUIRED else (exists, NEVER, exists)
        absent = name in REQUIRED and fits_parts(parts, str(REQUIRED[name]))
        test = _text_test(path, parts, term)
        if _is_plain(parts):
            return _present(name, path, test, absent=absent)
        one, other, _ = self._expression(term)
        return (
            one if absent else all_of((test, one)),
            other,
            ALWAYS if name in REQUIRED else exists,
        )

    def _check_size(self, node: Node, term: Term) -> None:
        """Raise FilterTooLarge early: parts of the tree that are repeated multiply."""
        items = node.items if isinstance(node, And | Or) else ()
        size = self._sizes[id(node)] = 1 + sum(self._sizes.get(id(item), 1) for item in items)
        if size > 2 * limits.FILTER_PARTS_MAX:
            raise FilterTooLarge(position=term.position, parts_max=limits.FILTER_PARTS_MAX)


def _compared(term: Term) -> _Cases | None:
    """Return the cases of a comparison of an attribute and a constant."""
    op: Comparison = term.op  # type: ignore[assignment]
    left, right = term.args
    for one, other, relation in ((left, right, op), (right, left, FLIPPED[op])):
        path = _path(one)
        if path is None or any(attributes_in(other)):
            continue
        value = _constant(other)
        if value is None:
            return _NOTHING
        if op not in ("=", "!="):
            return _ordered(term, path, relation, value)
        typed = value if one is left else str(cast_or_none(value, "text"))
        true, false, defined = _equal(term, one, typed) or _NOTHING
        return (true, false, defined) if op == "=" else (false, true, defined)
    return None


def _ordered(term: Term, path: Path, op: Comparison, value: CesqlValue) -> _Cases:
    number = cast_or_none(value, "integer")
    if number is None:
        return _NOTHING
    test = Compare(op, path, Const(number), term.position)
    return test, replace(test, op=_INVERSE[op]), _numeric(path, term)


def _equal(term: Term, of: Term, value: CesqlValue) -> _Cases | None:
    """Return the cases of an attribute that equals a constant after a cast to its type."""
    path = _path(of)
    if path is None:
        return None
    if isinstance(value, str):
        return _of_text(term, name_of(of.value), path, value)
    if isinstance(value, bool):
        one, other = (_in_values(path, (each, *_TRUTHS[each]), term) for each in (value, not value))
        return one, other, any_of((one, other))
    numeric = _numeric(path, term)
    unlike = [Compare("!=", path, Const(each), term.position) for each in (value, str(value))]
    return _in_values(path, (value, str(value)), term), all_of((numeric, *unlike)), numeric


def _of_text(term: Term, name: str, path: Path, text: str) -> _Cases:
    """Return the cases of an attribute that equals a text after a cast to a text."""
    forms = _forms(text) if path.space == "attributes" else (text,)
    absent = name in REQUIRED and REQUIRED[name] == text
    return _present(name, path, _in_values(path, forms, term), absent=absent)


def _present(name: str, path: Path, test: Node, *, absent: bool) -> _Cases:
    """Return the cases of a test of any value that exists. `absent`: it holds for the value of a
    required attribute whose field is missing.
    """
    exists = Exists(path, test.position)
    if name in REQUIRED:
        true = any_of((test, Not(exists))) if absent else test
        return true, opposite(true), ALWAYS
    if isinstance(test, Compare):
        return test, replace(test, op="!="), exists
    return test, all_of((exists, opposite(test))), exists


def _exists(term: Term) -> _Cases | None:
    name = name_of(term.args[0].value)
    if name in REQUIRED or name == "specversion":
        return ALWAYS, NEVER, ALWAYS
    path = path_of_attribute(name)
    if path is None:
        return None
    exists = Exists(path, term.position)
    return exists, Not(exists), ALWAYS


def _in(term: Term) -> _Cases | None:
    path, others = _path(term.args[0]), term.args[1:]
    if path is None or any(True for other in others for _ in attributes_in(other)):
        return None
    texts = []
    for other in others:
        value = _constant(other)
        if value is None:
            return _NOTHING
        texts.append(str(cast_or_none(value, "text")))
    name = name_of(term.args[0].value)
    forms = [form for text in texts for form in _forms(text)]
    test = _in_values(path, forms if path.space == "attributes" else texts, term)
    return _present(name, path, test, absent=name in REQUIRED and REQUIRED[name] in texts)


def _in_values(path: Path, values: Iterable[Scalar], term: Term) -> Compare | In:
    constants = tuple(dict.fromkeys(map(Const, values)))
    if len(constants) == 1:
        return Compare("=", path, constants[0], term.position)
    return In(path, constants, term.position)


def _forms(text: str) -> tuple[Scalar, ...]:
    """Return the values that are this text after a cast."""
    if text in ("true", "false"):
        return text, text == "true"
    number = number_of(text)
    if number is None or not limits.INTEGER_MIN <= number <= limits.INTEGER_MAX:
        return (text,)
    return (text, number) if str(number) == text else (text,)


def _numeric(path: Path, term: Term) -> Node:
    """Return a test that the attribute is a number or the text of one."""
    return Compare(">=", path, Const(limits.INTEGER_MIN), term.position)


def _text_test(path: Path, parts: tuple[LikePart, ...], term: Term) -> Text:
    """Return the test of a pattern; `_` stands for any characters in it."""
    texts = [text for part in parts for text in part.texts]
    match texts if _is_plain(parts) else ():
        case [text, ""]:
            return Text("prefix", path, text, term.position)
        case ["", text]:
            return Text("suffix", path, text, term.position)
        case ["", text, ""]:
            return Text("substring", path, text, term.position)
    escaped = (text.replace("\\", "\\\\").replace("*", "\\*") for text in texts)
    return Text("wildcard", path, "*".join(escaped), term.position)


def _is_plain(parts: tuple[LikePart, ...]) -> bool:
    """Return whether a pattern has no `_`."""
    return all(len(part.texts) == 1 for part in parts)


def _constant(term: Term) -> CesqlValue | None:
    value, error = evaluate(term, lambda _: MISSING)
    return value if error is None else None


def _path(term: Term) -> Path | None:
    """Return the path of an attribute; None for all else."""
    found = path_of_attribute(name_of(term.value)) if term.op == "attribute" else None
    return None if found is None else replace(found, position=term.position)
