"""What a filter will cost a matcher, as far as it can be told before it is in one. Plain module.

A spec costs something only where an event has what the spec is reached by. Which of several pairs
is the rarest, a matcher alone knows.
"""

from typing import Any, Literal, NamedTuple

from registrations.filters.normal import NormalForm
from registrations.matching.atoms import atoms_of
from registrations.matching.budget import budget_of
from registrations.matching.conditions import anchor_of
from registrations.matching.gates import gate_of
from registrations.matching.spec import Spec, specs_of_form

# the cheapest first: an event that has the pair, an event that has the attribute, an event of the
# domain, type and application, any event
By = Literal["pair", "attribute", "gate", "event"]


class Reach(NamedTuple):
    """How a spec is reached. `names`: of the pairs, of which the rarest is taken; of the attribute;
    of the parts of the gate that are given.
    """

    by: By
    names: tuple[str, ...]


class Cost(NamedTuple):
    """`reached_by` has one for each spec; `tests` are all that may be tried beside pairs."""

    reached_by: tuple[Reach, ...]
    every_event: bool  # a spec is looked at for whatever comes
    pairs: int
    tests: int
    budget: int  # how much it takes of its client's budget on each stream

    def json(self) -> dict[str, Any]:
        """As answers show it."""
        reached = [{"by": one.by, "names": list(one.names)} for one in self.reached_by]
        return {**self._asdict(), "reached_by": reached}


def cost_of(form: NormalForm) -> Cost:
    """The cost of a filter; of one that never matches nothing."""
    specs = specs_of_form(form)
    reached = tuple(map(_reach_of, specs))
    return Cost(
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
