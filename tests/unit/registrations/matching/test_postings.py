"""Postings narrow which events a filter is evaluated for, and never leave one out that matches."""

import pytest

from eventhub.event.envelope import Event
from registrations.filters.evaluate import holds
from registrations.matching.postings import Postings, keys_of_specs
from registrations.matching.spec import specs_of
from tests.unit.registrations.matching.conditions import hierarchy
from tests.unit.registrations.matching.filters import Take, seeded

LENGTH = 1_000


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_every_event_that_matches_is_a_candidate(seed: int) -> None:
    steps = list(seeded(seed, LENGTH))
    events = [step for step in steps if isinstance(step, Event)]
    nodes = [step.node for step in steps if isinstance(step, Take)]
    postings = Postings()
    for event in events:
        postings.add(event)
    narrowed = candidates = matched = 0
    for node in nodes:
        keys = keys_of_specs(specs_of(node))
        if keys is None:
            continue
        found = postings.candidates(keys)
        matching = [at for at, event in enumerate(events) if holds(node, event, hierarchy)]
        assert set(matching) <= set(found), node
        assert found == sorted(set(found))
        narrowed += 1
        candidates += len(found)
        matched += len(matching)
    assert narrowed > len(nodes) / 4
    assert matched > 100
    assert candidates < narrowed * len(events) / 2, "it narrows"
