"""What a stream holds, in pages, with one event in detail."""

from datetime import UTC, datetime

import pytest
from playwright.sync_api import Locator, Page, expect

from tests.browser.desk import Desk

LARGE = 9007199254740993  # no double holds it


def numbered(first: int, last: int) -> list[dict[str, object]]:
    return [
        {"domain": "shop", "type": "order.placed", "attributes": {"n": n}}
        for n in range(first, last + 1)
    ]


def rows(page: Page) -> Locator:
    return page.get_by_role("list", name="Events, newest first").get_by_role("listitem")


def test_pages_lead_back_to_the_oldest_and_on_to_what_is_new(desk: Desk) -> None:
    desk.zone.create_stream("orders", segment_events_max=60)
    desk.zone.emit("orders", numbered(1, 150))
    page = desk.open("streams/orders", "orders")
    expect(rows(page).first).to_contain_text("n=150")
    expect(page.get_by_text("100 shown of 1 to 150")).to_be_visible()
    desk.button("Older").click()
    expect(page.get_by_text("150 shown of 1 to 150")).to_be_visible()
    expect(page.get_by_text("Oldest retained event reached.")).to_be_visible()
    desk.zone.emit("orders", numbered(151, 152))
    desk.button("Newer").click()
    expect(rows(page).first).to_contain_text("n=152")
    expect(page.get_by_text("152 shown")).to_be_visible()


def test_a_place_leads_both_ways(desk: Desk) -> None:
    desk.zone.create_stream("orders", segment_events_max=4)
    desk.zone.emit("orders", numbered(1, 10))
    page = desk.open("streams/orders", "orders")
    page.get_by_text("Sequence", exact=True).click()
    page.get_by_label("From sequence").fill("7")
    desk.button("Show").click()
    expect(rows(page)).to_have_count(4)
    expect(rows(page).last).to_contain_text("n=7")
    assert page.url.endswith("?from=7")
    page.reload()
    expect(rows(page)).to_have_count(4)
    desk.button("Older").click()
    expect(rows(page)).to_have_count(10)
    expect(rows(page).last).to_contain_text("n=1")


def test_a_time_leads_to_what_was_appended_since(desk: Desk) -> None:
    desk.zone.create_stream("orders")
    desk.zone.emit("orders", numbered(1, 3))
    [[after]] = desk.hub.sql("SELECT clock_timestamp()")
    desk.zone.emit("orders", numbered(4, 5))
    at = after.astimezone(UTC).isoformat().replace("+00:00", "Z")
    page = desk.open(f"streams/orders/events?from={at}", "orders")
    expect(rows(page)).to_have_count(2)
    expect(rows(page).last).to_contain_text("n=4")
    shown = page.get_by_label("From time").input_value()
    assert datetime.fromisoformat(shown).minute == after.minute


def test_filters_are_in_the_address(desk: Desk) -> None:
    desk.zone.create_stream("orders")
    desk.zone.define_channel("alarms", 3)
    desk.zone.emit("orders", numbered(1, 3))
    special = {"domain": "shop", "type": "order.failed", "channels": ["alarms"]}
    desk.zone.emit("orders", [special, {**special, "type": "order.placed"}])
    page = desk.open("streams/orders", "orders")
    expect(rows(page)).to_have_count(5)
    choose(desk, "alarms", "Show")
    expect(rows(page)).to_have_count(2)
    page.get_by_label("Type", exact=True).fill("order.failed")
    desk.button("Show").click()
    expect(rows(page)).to_have_count(1)
    page.reload()
    expect(rows(page)).to_have_count(1)
    expect(rows(page)).to_contain_text("order.failed")


def test_one_event_is_shown_whole_and_exactly(desk: Desk) -> None:
    desk.zone.create_stream("orders")
    desk.zone.define_channel("alarms", 3)
    event = {"domain": "shop", "type": "order.failed", "channels": ["alarms"]}
    desk.zone.emit("orders", {**event, "attributes": {"large": LARGE, "who": "O'Neill"}})
    page = desk.open("streams/orders", "orders")
    expect(rows(page).first).to_contain_text(f"large={LARGE}")
    rows(page).first.get_by_role("button").click()
    detail = page.get_by_role("dialog", name="orders 1")
    expect(detail.get_by_label("the event", exact=True)).to_contain_text(str(LARGE))
    expect(detail).to_contain_text("alarms")
    path = "/v1/streams/orders/events/1"
    stored = desk.hub.call("GET", path, key=desk.zone.admin).json
    expect(detail).to_contain_text(stored["signature"])
    commands = detail.get_by_label("Commands", exact=True)
    expect(commands.first).to_contain_text(path)
    expect(commands.last).to_contain_text("O'\\''Neill")
    page.reload()  # the event is in the address
    expect(detail).to_be_visible()
    page.keyboard.press("Escape")
    expect(detail).to_be_hidden()


@pytest.mark.req("EMC-21")
def test_channels_are_shown_and_chosen_by_their_names(desk: Desk) -> None:
    """On the page of channels, in an event's details, and in the filters of a stream and of live
    events; the masks are nowhere but on the page of channels.
    """
    bits = {"disk": 40, "firewall": 41, "compute-node": 42, "security": 62}
    desk.zone.create_stream("orders")
    for name, bit in bits.items():
        desk.zone.define_channel(name, bit)
    alarms: list[list[str]] = [*([name] for name in bits), ["disk", "security"]]
    for number, channels in enumerate(alarms, 1):
        desk.zone.emit(
            "orders", [{**one, "channels": channels} for one in numbered(number, number)]
        )
    page = desk.open("channels", "Channels")
    for name, bit in bits.items():
        row = page.get_by_role("row").filter(has_text=name)
        expect(row).to_contain_text(str(1 << bit))
    for place, heading in (("streams/orders", "orders"), ("live?stream=orders", "Live events")):
        page = desk.open(place, heading)
        if heading == "Live events":
            page.get_by_text("Oldest stored").click()
        choose(desk, "security", "Listen" if heading == "Live events" else "Show")
        found = page.get_by_role("list", name="Events").get_by_role("button")
        expect(found).to_have_count(2)
        for row, names in zip(found.all(), (["disk", "security"], ["security"]), strict=True):
            row.click()
            detail = page.get_by_role("dialog")
            for name in bits:
                expect(detail.get_by_text(name, exact=True)).to_have_count(int(name in names))
            for mask in ("4611686018427387904", "4611687117939015680"):
                expect(detail).not_to_contain_text(mask)
            page.keyboard.press("Escape")
            expect(detail).to_be_hidden()


def choose(desk: Desk, channel: str, button: str) -> None:
    """Filter the page's events by a channel."""
    desk.button("Filter").click()
    desk.page.get_by_role("combobox", name="Channels").click()
    desk.page.get_by_role("option", name=channel).click()
    desk.page.keyboard.press("Escape")
    desk.button(button).click()


def test_an_empty_stream_tells_how_to_fill_it(desk: Desk) -> None:
    desk.zone.create_stream("orders")
    page = desk.open("streams/orders", "orders")
    expect(page.get_by_role("heading", name="No event yet")).to_be_visible()
    expect(page.get_by_label("Commands", exact=True)).to_contain_text("/v1/streams/orders/events")
    page.get_by_role("tab", name="Live").click()
    live = page.get_by_role("region", name="orders").get_by_text("Live", exact=True)
    expect(live).to_be_visible()
    desk.zone.emit("orders", numbered(1, 1))
    expect(rows(page)).to_have_count(1)


def test_a_stream_that_is_not_there_says_so(desk: Desk) -> None:
    page = desk.open("streams/nowhere", "nowhere")
    expect(page.get_by_text("There is no such stream in the zone")).to_be_visible()
