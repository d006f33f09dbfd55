"""Filters on the body of events, on streams with the policy `filterable_data`: the same events by
every route, and warnings where a filter cannot match.
"""

from typing import Any

import pytest
from eventhub_client.sync import SyncHubClient

from eventhub.base import limits
from tests.acceptance.eventhub.eventlog.test_archive import archive
from tests.acceptance.match_indexes import build, is_used
from tests.acceptance.registrations.test_explain import explained, matches, post
from tests.acceptance.wire import session
from tests.integration.forward_world import eventually
from tests.live import LiveHub, LiveZone
from tests.sink import Sink

FILTERS: dict[str, dict[str, Any]] = {
    "predicate": {"filter": '(and (> data.total 50) (= data.country "NO"))'},
    "ready": {"filter": "shop::order | $data.total > 50 and $data.country == 'NO'"},
    "eventbridge": {
        "filter": {"data": {"total": [{"numeric": [">", 50]}], "country": ["NO"]}},
    },
    "pairs": {"attributes": {"data.country": "NO", "data.total": 60}},
}
BODIES: list[Any] = [
    {"total": 60, "country": "NO"},
    {"total": 60, "country": "SE"},
    {"total": 40, "country": "NO"},
    [{"total": 60, "country": "NO"}, {"total": 7}],
    "NO",
]
MATCHED = [1, 4]


def wanting(language: str, **more: Any) -> dict[str, Any]:
    named = {} if language == "pairs" else {"language": language}
    return {"streams": ["orders"], **named, **FILTERS[language], **more}


def orders_of(bodies: list[Any]) -> list[dict[str, Any]]:
    return [{"domain": "shop", "type": "order", "body": body} for body in bodies]


@pytest.fixture
def orders(zone: LiveZone) -> LiveZone:
    zone.create_stream("orders", filterable_data=True, segment_events_max=3, archive=True)
    return zone


@pytest.mark.req("RDY-10")
async def test_every_route_matches_the_same_events_by_their_bodies(
    hub: LiveHub, orders: LiveZone, sink: Sink
) -> None:
    """Callbacks, listeners by registration and with a filter of their own, dry runs, explanations
    and histories, in every language.
    """
    endpoint = orders.endpoint(sink.url(f"/{orders.name}"))["id"]
    made = orders.register(*(wanting(each, endpoint=endpoint) for each in FILTERS))
    assert [one["warnings"] for one in made] == [[]] * len(FILTERS)
    ids = [one["id"] for one in made]
    async with session(hub, orders.admin) as named, session(hub, orders.admin) as own:
        await named.listen("orders", registrations=ids)
        await own.listen("orders", language="predicate", **FILTERS["predicate"])
        assert orders.emit("orders", orders_of(BODIES)).status == 200
        for each in (named, own):
            assert [one["sequence"] for one in await each.events(2)] == MATCHED
    called = [one.json for one in sink.wait(2, f"/{orders.name}")]
    called.sort(key=lambda one: one["sequence"])
    assert [(one["sequence"], sorted(one["registrations"])) for one in called] == [
        (sequence, sorted(ids)) for sequence in MATCHED
    ]
    assert [one["event"]["body"] for one in called] == [BODIES[0], BODIES[3]]
    for language, filter in FILTERS.items():
        draft = {"language": language, **filter} if language != "pairs" else filter
        run = post(orders, "dry-run", stream="orders", samples=9, **draft).json
        assert (run["looked_at"], run["matched"]) == (5, 2), language
        for sequence in range(1, 6):
            found = post(orders, "explain", stream="orders", sequence=sequence, **draft).json
            assert found["matches"] is (sequence in MATCHED), (language, sequence)
        given = post(orders, "explain", event=orders_of(BODIES)[0], **draft).json
        assert given["matches"], language
    for id in ids:
        assert explained(orders, id, "orders", 4).json["matches"]
        assert not explained(orders, id, "orders", 2).json["matches"]
    assert [one["id"] for one in matches(orders, "orders", 4)["matches"]] == ids
    near = matches(orders, "orders", 2)
    failed = [one["failed"][0]["predicate"] for one in near["nearest"]]
    assert near["matched"] == 0 and '(= data.country "NO")' in failed
    archive(orders, "orders")
    with SyncHubClient(hub.url, orders.admin) as client:
        for language, filter in FILTERS.items():
            read = client.history("orders", language=language, **filter)
            assert [one.sequence for one in read] == MATCHED, language


@pytest.mark.parametrize("strategy", ["auto", "counting"])
def test_a_forwarder_matches_bodies_in_memory_and_by_an_index(
    hub: LiveHub, zone: LiveZone, sink: Sink, strategy: str
) -> None:
    zone.create_stream("orders", filterable_data=True, matching=strategy)
    endpoint = zone.endpoint(sink.url(f"/{zone.name}"))["id"]
    zone.register(wanting("predicate", endpoint=endpoint))
    zone.emit("orders", orders_of(BODIES))
    sink.wait(2, f"/{zone.name}")
    if strategy == "auto":
        manifest = build(hub, zone)
        eventually(lambda: is_used(hub, manifest), "the index is used")
    zone.emit("orders", orders_of(BODIES))
    called = [one.json["sequence"] for one in sink.wait(4, f"/{zone.name}")]
    assert sorted(called) == [1, 4, 6, 9]


def until_known(zone: LiveZone, *, policy: bool) -> None:
    """Wait until the web process knows the policy: it refuses larger bodies than without it."""
    large = orders_of(["x" * limits.DATA_BYTES_MAX])
    eventually(lambda: (zone.emit("orders", large).status == 200) is not policy, "policy")


def test_the_policy_applies_to_events_that_are_emitted_while_it_is_on(zone: LiveZone) -> None:
    """A filter on `data` finds the events of that time only, also later."""
    zone.create_stream("orders")
    path = "/v1/streams/orders"
    for policy in (False, True, False):
        answer = zone.hub.call("PUT", path, {"filterable_data": policy}, key=zone.admin)
        assert (answer.status, answer.json["filterable_data"]) == (200, policy)
        until_known(zone, policy=policy)
        zone.emit("orders", orders_of(BODIES[:1]))
    filter = {"language": "predicate", "filter": "(= data.total 60)"}
    assert post(zone, "dry-run", stream="orders", **filter).json["matched"] == 1


def test_a_cloud_event_is_matched_by_its_data(zone: LiveZone) -> None:
    zone.create_stream("orders", filterable_data=True)
    event = {
        "specversion": "1.0",
        "id": "7",
        "source": "/shop",
        "type": "order.placed",
        "subject": "order-7",
        "data": {"total": 60},
    }
    headers = {"content-type": "application/cloudevents+json"}
    answer = zone.hub.call(
        "POST", "/v1/streams/orders/events", event, key=zone.admin, headers=headers
    )
    assert answer.status == 200, answer
    filter = '(and (= data.total 60) (= @type "order.placed") (= @key "order-7") (= @id "7"))'
    run = post(zone, "dry-run", stream="orders", language="predicate", filter=filter).json
    assert run["matched"] == 1


def test_a_body_beyond_the_bounds_is_refused(orders: LiveZone) -> None:
    many = {"a": list(range(limits.DATA_VALUES_MAX))}
    problem = orders.emit("orders", orders_of([{}, many])).refused(400, "field_too_long")
    assert problem["position"] == {"index": 1, "field": "body"}
    assert problem["values_max"] == limits.DATA_VALUES_MAX
    text = {"domain": "d", "type": "t", "body_base64": "eA==", "content_type": "text/plain"}
    assert orders.emit("orders", text).status == 200


def test_a_quenched_stream_cannot_have_the_policy(zone: LiveZone) -> None:
    body = {"filterable_data": True, "quench": True}
    refused = zone.hub.call("PUT", "/v1/streams/both", body, key=zone.admin)
    assert refused.refused(400, "invalid_field")["position"] == {"field": "quench"}


def test_a_filter_on_a_stream_without_the_policy_is_warned_of(orders: LiveZone) -> None:
    """When it is checked, registered, changed and read; on any of its streams."""
    orders.create_stream("plain")
    both, filter = ["orders", "plain"], {"language": "predicate", **FILTERS["predicate"]}
    assert post(orders, "check", streams=["orders"], **filter).json["warnings"] == []
    assert post(orders, "check", **filter).json["warnings"] == []  # streams unknown
    expected = ["data_not_filterable"]
    assert post(orders, "check", streams=both, **filter).json["warnings"] == expected
    [made] = orders.register({"streams": both, **filter})
    assert made["warnings"] == expected
    path = f"/v1/registrations/{made['id']}"
    call, key = orders.hub.call, orders.admin
    assert call("GET", path, key=key).json["warnings"] == expected
    change = {"streams": ["orders"]}
    assert call("PATCH", path, change, key=key).json["warnings"] == []
    change = {"streams": both, "language": "predicate", "filter": "(= total 60)"}
    assert call("PATCH", path, change, key=key).json["warnings"] == []


def test_an_attribute_that_no_declared_type_has_is_warned_of(orders: LiveZone) -> None:
    def declare(name: str, properties: dict[str, Any], **more: Any) -> None:
        body = {"schema": {"type": "object", "properties": properties}, **more}
        path = f"/v1/types/shop/{name}"
        assert orders.hub.call("PUT", path, body, key=orders.admin).status in (200, 201)

    declare("order", {"total": {"type": "number"}, "address": {"type": "object"}})
    declare("gift", {"card": {"type": "string"}}, parent="order")
    for filter, warnings in (
        ('(and (type "shop::order") (> totl 5))', ["unknown_attribute"]),
        ('(and (type "shop::order") (= address.town "Oslo"))', []),
        ('(and (type "shop::order") (= card "x"))', []),  # of a subtype
        ('(and (type "shop::gift") (> total 5))', []),  # of a supertype
        ('(and (type "shop::order") (> data.totl 5))', []),  # the body has no schema
        ('(and (type "shop::other") (> totl 5))', []),  # not declared
        ("(> totl 5)", []),  # of any type
    ):
        draft = {"language": "predicate", "filter": filter}
        assert post(orders, "check", **draft).json["warnings"] == warnings, filter
        [made] = orders.register({"streams": ["orders"], **draft})
        assert made["warnings"] == warnings, filter
    pairs = {"domain": "shop", "type": "order", "attributes": {"totl": 5}}
    assert post(orders, "check", **pairs).json["warnings"] == ["unknown_attribute"]
