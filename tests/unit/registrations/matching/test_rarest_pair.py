"""The structure of strategy `access`: where conjunctions are linked, and the cost of changes."""

from eventhub.event.envelope import Event
from registrations.matching.atoms import nested_pairs
from registrations.matching.conjunctions import REVIEW_MIN
from registrations.matching.rarest_pair import PARTNERS_FEW, RarestPairMatcher
from registrations.matching.spec import Spec


def cost(matcher: RarestPairMatcher, event: Event) -> int:
    before = matcher.counters.touched
    matcher.match(event)
    return matcher.counters.touched - before


def test_a_popular_pair_does_not_lead_to_conjunctions_with_a_rarer_one() -> None:
    matcher = RarestPairMatcher()
    matcher.add(0, Spec(pairs=(("popular", True),)))
    matcher.add(1, Spec(pairs=(("popular", True), ("other", 1))))
    for id in range(2, 1_000):
        matcher.add(id, Spec(pairs=(("popular", True), ("number", id))))
    assert cost(matcher, Event("", "", {"popular": True})) <= 2
    assert cost(matcher, Event("", "", {"popular": True, "number": 500})) <= 3


def test_equal_conjunctions_are_stored_and_touched_once() -> None:
    matcher = RarestPairMatcher()
    for id in range(1_000):
        pairs = (("a", 1), ("b", 2), ("c", 3))
        matcher.add(id, Spec(pairs=pairs if id % 2 else pairs[::-1]))
    assert matcher.size() == (1, 3, 1)
    event = Event("", "", {"a": 1, "b": 2, "c": 3})
    assert len(matcher.match(event)) == 1_000
    assert cost(matcher, event) == 2  # the couple, and its conjunction


def test_an_atom_is_reviewed_when_its_conjunctions_doubled() -> None:
    """`late` is rarer than its partners at first; then half of the partners become rare."""
    matcher = RarestPairMatcher()
    half = 2 * REVIEW_MIN
    others = range(10_000, 10_000 + 2 * half * 3 * half)
    for id in others:
        matcher.add(id, Spec(pairs=((f"x{id % (2 * half)}", 1), ("only", id))))
    for id in range(half):
        matcher.add(id, Spec(pairs=(("late", True), (f"x{id}", 1))))
    late = matcher._gates[None, None, None].names["late"][(True,)]
    assert late.posted == half
    for id in others:
        if id % (2 * half) < half:
            matcher.remove(id)
    reviews = matcher.counters.rebuilds
    for id in range(half, 2 * half):
        matcher.add(id, Spec(pairs=(("late", True), (f"x{id}", 1))))
    assert matcher.counters.rebuilds == reviews + 1
    assert late.posted == half
    for id in range(2 * half):
        assert matcher.match(Event("", "", {"late": True, f"x{id}": 1})) == [id]


def test_many_partners_are_intersected_not_walked() -> None:
    matcher = RarestPairMatcher()
    partners = 4 * PARTNERS_FEW
    for id in range(partners):
        for other in range(3):
            matcher.add(id * 3 + other, Spec(pairs=(("rare", 1), (f"n{id}", 1), ("extra", other))))
    for id in range(partners):
        for other in range(partners):
            matcher.add(10_000 + id * partners + other, Spec(pairs=((f"n{id}", 1), ("z", other))))
    event = Event("", "", {"rare": 1, "n3": 1, "extra": 2})
    assert matcher.match(event) == [3 * 3 + 2]
    assert cost(matcher, event) < PARTNERS_FEW


def test_other_gates_cost_nothing() -> None:
    matcher = RarestPairMatcher()
    for id in range(100):
        matcher.add(id, Spec(f"d{id}", "t", (("a", 1),)))
        matcher.add(100 + id, Spec("d", f"t{id}", (("a", 1),)))
    assert cost(matcher, Event("d", "t", {"a": 1})) == 0
    assert matcher.counters.lookups == 0
    assert cost(matcher, Event("d", "t3", {"a": 1})) == 1


def test_an_emptied_matcher_has_nothing_left() -> None:
    matcher = RarestPairMatcher()
    specs = [
        Spec("d", None, (("a.b.c", 1), ("a.b", id % 3), ("x", id % 7), ("y", id)))
        for id in range(300)
    ] + [Spec("d", "t"), Spec(), Spec(None, "t", (("a", 1),))]
    for id, spec in enumerate(specs):
        matcher.add(id, spec)
    for id in range(len(specs)):
        matcher.remove(id)
    assert len(matcher) == 0
    assert matcher.size() == (0, 0, 0)
    assert matcher._gates == {}


def test_registrations_of_a_conjunction_are_sorted() -> None:
    matcher = RarestPairMatcher()
    for id in (5, 1, 9, 3, 7):
        matcher.add(id, Spec(pairs=(("a", 1),)))
    matcher.remove(3)
    assert matcher.match(Event("", "", {"a": 1})) == [1, 5, 7, 9]


def test_objects_without_registered_paths_are_not_opened() -> None:
    attributes = {"a": {"b": {"c": 1}, "d": 2}, "x": {"y": 3}, "e.f": {"g": 4}}
    assert nested_pairs(attributes, set()) == []
    assert nested_pairs(attributes, {"x"}) == [("x.y", 3)]
    found = dict(nested_pairs(attributes, {"a", "a.b", "e.f", "e"}))
    assert found == {"a.b": {"c": 1}, "a.d": 2, "a.b.c": 1}
