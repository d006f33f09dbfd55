"""The check of a pattern's text: its normal form, its parts, its cost and what may be meant
otherwise. Plain module.
"""

from typing import Any

from registrations.filters.normal import normal
from registrations.filters.printed import printed
from registrations.matching.cost import every_event_cost
from registrations.pattern_groups.definition import ParsedPattern, Tree, filters_of
from registrations.patterns.ast import Part, Pattern, elements_of, parts_of
from registrations.patterns.plan import plan_of
from registrations.patterns.printed import element_text, part_text, print_pattern
from registrations.temporal.pattern import TemporalPattern

NEVER, EVERY_EVENT, WINDOW = "never_matches", "every_event", "default_window"
WARNINGS = (NEVER, EVERY_EVENT, WINDOW)


def checked(language: str, parsed: ParsedPattern) -> dict[str, Any]:
    """Return the JSON of the check of a text without mistakes."""
    tree = parsed.tree
    forms = [normal(node) for node in filters_of(tree)]
    warnings = []
    if not all(forms):
        warnings.append(NEVER)
    if any(every_event_cost(form) for form in forms):
        warnings.append(EVERY_EVENT)
    if isinstance(tree, Pattern) and tree.within_us is None and len(elements_of(tree.part)) > 1:
        warnings.append(WINDOW)
    return {
        "language": language,
        "printed": print_pattern(tree) if isinstance(tree, Pattern) else tree.text,
        "tree": _tree(tree),
        "elements": _elements(tree),
        "window": _window(tree),
        "cost": {"filters": len(set(forms)), "every_event_cost": parsed.cost},
        "streams": sorted(parsed.streams),
        "sessions": sorted(parsed.sessions),
        "warnings": warnings,
        "mistake": None,
    }


def mistaken(language: str, problem: dict[str, Any]) -> dict[str, Any]:
    """Return the JSON of the check of a text with a mistake."""
    nothing: dict[str, Any] = dict.fromkeys(("printed", "tree", "window", "cost"))
    lists: dict[str, Any] = {"elements": [], "streams": [], "sessions": [], "warnings": []}
    return {"language": language, **nothing, **lists, "mistake": problem}


def _tree(tree: Tree) -> dict[str, Any] | None:
    if isinstance(tree, Pattern):
        return _part(tree.part)
    if isinstance(tree, TemporalPattern):
        texts = [one.text() for one in tree.events] + [one.text() for one in tree.absent]
        return {"text": tree.text, "parts": [{"text": one, "parts": []} for one in texts]}
    return None


def _part(part: Part) -> dict[str, Any]:
    return {"text": part_text(part), "parts": [_part(inner) for inner in parts_of(part)]}


def _elements(tree: Tree) -> list[dict[str, Any]]:
    texts: list[tuple[str, str]]
    if isinstance(tree, Pattern):
        names = [one.variable or f"${n}" for n, one in enumerate(elements_of(tree.part), 1)]
        texts = [*zip(names, map(element_text, elements_of(tree.part)), strict=True)]
    elif isinstance(tree, TemporalPattern):
        texts = [(f"${n}", one.text()) for n, one in enumerate(tree.events, 1)]
        texts += [("", one.text()) for one in tree.absent]
    else:
        texts = [("", printed(node)) for node in filters_of(tree)]
    filters = filters_of(tree)
    return [
        {"variable": name or None, "text": text, "every_event_cost": every_event_cost(normal(node))}
        for (name, text), node in zip(texts, filters, strict=True)
    ]


def _window(tree: Tree) -> dict[str, Any] | None:
    """Return how far a match may reach back: in seconds, in events."""
    if isinstance(tree, Pattern):
        plan = plan_of(tree)
        return {"within_s": plan.within_us / 1e6, "last": plan.last}
    if isinstance(tree, TemporalPattern):
        return {"within_s": None, "last": tree.memory}
    return {"within_s": None, "last": max((one.count_max for one in tree.recent), default=0)}
