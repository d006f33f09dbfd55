"""The paths of CEL expressions: names and fields as all languages find them. Plain module.

A name is an attribute of the event. `attributes`, `event` and `env` are the maps of all attributes,
of the fields of the envelope, and of the environment.
"""

from collections.abc import Iterator

from registrations.filters.ast import Path
from registrations.filters.cel.parser import MACROS
from registrations.filters.sexpr import syntax_error
from registrations.filters.terms import Term
from registrations.filters.values import ENVELOPE

ATTRIBUTES, EVENT, ENV = "attributes", "event", "env"
MAPS = frozenset((ATTRIBUTES, EVENT, ENV))


def path_of_term(term: Term, variable: str | None = None) -> Path | None:
    """Return the path of a field; None if it is no field, or one that no path can express.
    `variable`: the root of paths into the objects of a list, instead of the event. Raises
    FilterSyntax for a field that the envelope does not have.
    """
    steps: list[str] = []
    of = term
    while of.op in ("field", "index"):
        step = _step(of)
        if step is None:
            return None
        steps.insert(0, step)
        of = of.args[0]
    if of.op == "variable":
        is_exact = all("." not in step for step in steps)  # a path splits a name at its dots
        if of.value != variable or not steps or not is_exact:
            return None
        return _joined(steps, term)
    if of.op != "name":
        return None
    return _path(of.value, steps, term)


def _path(root: str, steps: list[str], term: Term) -> Path | None:
    if root == EVENT and steps:
        if steps[0] not in ENVELOPE:
            known = ", ".join(sorted(ENVELOPE))
            raise syntax_error(
                f"An event has no field {steps[0][:100]}; there are {known}. An attribute "
                "is written by its name.",
                term.position,
            )
        return Path(steps[0], "envelope", term.position) if len(steps) == 1 else None
    if root == ENV and steps:
        return Path(steps[0], "environment", term.position) if len(steps) == 1 else None
    if root in MAPS:
        return _joined(steps, term) if steps else None
    return _joined([root, *steps], term)


def _joined(steps: list[str], term: Term) -> Path | None:
    if len(steps) > 1 and any("." in step for step in steps):
        return None
    return Path(".".join(steps), position=term.position)


def _step(term: Term) -> str | None:
    if term.op == "field":
        return str(term.value)
    key = term.args[1]
    return key.value if key.op == "literal" and isinstance(key.value, str) else None


def paths_in(term: Term) -> Iterator[Path]:
    """Yield the paths that a term may read."""
    path = path_of_term(term)
    if path is not None:
        yield path
        return
    for arg in term.args:
        yield from paths_in(arg)


def required_paths(term: Term) -> Iterator[Path]:
    """Yield the paths without which a term has an error."""
    path = path_of_term(term)
    if path is not None:
        yield path
    elif term.op not in ("&&", "||", "has"):
        for arg in term.args[:1] if term.op in ("?:", *MACROS) else term.args:
            yield from required_paths(arg)
