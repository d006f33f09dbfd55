"""Operational webhooks: a registration on `system` has another endpoint notified of failures."""

from typing import Any

from tests.acceptance.eventhub.eventlog.test_retention import wait_for
from tests.live import LiveHub, LiveZone
from tests.sink import Called, Sink

EVENT = {"domain": "shop", "type": "order.placed"}


def test_an_endpoint_is_notified_of_the_failures_of_another_but_not_of_its_own(
    hub: LiveHub, zone: LiveZone, sink: Sink
) -> None:
    bad, good = f"/{zone.name}/bad", f"/{zone.name}/good"

    def answer(called: Called) -> tuple[int, dict[str, str]]:
        return (500 if called.path == bad else 204), {}

    def notified() -> list[dict[str, Any]]:
        return [called.json["event"] for called in sink.at(good)]

    sink.answer = answer
    zone.create_stream("orders")
    failing, watching = (zone.endpoint(sink.url(path))["id"] for path in (bad, good))
    zone.register({"streams": ["orders"], "endpoint": failing})
    opened = {"streams": ["system"], "domain": "eventhub", "type": "endpoint.circuit_opened"}
    zone.register({**opened, "endpoint": watching}, {**opened, "endpoint": failing})
    zone.emit("orders", [EVENT] * 20)
    wait_for(lambda: bool(notified()), "the operational event")
    [event] = notified()
    attributes = event["attributes"]
    assert attributes.items() >= {
        "zone": zone.name, "client": "tester", "endpoint": failing, "status": 500,
    }.items()  # fmt: skip
    assert attributes["event"]["stream"] == "orders"
    found = hub.call("GET", f"/v1/endpoints/{failing}", key=zone.admin).json["circuit"]
    assert found["state"] in ("open", "half_open")
    assert found["failures"] >= 5
    assert found["since"] >= attributes["since"]
    sink.answer = lambda _called: (204, {})  # what is pending is claimed
    path = f"/v1/deliveries?endpoint={failing}&state=cancelled"
    wait_for(
        lambda: len(hub.call("GET", path, key=zone.admin).json["items"]) == 1,
        "its own is cancelled",
    )
    sent = {called.json["stream"] for called in sink.at(bad)}
    assert sent == {"orders"}
