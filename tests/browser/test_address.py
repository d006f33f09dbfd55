"""Unreadable parameters of an address: the page names them and shows nothing instead."""

import re

from playwright.sync_api import WebSocket, expect

from tests.browser.desk import Desk
from tests.sink import Called, Sink

LARGE = "99999999999999999999"


# of two neighbours, which are pages of one window, no heading is the same
UNREADABLE = (
    ("deliveries?endpoint=abc", "Deliveries", "Endpoint abc:", "Deliveries"),
    ("dead-letters?state=pending", "Dead letters", "State pending:", "Dead letters"),
    (f"deliveries?endpoint={LARGE}", "Deliveries", f"Endpoint {LARGE}:", "Deliveries"),
    ("replays?state=zzz", "Replays", "State zzz:", "Replays"),
    ("deliveries?state=zzz", "Deliveries", "State zzz:", "Deliveries"),
    ("replays/new?endpoint=abc", "New replay", "Endpoint abc:", "none"),
    ("deliveries?sequence=1", "Deliveries", "Sequence 1:", "Deliveries"),
    ("registrations?endpoint=abc", "Registrations", "Endpoint abc:", "Registrations"),
    ("deliveries?stream=orders&sequence=1&type=a", "Deliveries", "Type a:", "Deliveries"),
    ("groups?group=abc", "Groups", "Group abc:", "Groups"),
    ("registrations?suspended=no", "Registrations", "Suspended no:", "Registrations"),
    ("filters?language=abc", "Filters", "Language abc:", "none"),
    ("deliveries?stream=orders&since=monday", "Deliveries", "Since monday:", "Deliveries"),
    ("live?stream=orders&language=eventbridge&filter={", "Live events", "Filter {:", "none"),
)
UNREADABLE_REQUESTS = (
    ("stream=orders&from=-5", "From -5:"),
    (f"stream=orders&from={LARGE}", f"From {LARGE}:"),
    ("stream=orders&attributes={bad", "Attributes {bad:"),
    ("attributes=[]", "Attributes []:"),
)


def test_a_list_of_something_unreadable_is_not_shown(desk: Desk) -> None:
    desk.zone.create_stream("orders")
    desk.zone.register({"streams": ["orders"], "callback": "https://example.org/hook"})
    desk.zone.emit("orders", {"domain": "shop", "type": "order.placed"})
    page = desk.open("overview", "Overview")
    for path, heading, fault, table in UNREADABLE:
        page = desk.turn_to(path, heading)
        expect(page.get_by_role("alert")).to_contain_text(fault)
        if "?endpoint=" in path and "new" not in path:
            field = page.get_by_role("combobox", name="endpoint")
            expect(field).to_have_attribute("aria-invalid", "true")
        page.wait_for_load_state("networkidle")
        expect(page.get_by_role("table", name=table)).to_have_count(0)


def test_an_unreadable_listen_request_opens_no_connection(desk: Desk) -> None:
    desk.zone.create_stream("orders")
    sockets: list[str] = []

    def opened(socket: WebSocket) -> None:
        sockets.append(socket.url)

    desk.page.on("websocket", opened)
    for query, fault in UNREADABLE_REQUESTS:
        sockets.clear()
        page = desk.open(f"live?{query}", "Live events")
        expect(page.get_by_role("alert")).to_contain_text(fault)
        if "from=" in query:
            field = page.get_by_label("From sequence")
            expect(field).to_have_attribute("aria-invalid", "true")
        else:
            expect(page.get_by_text("Not a JSON object")).to_have_count(2)  # at the field too
        page.wait_for_load_state("networkidle")
        expect(page.get_by_text("Live", exact=True)).to_have_count(0)
        assert sockets == []
        desk.button("Listen").click()  # what the form holds then
        if "from=" not in query:
            expect(page.get_by_text("Live", exact=True)).to_be_visible()
    desk.page.remove_listener("websocket", opened)


def test_an_open_delivery_is_in_the_address_and_its_response_turns_no_text(
    desk: Desk, sink: Sink
) -> None:
    def answer(_called: Called) -> tuple[int, dict[str, str]]:
        return 200, {"x-turned": "a\u202eb".encode().decode("latin-1")}

    sink.answer = answer
    desk.zone.create_stream("orders")
    [made] = desk.zone.register({"streams": ["orders"], "callback": sink.url("/turned")})
    event = {"domain": "shop", "type": "order.placed", "attributes": {"name": "c\u202ed"}}
    desk.zone.emit("orders", event)
    sink.wait(1, "/turned")
    page = desk.open(f"deliveries?endpoint={made['endpoint']}", "Deliveries")
    listed = page.url
    row = page.get_by_role("row").filter(has_text="orders 1")
    expect(row).to_contain_text("delivered")
    row.get_by_role("button").click()
    detail = page.get_by_role("dialog")
    expect(detail.get_by_label("the event", exact=True)).to_contain_text("c\\u202ed")
    expect(detail).not_to_contain_text("\u202e")
    assert "delivery=" in page.url
    page.reload()
    expect(detail.get_by_label("Response")).to_contain_text("x-turned")
    page.go_back()
    expect(detail).to_be_hidden()
    assert page.url == listed


# fills fields by their labels in one task: the page is not drawn between two changes
FILL_AT_ONCE = """(texts) => {
  const write = Object.getOwnPropertyDescriptor(HTMLInputElement.prototype, "value").set;
  for (const [name, text] of Object.entries(texts)) {
    const labels = [...document.querySelectorAll("label")];
    const field = labels.find((one) => one.innerText === name).control;
    field.focus();
    write.call(field, text);
    field.dispatchEvent(new Event("input", { bubbles: true }));
    field.blur();
  }
}"""


def test_two_filters_of_a_list_that_change_at_once_both_apply(desk: Desk) -> None:
    """As when a field is left for another one, or a browser fills both: the first was lost."""
    desk.zone.create_stream("orders")
    page = desk.open("deliveries?stream=orders", "Deliveries")
    page.get_by_role("button", name="More filters").click()
    page.evaluate(FILL_AT_ONCE, {"Event type": "order.placed", "Event id": "e-1"})
    expect(page).to_have_url(re.compile("stream=orders"))
    expect(page).to_have_url(re.compile("event=e-1"))
    expect(page).to_have_url(re.compile("type=order.placed"))
    desk.button("Clear").click()
    expect(page).to_have_url(re.compile("/deliveries$"))
