"""Examples of types, sent to an endpoint through a worker."""

from typing import Any

from tests.acceptance.delivery.test_deliveries import finished
from tests.live import Answer, LiveZone
from tests.sink import Sink

SCHEMA = {
    "properties": {"total": {"type": "integer", "minimum": 5}, "currency": {"enum": ["EUR"]}},
    "required": ["total", "currency"],
}


def send(zone: LiveZone, endpoint: int, body: dict[str, Any], *, key: str = "") -> Answer:
    path = f"/v1/endpoints/{endpoint}/examples"
    return zone.hub.call("POST", path, body, key=key or zone.admin)


def test_an_example_is_posted_signed_and_its_attempts_are_shown(zone: LiveZone, sink: Sink) -> None:
    path = f"/{zone.name}"
    owner = zone.key("listen:orders", client="owner")
    made = zone.endpoint(sink.url(path), key=owner, ordered=True)
    declared = zone.hub.call(
        "PUT", "/v1/types/shop/order.placed", {"schema": SCHEMA}, key=zone.admin
    )
    assert declared.status == 201, declared
    answer = send(zone, made["id"], {"domain": "shop", "type": "order.placed"}, key=owner)
    assert (answer.status, answer.json["state"]) == (202, "pending"), answer
    [called] = sink.wait(1, path)
    assert called.verified(made["secret"])
    event = called.json["event"]
    assert event["attributes"] == {"total": 5, "currency": "EUR"}
    assert event["environment"] == {"example": "true"}
    assert (event["version"], event["destinations"]) == ("1", ["owner"])
    assert (called.json["stream"], called.json["registrations"]) == ("eventhub.examples", [])
    finished(zone.hub, zone.admin, made["id"], 1)
    shown = zone.hub.call("GET", f"/v1/deliveries/{answer.json['id']}", key=owner).json
    assert shown["state"] == "delivered"
    assert [one["outcome"] for one in shown["attempts"]] == ["delivered"]

    wrong = {"domain": "shop", "type": "order.placed", "attributes": {"total": 1}}
    send(zone, made["id"], wrong, key=owner).refused(422, "type_violation")
    other = {"domain": "shop", "type": "anything", "attributes": {"n": 1}}
    assert send(zone, made["id"], other).status == 202
    assert sink.wait(2, path)[1].json["event"]["attributes"] == {"n": 1}


def test_a_type_that_asks_for_much_or_little_makes_a_small_example(
    zone: LiveZone, sink: Sink
) -> None:
    """A process of the hub tried to make 10 million items, or failed on a choice of `true`."""
    endpoint = zone.endpoint(sink.url(f"/{zone.name}"))["id"]
    parts = {"large": {"type": "array", "minItems": 10_000_000}, "open": {"oneOf": [True]}}
    for name, part in parts.items():
        schema = {"properties": {"part": part}, "required": ["part"]}
        declared = zone.hub.call(
            "PUT", f"/v1/types/shop/{name}", {"schema": schema}, key=zone.admin
        )
        assert declared.status == 201, declared
    large = send(zone, endpoint, {"domain": "shop", "type": "large"})
    large.refused(422, "type_violation")
    assert send(zone, endpoint, {"domain": "shop", "type": "open"}).status == 202


def test_an_endpoint_with_a_registration_of_the_examples_gets_none_twice(
    zone: LiveZone, sink: Sink
) -> None:
    """A forwarder would write the same delivery, and fail."""
    endpoint = zone.endpoint(sink.url(f"/{zone.name}"))["id"]
    body = {"domain": "shop", "type": "order.placed"}
    assert send(zone, endpoint, body).status == 202
    [made] = zone.register({"streams": ["eventhub.examples"], "endpoint": endpoint})
    send(zone, endpoint, body).refused(409, "conflict")
    path = f"/v1/registrations/{made['id']}"
    assert zone.hub.call("DELETE", path, key=zone.admin).status == 204
    assert send(zone, endpoint, body).status == 202
    finished(zone.hub, zone.admin, endpoint, 2)
    assert len(sink.at(f"/{zone.name}")) == 2
