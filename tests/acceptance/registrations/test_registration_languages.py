"""Registrations in every language: created, listed, matched, changed, and refused."""

from typing import Any

import pytest

from tests.acceptance.wire import session
from tests.live import LiveHub, LiveZone
from tests.sink import Sink

JOE = "(and (or (= type 'error) (= type 'warning)) (= user 'Joe))"
FILTERS: dict[str, Any] = {
    "predicate": "(and (= @type 'order) (> total 9) (not (exists refund)))",
    "propositional": "(and customer total)",
    "ready": "Ev1: shop::order | $total > 9 and $tags == 'new'",
    "cel": "event.type == 'order' && total + 1 > 10 && !has(refund)",
    "cesql": "type = 'order' AND total + 1 > 10 AND NOT EXISTS refund",
    "eventbridge": {"detail-type": ["order"], "detail": {"total": [{"numeric": [">", 9]}]}},
}
EVENTS: list[dict[str, Any]] = [
    {"total": 10, "tags": ["old", "new"]},
    {"total": "10", "refund": None},
    {"total": 9, "customer": 1},
    {"total": 12, "customer": None, "tags": "new"},
]
EXPECTED = {
    "predicate": [1, 4],
    "propositional": [3, 4],
    "ready": [1, 4],
    "cel": [1, 4],
    "cesql": [1, 2, 4],  # null is no value there
    "eventbridge": [1, 2, 4],
}


def order(attributes: dict[str, Any]) -> dict[str, Any]:
    return {"domain": "shop", "type": "order", "attributes": attributes}


@pytest.fixture
def orders(zone: LiveZone) -> LiveZone:
    zone.create_stream("orders")
    return zone


def wanting(language: str, filter: Any) -> dict[str, Any]:
    return {"streams": ["orders"], "language": language, "filter": filter}


async def test_filters_of_every_language_match_the_same_events(
    hub: LiveHub, orders: LiveZone
) -> None:
    made = orders.register(*(wanting(*each) for each in FILTERS.items()))
    names = {one["id"]: one["language"] for one in made}
    async with session(hub, orders.admin) as reader:
        await reader.listen("orders", registrations=list(names))
        orders.emit("orders", [order(each) for each in EVENTS])
        received: dict[str, list[int]] = {name: [] for name in FILTERS}
        for event in await reader.events(4):
            for id in event["registrations"]:
                received[names[id]].append(event["sequence"])
        assert received == EXPECTED


LABELS: tuple[tuple[dict[str, Any], ...], ...] = (
    ({"name": "bug", "color": "red"}, {"name": "help", "color": "blue"}),
    ({"name": "bug", "color": "blue"},),
    ({"name": "help", "color": "red"},),
)
OF_LABELS: tuple[tuple[dict[str, Any], list[int]], ...] = (
    ({"attributes": {"labels.name": "bug", "labels.color": "blue"}}, [1, 2]),
    ({"language": "predicate", "filter": "(prefix labels.name 'b)"}, [1, 2]),
    ({"language": "predicate",
      "filter": "(within labels (and (= name 'bug) (= color 'red)))"}, [1]),
    ({"language": "ready", "filter": "*::* | $labels.name == 'help'"}, [1, 3]),
    ({"language": "eventbridge", "filter": {"detail": {"labels": {"name": ["bug"]}}}}, [1, 2]),
    ({"language": "eventbridge",
      "filter": {"detail": {"labels": {"name": ["bug"], "color": ["blue"]}}}}, [2]),
)  # fmt: skip


async def test_objects_in_lists_are_reached_in_every_language(
    hub: LiveHub, orders: LiveZone, sink: Sink
) -> None:
    """Such values never matched in any language, neither for a listener nor for a callback."""
    endpoint = orders.endpoint(sink.url(f"/{orders.name}"))["id"]
    definitions = [{"streams": ["orders"], "endpoint": endpoint, **each} for each, _ in OF_LABELS]
    ids = [one["id"] for one in orders.register(*definitions)]
    expected = {
        number: [
            id for id, (_, sequences) in zip(ids, OF_LABELS, strict=True) if number in sequences
        ]
        for number in range(1, 4)
    }
    async with session(hub, orders.admin) as reader:
        await reader.listen("orders", registrations=ids)
        orders.emit("orders", [order({"labels": list(labels)}) for labels in LABELS])
        received = {one["sequence"]: one["registrations"] for one in await reader.events(3)}
        assert received == expected
    called = sink.wait(3, f"/{orders.name}")
    assert {one.json["sequence"]: one.json["registrations"] for one in called} == expected


def test_a_filter_is_returned_as_it_was_written_and_in_the_predicate_language(
    orders: LiveZone,
) -> None:
    [made] = orders.register(wanting("predicate", JOE))
    path = f"/v1/registrations/{made['id']}"
    shown = orders.hub.call("GET", path, key=orders.admin).json
    predicate = '(and (or (= type "error") (= type "warning")) (= user "Joe"))'
    assert (shown["language"], shown["filter"], shown["predicate"]) == ("predicate", JOE, predicate)
    assert (shown["attributes"], shown["warnings"]) == ({}, [])


@pytest.mark.req("OIF-16")
@pytest.mark.parametrize(
    ("language", "text", "place"),
    [
        ("predicate", "(and (= type 'error)\n  (like user 'Joe))", (2, 4)),
        ("propositional", JOE, (1, 11)),
        ("ready", "Ev1: MyAlarm | $Priority >", (1, 27)),
        ("cel", "event.type == 'order'\n && total = 5", (2, 11)),
        ("cesql", "type = 'order'\n AND total >", (2, 13)),
    ],
)
def test_an_invalid_text_is_refused_with_its_position(
    orders: LiveZone, language: str, text: str, place: tuple[int, int]
) -> None:
    body = wanting(language, text)
    answer = orders.hub.call("POST", "/v1/registrations", body, key=orders.admin)
    answer.refused(400, "filter_syntax")
    assert (answer.json["line"], answer.json["column"]) == place
    assert answer.json["position"]["field"] == "filter"


def test_a_filter_changes_as_a_whole_and_its_language_with_it(orders: LiveZone) -> None:
    [made] = orders.register(wanting("predicate", "(> total 9)"))
    path = f"/v1/registrations/{made['id']}"

    def change(**fields: Any) -> Any:
        return orders.hub.call("PATCH", path, fields, key=orders.admin)

    same = change(language="predicate", filter="(> total 9)")
    assert (same.status, same.json["version"]) == (200, 1)
    change(type="order").refused(400, "invalid_field")
    ready = change(language="ready", filter="shop::order")
    assert (ready.json["version"], ready.json["predicate"]) == (2, '(type "shop::order")')
    pairs = change(language="pairs", attributes={"total": 1})
    assert (pairs.json["version"], pairs.json["filter"]) == (3, None)
    assert pairs.json["attributes"] == {"total": 1}
    assert change(type="order").json["attributes"] == {"total": 1}


@pytest.mark.parametrize(
    ("text", "warning"),
    [
        ("(and (= a 1) (not (= a 1)))", "never_matches"),
        ("(and (= @type 'a) (= @type 'b))", "never_matches"),
        ("(or (= a 1) true)", "always_matches"),
    ],
)
def test_a_filter_that_is_probably_a_mistake_is_stored_with_a_warning(
    orders: LiveZone, text: str, warning: str
) -> None:
    [made] = orders.register(wanting("predicate", text))
    assert made["warnings"] == [warning]
