"""Live events: no loss and no repetition across broken connections."""

import pytest
from playwright.sync_api import Locator, expect

from tests.acceptance.eventhub.eventlog.test_log import drop
from tests.browser.desk import Desk


def numbered(first: int, last: int, **more: object) -> list[dict[str, object]]:
    return [
        {"domain": "shop", "type": "order.placed", "attributes": {"number": n, **more}}
        for n in range(first, last + 1)
    ]


def rows(desk: Desk) -> Locator:
    return desk.page.get_by_role("list", name="Events").get_by_role("button")


def shows(desk: Desk, *sequences: int) -> None:
    """Check that exactly these events are shown, the newest first."""
    numbers = rows(desk).locator("xpath=./span[1]")
    expect(numbers).to_have_text([f"{sequence:,}" for sequence in sequences])


def listening(desk: Desk, query: str = "") -> None:
    desk.zone.create_stream("orders", segment_events_max=4)
    desk.open(f"live?stream=orders{query}", "Live events")
    expect(desk.page.get_by_text("Live", exact=True)).to_be_visible()


def test_an_event_appears_when_it_is_emitted_and_opens_whole(desk: Desk) -> None:
    listening(desk)
    desk.zone.emit("orders", numbered(1, 1, city="Basel"))
    shows(desk, 1)
    expect(rows(desk).first).to_contain_text("order.placed")
    rows(desk).first.click()
    drawer = desk.page.get_by_role("dialog")
    expect(drawer).to_contain_text("orders 1")
    expect(drawer.get_by_label("the event", exact=True)).to_contain_text('"city": "Basel"')
    desk.page.keyboard.press("Escape")
    expect(drawer).to_be_hidden()


def test_listening_goes_on_after_the_web_process_was_restarted(desk: Desk) -> None:
    listening(desk)
    web, other = desk.hub.web
    desk.zone.emit("orders", numbered(1, 2))
    shows(desk, 2, 1)
    web.stop()
    try:
        expect(desk.page.get_by_text("Reconnecting.")).to_be_visible()
        desk.zone.emit("orders", numbered(3, 6), url=other.url)
    finally:
        web.start()
    shows(desk, 6, 5, 4, 3, 2, 1)
    desk.zone.emit("orders", numbered(7, 7))
    shows(desk, 7, 6, 5, 4, 3, 2, 1)


def test_a_pause_loses_nothing(desk: Desk) -> None:
    listening(desk)
    desk.zone.emit("orders", numbered(1, 1))
    shows(desk, 1)
    desk.button("Pause").click()
    expect(desk.page.get_by_text("Paused", exact=True)).to_be_visible()
    desk.zone.emit("orders", numbered(2, 6))
    shows(desk, 1)
    desk.button("Resume").click()
    shows(desk, 6, 5, 4, 3, 2, 1)


def test_only_what_the_filter_asks_for_is_shown(desk: Desk) -> None:
    desk.zone.create_stream("orders")
    for city, total in (("Basel", 5), ("Bern", 5), ("Basel", "5")):
        desk.zone.emit("orders", numbered(1, 1, total=total, address={"city": city}))
    page = desk.open("live?stream=orders", "Live events")
    page.get_by_text("Oldest stored").click()
    desk.button("Filter").click()
    for name, kind, value in (("address.city", "text", "Basel"), ("total", "number", "5")):
        desk.button("Add an attribute").click()
        page.get_by_label("Name of attribute").last.fill(name)
        page.get_by_label("Type of attribute").last.select_option(kind)
        page.get_by_label("Value of attribute").last.fill(value)
    desk.button("Listen").click()
    shows(desk, 1)
    page.reload()  # the address holds it all
    shows(desk, 1)
    for language, text in (
        ("predicate", "(not (= address.city 'Basel))"),
        ("eventbridge", '{"detail": {"address": {"city": ["Bern"]}}}'),
    ):
        page.get_by_role("combobox", name="Language").click()
        page.get_by_role("option", name=language).click()
        page.get_by_role("textbox", name="Filter").fill(text)
        desk.button("Listen").click()
        shows(desk, 2)
        page.reload()
        shows(desk, 2)
    query = page.url.split("?")[1]
    desk.open(f"streams/orders/events?{query}", "orders")
    shows(desk, 2)


@pytest.mark.parametrize(
    ("start", "expected"), [("oldest", range(10, 0, -1)), ("7", range(10, 6, -1))]
)
def test_a_listener_starts_as_requested(desk: Desk, start: str, expected: range) -> None:
    desk.zone.create_stream("orders", segment_events_max=4)
    desk.zone.emit("orders", numbered(1, 10))
    desk.open(f"live?stream=orders&from={start}", "Live events")
    shows(desk, *expected)


def test_what_is_no_longer_held_is_a_gap_in_the_list(desk: Desk) -> None:
    desk.zone.create_stream("orders", segment_events_max=4)
    desk.zone.emit("orders", numbered(1, 10))
    path = "/v1/streams/orders/segments"
    segments = desk.hub.call("GET", path, key=desk.zone.admin).json["items"]
    drop(desk.hub, segments[0]["uuid"])
    desk.open("live?stream=orders&from=3", "Live events")
    expect(desk.page.get_by_text("The next event has sequence 5.")).to_be_visible()
    shows(desk, 10, 9, 8, 7, 6, 5)


def test_a_thousand_events_are_kept_in_view_and_the_rest_is_counted(desk: Desk) -> None:
    listening(desk)
    for first in (1, 801):
        desk.zone.emit("orders", numbered(first, first + 799))
    expect(desk.page.get_by_text("1,600 received, the newest 1,000 shown")).to_be_visible()
    expect(rows(desk).first).to_contain_text("1,600")


def test_a_refused_listen_says_why(desk: Desk) -> None:
    desk.open("live?stream=nowhere", "Live events")
    expect(desk.page.get_by_text("This zone has no such stream")).to_be_visible()
    expect(desk.page.get_by_text("Ended", exact=True)).to_be_visible()
