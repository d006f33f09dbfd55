"""Deliveries that are sent again, skipped or discarded by request."""

import threading
import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

from tests.acceptance.delivery.test_deliveries import dead_letter, finished
from tests.acceptance.eventhub.eventlog.test_retention import announced
from tests.live import Answer, LiveZone
from tests.sink import Called, Sink

EVENT = {"domain": "shop", "type": "order.placed"}


class Shop:
    """A zone with a stream and an endpoint, whose deliveries are acted on."""

    def __init__(self, zone: LiveZone, sink: Sink, **endpoint: Any) -> None:
        self.zone, self.sink = zone, sink
        self.path = f"/{zone.name}"
        zone.create_stream("orders")
        self.endpoint = zone.endpoint(sink.url(self.path), **endpoint)["id"]
        zone.register({"streams": ["orders"], "endpoint": self.endpoint})

    def emit(self, count: int, **more: Any) -> None:
        assert self.zone.emit("orders", [{**EVENT, **more}] * count).status == 200

    def finished(self, count: int, state: str = "delivered") -> list[dict[str, Any]]:
        """Return the deliveries in a state, the newest event first."""
        return finished(self.zone.hub, self.zone.admin, self.endpoint, count, state)

    def act(self, action: str, delivery: str, body: Any = None, *, key: str = "") -> Answer:
        path = f"/v1/deliveries/{delivery}/{action}"
        return self.zone.hub.call("POST", path, body, key=key or self.zone.admin)

    def shown(self, delivery: str) -> dict[str, Any]:
        answer = self.zone.hub.call("GET", f"/v1/deliveries/{delivery}", key=self.zone.admin)
        found: dict[str, Any] = answer.json
        return found

    def calls(self) -> list[Called]:
        return self.sink.at(self.path)


def until(holds: Callable[[], bool], what: str) -> None:
    end = time.monotonic() + 60
    while not holds():
        assert time.monotonic() < end, what
        time.sleep(0.02)


def test_a_dead_letter_is_sent_again_with_the_same_id_and_its_history(
    zone: LiveZone, sink: Sink
) -> None:
    shop = Shop(zone, sink)
    shop.emit(1)
    [item] = shop.finished(1)
    dead_letter(zone.hub, shop.endpoint, [item["sequence"]])
    answer = shop.act("resend", item["id"])
    assert answer.status == 200, answer
    assert answer.json["state"] == "pending" and answer.json["finished_at"] is None
    assert answer.json["resent_at"] > item["created_at"]
    assert answer.json["next_attempt_at"] == item["created_at"], "before all that came later"
    first, second = sink.wait(2, shop.path)
    assert first.id == second.id and first.body == second.body
    [delivered] = shop.finished(1)
    assert delivered["attempt_count"] == 16, "the history goes on"
    assert [one["number"] for one in shop.shown(item["id"])["attempts"]] == [16, 1]
    [event] = announced(zone, "delivery.resent")
    assert event.items() >= {
        "client": "tester", "endpoint": shop.endpoint, "stream": "orders", "sequence": 1,
        "force": False, "new_id": False,
    }.items()  # fmt: skip


def test_attempts_before_the_request_do_not_count(zone: LiveZone, sink: Sink) -> None:
    """It would be a dead letter again after one failure."""
    shop = Shop(zone, sink)
    shop.emit(1)
    [item] = shop.finished(1)
    dead_letter(zone.hub, shop.endpoint, [item["sequence"]])
    answers = iter([(500, {})])
    sink.answer = lambda _called: next(answers, (204, {}))
    assert shop.act("resend", item["id"]).status == 200
    sink.wait(3, shop.path)
    [delivered] = shop.finished(1)
    assert delivered["attempt_count"] == 17


def test_a_new_id_is_given_on_request(zone: LiveZone, sink: Sink) -> None:
    shop = Shop(zone, sink)
    shop.emit(1)
    [item] = shop.finished(1)
    for count in (2, 3):
        assert shop.act("resend", item["id"], {"force": True, "new_id": True}).status == 200
        sink.wait(count, shop.path)
        shop.finished(1)
    assert shop.act("resend", item["id"], {"force": True}).status == 200
    first, *others = (called.id for called in sink.wait(4, shop.path))
    assert others == [f"{first}_2", f"{first}_3", f"{first}_3"]


def test_what_was_delivered_or_has_expired_is_sent_again_only_with_force(
    zone: LiveZone, sink: Sink
) -> None:
    shop = Shop(zone, sink)
    shop.emit(1)
    [item] = shop.finished(1)
    problem = shop.act("resend", item["id"]).refused(409, "delivery_state")
    assert problem["state"] == "delivered" and "`force`" in problem["detail"]
    assert shop.act("resend", item["id"], {"force": True}).status == 200
    sink.wait(2, shop.path)
    shop.finished(1)

    expires_at = datetime.now(UTC) + timedelta(seconds=2)
    sink.answer = lambda _called: (503, {})
    shop.emit(1, expires_at=expires_at.isoformat())
    [expired] = shop.finished(1, "expired")
    shop.act("resend", expired["id"]).refused(409, "delivery_state")
    sink.answer = lambda _called: (204, {})
    before = len(shop.calls())
    assert shop.act("resend", expired["id"], {"force": True}).status == 200
    assert sink.wait(before + 1, shop.path)[-1].json["sequence"] == 2
    assert {each["sequence"] for each in shop.finished(2)} == {1, 2}


def test_a_skipped_delivery_frees_its_ordered_lane(zone: LiveZone, sink: Sink) -> None:
    shop = Shop(zone, sink, ordered=True)
    poison = lambda called: called.json["sequence"] == 2  # noqa: E731
    sink.answer = lambda called: (500, {}) if poison(called) else (204, {})
    shop.emit(4)
    shop.finished(1)
    until(lambda: any(map(poison, shop.calls())), "the poisoned event to be posted")
    blocking = next(one for one in shop.finished(3, "pending") if one["sequence"] == 2)
    shop.act("discard", blocking["id"]).refused(409, "delivery_state")

    def skipped() -> bool:
        """Return True once it was possible: not while it is posted."""
        answer = shop.act("skip", blocking["id"])
        assert answer.status in (200, 409), answer
        return answer.status == 200

    until(skipped, "the delivery to be skipped")
    assert shop.shown(blocking["id"])["state"] == "discarded"
    assert [one["sequence"] for one in shop.finished(3)] == [4, 3, 1]
    shop.act("skip", blocking["id"]).refused(409, "delivery_state")
    sink.answer = lambda _called: (204, {})
    assert shop.act("resend", blocking["id"]).status == 200
    assert [one["sequence"] for one in shop.finished(4)] == [4, 3, 2, 1]


def test_a_discarded_dead_letter_is_no_longer_listed(zone: LiveZone, sink: Sink) -> None:
    shop = Shop(zone, sink)
    shop.emit(2)
    shop.finished(2)
    dead_letter(zone.hub, shop.endpoint, [1, 2])
    [second, first] = shop.finished(2, "dead_lettered")
    answer = shop.act("discard", first["id"])
    assert (answer.status, answer.json["state"]) == (200, "discarded")
    assert [one["id"] for one in shop.finished(1, "dead_lettered")] == [second["id"]]
    listed = zone.hub.call("GET", "/v1/deliveries?state=discarded", key=zone.admin).json["items"]
    assert [one["id"] for one in listed] == [first["id"]]
    [event] = announced(zone, "delivery.discarded")
    assert event["sequence"] == 1


def test_force_ends_the_pause_of_a_failing_endpoint(zone: LiveZone, sink: Sink) -> None:
    shop = Shop(zone, sink)
    sink.answer = lambda _called: (500, {})
    shop.emit(8)
    pause = (
        "UPDATE circuits SET pause_s = 3000, retry_at = now() + interval '3000 s'"
        " WHERE endpoint_id = %s AND state = 'open' AND NOT EXISTS (SELECT FROM deliveries d"
        " WHERE d.endpoint_id = circuits.endpoint_id AND d.claim IS NOT NULL) RETURNING 1"
    )
    until(lambda: zone.hub.sql(pause, shop.endpoint) == [(1,)], "the circuit to open")
    sink.answer = lambda _called: (204, {})
    item = shop.finished(1, "pending")[0]
    before = len(shop.calls())
    until(lambda: shop.act("resend", item["id"]).status == 200, "its claim to be over")
    until(lambda: shop.act("resend", item["id"], {"force": True}).status == 200, "the same")
    probe = sink.wait(before + 1, shop.path)[before]
    assert probe.json["sequence"] == item["sequence"], "it is the probe"
    shop.finished(8)


def test_a_delivery_that_is_being_posted_is_not_changed(zone: LiveZone, sink: Sink) -> None:
    shop = Shop(zone, sink)
    goes_on = threading.Event()

    def hang(_called: Called) -> tuple[int, dict[str, str]]:
        goes_on.wait(10)
        return 204, {}

    sink.answer = hang
    shop.emit(1)
    sink.wait(1, shop.path)
    [item] = shop.finished(1, "pending")
    for action in ("resend", "skip"):
        answer = shop.act(action, item["id"])
        answer.refused(409, "delivery_in_progress")
        assert int(answer.headers["retry-after"]) > 0
    goes_on.set()
    shop.finished(1)


def test_what_cannot_be_sent_is_refused(zone: LiveZone, sink: Sink) -> None:
    shop = Shop(zone, sink)
    shop.emit(1)
    [item] = shop.finished(1)
    dead_letter(zone.hub, shop.endpoint, [1])
    other = zone.key("listen:orders", client="other")
    shop.act("resend", item["id"], key=other).refused(404, "unknown_delivery")
    deaf = zone.key("emit:*", client="tester")
    shop.act("resend", item["id"], key=deaf).refused(403, "forbidden")
    zone.hub.sql(
        "DELETE FROM events WHERE segment_id = %s AND sequence = 1", item["id"].split(".")[2]
    )
    zone.hub.sql(
        "UPDATE segments SET tier = 'dropped', removal_reason = 'age' WHERE id = %s",
        item["id"].split(".")[2],
    )
    shop.act("resend", item["id"]).refused(410, "gap")
    zone.hub.sql("UPDATE endpoints SET deleted_at = now() WHERE id = %s", shop.endpoint)
    shop.act("resend", item["id"]).refused(404, "unknown_endpoint")
