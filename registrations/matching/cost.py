"""The estimated cost of a filter for a matcher. Plain module.

A spec costs something only for events that have the pair or attribute by which it is reached. Only
a matcher knows which of several pairs is the rarest.
"""

from typing import Any, Literal, NamedTuple

from registrations.filters.normal import NormalForm
from registrations.matching.atoms import atoms_of
from registrations.matching.budget import budget_of
from registrations.matching.conditions import anchor_of
from registrations.matching.gates import gate_of
from registrations.matching.spec import Spec, specs_of_form

# from the cheapest: events with the pair, events with the attribute, events of the domain, type and
# application, all events
By = Literal["pair", "attribute", "gate", "event"]


class Reach(NamedTuple):
    """The way a spec is reached. `names`: its pairs, of which the rarest is used, the attribute, or
    the parts of its gate.
    """

    by: By
    names: tuple[str, ...]


class FilterCost(NamedTuple):
    """The cost of a filter. `reached_by` has one entry for each spec; `tests` counts the tests that
    are not pairs.
    """

    reached_by: tuple[Reach, ...]
    every_event: bool  # a spec is evaluated for every event
    pairs: int
    tests: int
    budget: int  # taken of the client's budget on each stream

    def json(self) -> dict[str, Any]:
        """Return the JSON of API responses."""
        reached = [{"by": one.by, "names": list(one.names)} for one in self.reached_by]
        return {**self._asdict(), "reached_by": reached}


def cost_of(form: NormalForm) -> FilterCost:
    """Return the cost of a filter; a filter that never matches has none."""
    specs = specs_of_form(form)
    reached = tuple(map(_reach_of, specs))
    return FilterCost(
        reached,
        any(one.by == "event" for one in reached),
        sum(len(atoms_of(spec)) for spec in specs),
        sum(len(spec.tests) for spec in specs),
        budget_of(form),
    )


def _reach_of(spec: Spec) -> Reach:
    if spec.pairs:
        return Reach("pair", tuple(dict.fromkeys(path for path, _ in spec.pairs)))
    anchor = anchor_of(spec.tests)
    if anchor is not None:
        return Reach("attribute", (anchor,))
    parts = zip(("domain", "type", "application"), gate_of(spec), strict=True)
    given = tuple(name for name, value in parts if value is not None)
    return Reach("gate", given) if given else Reach("event", ())
