"""Deliveries, dead letters and replay runs in the console: found, sent again, recovered."""

import re
from collections.abc import Iterator

import pytest
from playwright.sync_api import Page, expect

from tests.acceptance.delivery.test_deliveries import dead_letter, finished
from tests.acceptance.delivery.test_resend import until
from tests.browser.desk import Desk
from tests.browser.test_look import violations
from tests.live import LiveZone
from tests.sink import Called, Sink

EVENT = {"domain": "shop", "type": "order.placed"}


class Shop:
    """A zone whose stream `orders` goes to an endpoint at a sink."""

    def __init__(self, zone: LiveZone, sink: Sink) -> None:
        self.zone, self.sink = zone, sink
        self.path = f"/{zone.name}"
        zone.create_stream("orders")
        self.endpoint = zone.endpoint(sink.url(self.path))["id"]
        zone.register({"streams": ["orders"], "endpoint": self.endpoint})

    def fail(self, count: int, status: int = 500) -> None:
        """Emit events whose deliveries become dead letters with this status."""
        hub, admin = self.zone.hub, self.zone.admin
        self.emit(count)
        failed = [one["sequence"] for one in finished(hub, admin, self.endpoint, count)]
        dead_letter(hub, self.endpoint, failed)
        hub.sql(
            "UPDATE deliveries SET last_outcome = 'status', last_status = %s"
            " WHERE endpoint_id = %s AND sequence = ANY (%s)",
            *(status, self.endpoint, failed),
        )

    def emit(self, count: int) -> None:
        events = [{**EVENT, "attributes": {"n": n}} for n in range(count)]
        assert self.zone.emit("orders", events).status == 200

    def calls(self, count: int) -> list[Called]:
        return self.sink.wait(count, self.path)


@pytest.fixture
def shop(zone: LiveZone, sink: Sink) -> Iterator[Shop]:
    yield Shop(zone, sink)


def replay_on(page: Page) -> None:
    """Wait for the page of the started run, and for its end."""
    expect(page.get_by_role("heading", level=1, name=re.compile(r"Replay \d+"))).to_be_visible()
    expect(page.get_by_text("completed", exact=True)).to_be_visible()


def numbers(called: list[Called]) -> set[int]:
    return {each.json["event"]["attributes"]["n"] for each in called}


def test_a_dead_letter_is_found_and_sent_again(desk: Desk, shop: Shop) -> None:
    shop.fail(1)
    page = desk.open("dead-letters", "Dead letters")
    row = page.get_by_role("row").filter(has_text="status 500")
    expect(row).to_contain_text("tester")
    assert violations(page, "best-practice") == []
    row.get_by_role("button", name="Delivery of sequence 1").press("Enter")
    detail = page.get_by_role("dialog")
    expect(detail).to_contain_text("dead-lettered")
    expect(detail.get_by_role("button", name="Skip")).to_have_count(0)
    assert violations(page) == []
    detail.get_by_role("button", name="Resend", exact=True).click()
    first, second = shop.calls(2)
    assert first.id == second.id
    expect(detail).to_contain_text("Attempt 16")
    expect(detail.get_by_role("button", name="Force a resend")).to_be_visible()
    page.keyboard.press("Escape")
    expect(page.get_by_text("No dead-lettered deliveries")).to_be_visible()


def test_a_delivered_one_is_forced_under_a_new_id(desk: Desk, shop: Shop) -> None:
    shop.emit(1)
    shop.calls(1)
    page = desk.open(f"deliveries?endpoint={shop.endpoint}&state=delivered", "Deliveries")
    page.get_by_role("button", name="Delivery of orders 1").click()
    page.get_by_role("button", name="Force a resend").click()
    question = page.get_by_role("dialog", name="Force a resend?")
    question.get_by_label("New webhook-id").check()
    question.get_by_role("button", name="Resend").click()
    first, second = shop.calls(2)
    assert second.id == f"{first.id}_2"
    expect(question).to_be_hidden()


def test_a_dead_letter_is_discarded_and_a_pending_one_skipped(desk: Desk, shop: Shop) -> None:
    shop.fail(1)
    page = desk.open(f"deliveries?endpoint={shop.endpoint}", "Deliveries")
    row = page.get_by_role("row").filter(has_text="orders 1")
    row.get_by_role("button").click()
    page.get_by_role("button", name="Discard").click()
    question = page.get_by_role("dialog", name="Discard this delivery?")
    question.get_by_role("button", name="Discard").click()
    expect(row).to_contain_text("discarded")
    page.keyboard.press("Escape")

    shop.sink.answer = lambda _called: (503, {"retry-after": "600"})
    shop.emit(1)
    shop.calls(2)
    row = page.get_by_role("row").filter(has_text="orders 2")
    expect(row).to_contain_text("status 503")
    row.get_by_role("button").click()
    page.get_by_role("button", name="Skip").click()
    question = page.get_by_role("dialog", name="Skip this delivery?")
    question.get_by_role("button", name="Skip").click()
    expect(row).to_contain_text("discarded")


def test_deliveries_are_searched_and_the_address_holds_the_filter(desk: Desk, shop: Shop) -> None:
    shop.fail(1, 500)
    shop.fail(2, 503)
    shop.zone.emit("orders", {"domain": "shop", "type": "order.paid"})
    shop.calls(4)
    finished(shop.zone.hub, shop.zone.admin, shop.endpoint, 1)
    page = desk.open("deliveries", "Deliveries")
    page.get_by_role("combobox", name="Stream").click()
    page.get_by_role("option", name="orders").click()
    rows = page.get_by_role("table", name="Deliveries").get_by_role("button")
    expect(rows).to_have_count(4)
    desk.button("More filters").click()
    status = page.get_by_label("Status code")
    status.fill("503")
    status.press("Enter")
    expect(rows).to_have_count(2)
    assert "status=503" in page.url
    assert violations(page, "best-practice") == []
    page.reload()
    expect(page.get_by_label("Status code")).to_have_value("503")
    expect(rows).to_have_count(2)
    page.get_by_label("Status code").fill("")
    page.get_by_label("Status code").press("Enter")
    expect(rows).to_have_count(4)
    page.get_by_label("Event type").fill("order.paid")
    page.get_by_label("Event type").press("Enter")
    expect(rows).to_have_count(1)
    expect(rows).to_have_text("orders 4")
    page.get_by_label("Created until").fill("2020-01-01T00:00:00")
    page.get_by_label("Created until").press("Enter")
    expect(page.get_by_text("No matching deliveries")).to_be_visible()
    page.get_by_label("Sequence").fill("2")
    page.get_by_label("Sequence").press("Enter")
    expect(rows).to_have_text("orders 2")
    assert page.url.endswith("deliveries?stream=orders&sequence=2")
    desk.button("Clear").click()
    expect(page.get_by_role("heading", name="Choose an endpoint or a stream")).to_be_visible()


def test_a_group_is_previewed_and_recovered(desk: Desk, shop: Shop) -> None:
    shop.fail(2, 500)
    shop.fail(3, 503)
    page = desk.open("dead-letters", "Dead letters")
    rows = page.get_by_role("table", name="Dead letters").get_by_role("row")
    expect(rows.nth(1)).to_contain_text("status 503")
    page.get_by_role("link", name=re.compile("Recover group .* status 503")).click()
    expect(desk.heading("New replay")).to_be_visible()
    expect(page.get_by_label("Status code")).to_have_value("503")
    expect(desk.button("Start the run")).to_have_count(0)
    desk.button("Preview").press("Enter")
    expect(page.get_by_role("region", name="To be sent")).to_contain_text("3")
    assert violations(page, "best-practice") == []
    rate = page.get_by_label("Rate")
    rate.fill("1000")
    expect(desk.button("Start the run")).to_have_count(0)  # it was previewed at another rate
    desk.button("Preview").click()
    desk.button("Start the run").click()
    replay_on(page)
    expect(page.get_by_role("region", name="Sent")).to_contain_text("3")
    ids = [called.id for called in shop.calls(8)]
    assert set(ids[5:]) == set(ids[2:5])
    page.get_by_role("link", name="Dead letters").click()
    expect(rows).to_have_count(2)
    expect(rows.nth(1)).to_contain_text("status 500")


def test_a_replay_is_previewed_started_paused_and_completes(desk: Desk, shop: Shop) -> None:
    shop.emit(30)
    shop.calls(30)
    copy = f"{shop.path}/copy"
    endpoint = shop.zone.endpoint(shop.sink.url(copy))["id"]
    page = desk.open("replays", "Replays")
    expect(page.get_by_text("No replays")).to_be_visible()
    page.get_by_role("link", name="New replay").click()
    expect(desk.button("Preview")).to_be_disabled()
    page.get_by_role("combobox", name="Endpoint").click()
    page.get_by_role("option", name=f"{endpoint} · ").click()
    page.get_by_role("combobox", name="Streams").click()
    page.get_by_role("option", name="orders").click()
    page.keyboard.press("Escape")
    page.get_by_role("radiogroup", name="Events").get_by_text("Of a filter").click()
    page.get_by_role("textbox", name="Filter").fill("(< n 20)")
    page.get_by_label("Rate").fill("1")
    desk.button("Preview").click()
    expect(page.get_by_role("region", name="To be sent")).to_contain_text("20")
    expect(page.get_by_role("region", name="Duration")).to_contain_text("20 seconds")
    expect(page.get_by_role("link", name="orders 1", exact=True)).to_be_visible()
    desk.button("Start the run").click()
    expect(page.get_by_text("running", exact=True)).to_be_visible()
    desk.button("Pause").press("Enter")
    expect(page.get_by_text("paused", exact=True)).to_be_visible()
    expect(desk.button("Resume")).to_be_visible()
    assert violations(page, "best-practice") == []
    desk.button("Cancel").click()
    question = page.get_by_role("dialog", name="Cancel replay")
    question.get_by_role("button", name="Cancel the run").click()
    expect(page.get_by_text("cancelled", exact=True)).to_be_visible()
    expect(desk.button("Resume")).to_have_count(0)

    page.get_by_role("link", name="Replays").first.click()
    expect(page.get_by_role("row").filter(has_text="cancelled")).to_contain_text("of 30")
    desk.open(f"replays/new?endpoint={endpoint}&stream=orders&language=predicate"
              "&filter=(>= n 20)", "New replay")  # fmt: skip
    desk.button("Preview").click()
    expect(page.get_by_role("region", name="To be sent")).to_contain_text("10")
    desk.button("Start the run").click()
    replay_on(page)
    expect(page.get_by_role("region", name="Sent")).to_contain_text("10")
    expect(page.get_by_role("progressbar", name="Progress of the run")).to_have_attribute(
        "aria-valuenow", "100"
    )
    # a run is completed when its deliveries are written; workers post them
    until(lambda: numbers(shop.sink.at(copy)) >= set(range(20, 30)), "the replayed events arrive")


def test_a_duration_is_read_in_an_answer_with_long_numbers(desk: Desk, shop: Shop) -> None:
    stream = "orders-2026112600000001"  # more digits than a double has
    shop.zone.create_stream(stream)
    assert shop.zone.emit(stream, [EVENT] * 2).status == 200
    page = desk.open(f"replays/new?endpoint={shop.endpoint}&stream={stream}", "New replay")
    page.get_by_label("Rate").fill("1")
    desk.button("Preview").click()
    expect(page.get_by_role("region", name="To be sent")).to_contain_text("2")
    expect(page.get_by_role("region", name="Duration")).to_contain_text("2 seconds")


def test_a_mistake_in_a_replay_is_shown_at_its_field(desk: Desk, shop: Shop) -> None:
    page = desk.open(
        f"replays/new?endpoint={shop.endpoint}&stream=orders&from=nothing:1", "New replay"
    )
    desk.button("Preview").click()
    expect(page.get_by_label("From: cursor")).to_have_attribute("aria-invalid", "true")
    desk.open("replays/999999", "Replay 999999")
    expect(page.get_by_text("There is no such replay in the zone")).to_be_visible()
