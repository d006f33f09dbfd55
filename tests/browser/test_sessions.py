"""Sessions and session groups: their state, positions, connections, members and registrations."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from playwright.sync_api import Locator, expect
from websockets.sync.client import ClientConnection, connect

from tests.acceptance.consumers import SHOP, change, consumer, create_group, create_session
from tests.acceptance.operators import logged_in
from tests.acceptance.pulls import acknowledged, end_visibility, pull, pulled
from tests.acceptance.wire import EVENT, JSON
from tests.browser.desk import Desk
from tests.browser.test_operators import sign_in, visit

RELIABLE = "reliable, fifo, window 100"


@contextmanager
def connected(desk: Desk, name: str) -> Iterator[ClientConnection]:
    """Connect a session of the zone's admin over a websocket."""
    headers = {"Authorization": f"Bearer {desk.zone.admin}"}
    with connect(desk.hub.ws_url, additional_headers=headers, subprotocols=[JSON]) as socket:  # type: ignore[list-item]
        say(socket, "connect", session=name)
        hear(socket, "connected")
        yield socket


def say(socket: ClientConnection, op: str, **fields: Any) -> None:
    socket.send(json.dumps({"op": op, **fields}))


def hear(socket: ClientConnection, op: str) -> dict[str, Any]:
    """Receive messages up to the first of this kind."""
    while True:
        message: dict[str, Any] = json.loads(socket.recv(timeout=20))
        assert message["op"] != "error", message
        if message["op"] == op:
            return message


def row_of(desk: Desk, name: str) -> Locator:
    return desk.page.get_by_role("row").filter(has_text=name)


def show(desk: Desk, path: str) -> Any:
    return desk.hub.call("GET", path, key=desk.zone.admin).json


def test_a_session_is_created_in_the_console(desk: Desk) -> None:
    create_group(desk.zone, "team")
    page = desk.open("sessions", "Sessions")
    expect(page.get_by_text("No sessions", exact=True)).to_be_visible()
    desk.button("New session").click()
    form = page.get_by_role("dialog", name="New session")
    form.get_by_role("combobox", name="Client").fill("tester")
    form.get_by_label("Name").fill("bad name!")
    form.get_by_role("combobox", name="Order").click()
    page.get_by_role("option", name="timestamp").click()
    form.get_by_label("Delay").fill("200")
    form.get_by_label("Window").fill("7")
    form.get_by_role("button", name="Create").click()
    expect(form.get_by_label("Name")).to_have_attribute("aria-invalid", "true")
    form.get_by_label("Name").fill("reader")
    form.get_by_role("button", name="Create").click()
    detail = desk.drawer("Session")
    expect(detail.get_by_text("reliable, timestamp, window 7")).to_be_visible()
    expect(detail.get_by_text("No streams")).to_be_visible()
    [made] = show(desk, "/v1/sessions")["items"]
    assert made["order_options"] == {"occur_delay_ms": 200}
    detail.get_by_label("Longest wait").fill("50")
    detail.get_by_role("combobox", name="Session group").click()
    page.get_by_role("option", name="team").click()
    expect(detail.get_by_label("Window")).to_have_count(0)  # those of the group apply
    detail.get_by_role("button", name="Save").click()
    expect(detail.get_by_text(RELIABLE)).to_be_visible()
    detail.get_by_role("link", name="team").click()
    members = page.get_by_role("table", name="Members of the session group")
    members.get_by_role("button", name="Member reader").click()
    expect(detail.get_by_text("reader", exact=True)).to_be_visible()
    detail.get_by_role("button", name="Delete").click()
    question = page.get_by_role("dialog", name="Delete the session reader?")
    question.get_by_role("button", name="Delete").click()
    expect(page.get_by_text("No sessions", exact=True)).to_be_visible()


def test_a_supplier_declares_types(desk: Desk) -> None:
    page = desk.open("sessions", "Sessions")
    desk.button("New session").click()
    form = page.get_by_role("dialog", name="New session")
    form.get_by_role("combobox", name="Client").fill("tester")
    form.get_by_label("Name").fill("meter")
    form.get_by_role("combobox", name="Kind").click()
    page.get_by_role("option", name="supplier").click()
    expect(form.get_by_label("Window")).to_have_count(0)
    form.get_by_label("Supplies").fill("Net::MyAlarm\nMail::Msg*")
    form.get_by_role("button", name="Create").click()
    expect(form.get_by_text("A star stands at the end")).to_be_visible()
    form.get_by_label("Supplies").fill("Net::MyAlarm\nMail::Msg.*")
    form.get_by_role("button", name="Create").click()
    detail = desk.drawer("Session")
    expect(detail.get_by_text("Net::MyAlarm, Mail::Msg.*")).to_be_visible()
    expect(detail.get_by_role("button", name="Disconnect")).to_have_count(0)


def test_lag_and_positions_follow_a_connection(desk: Desk) -> None:
    desk.zone.create_stream("orders")
    consumer(desk.zone, "reader", window=3)
    desk.zone.emit("orders", [EVENT] * 5)
    desk.open("sessions", "Sessions")
    row = row_of(desk, "reader")
    expect(row).to_contain_text("not connected")
    expect(row).to_contain_text("reliable, fifo, window 3")
    expect(row.get_by_role("cell").nth(2)).to_have_text("5")
    with connected(desk, "reader") as socket:
        hear(socket, "event")
        say(socket, "ack", session="reader", stream="orders", sequence=2, id="a")
        hear(socket, "acked")
        expect(row).not_to_contain_text("not connected")
        expect(row.get_by_role("cell").nth(2)).to_have_text("3")
        row.get_by_role("button", name="Session reader").click()
        detail = desk.drawer("Session")
        expect(detail).to_contain_text(f"process {node(desk)} {desk.hub.web[0].pid}")
        position = detail.get_by_role("table", name="Streams of the session").get_by_role("row")
        expect(position.nth(1)).to_contain_text("orders")
        expect(position.nth(1).get_by_role("cell").nth(1)).to_have_text("2")
        expect(position.nth(1).get_by_role("cell").nth(2)).to_have_text("5")
        expect(position.nth(1).get_by_role("cell").nth(3)).to_have_text("3")
        say(socket, "ack", session="reader", stream="orders", sequences=[4], id="b")
        hear(socket, "acked")
        expect(position.nth(1).get_by_role("cell").nth(1)).to_have_text("2, and 1 later")
        registrations = detail.get_by_role("table", name="Registrations of the session")
        expect(registrations.get_by_role("row").nth(1)).to_contain_text("orders")


def node(desk: Desk) -> str:
    [(name,)] = desk.hub.sql("SELECT node FROM members WHERE pid = %s", desk.hub.web[0].pid)
    return str(name)


def test_a_session_is_suspended_and_disconnected(desk: Desk) -> None:
    desk.zone.create_stream("orders")
    made = consumer(desk.zone, "reader")
    desk.open(f"sessions?session={made['id']}", "Sessions")
    detail = desk.drawer("Session")
    detail.get_by_role("button", name="Suspend").click()
    expect(detail.get_by_role("button", name="Resume")).to_be_visible()
    expect(detail.get_by_role("table", name="Registrations of the session")).to_contain_text(
        "session suspended"
    )
    assert show(desk, f"/v1/sessions/{made['id']}")["suspended"] is True
    detail.get_by_role("button", name="Resume").click()
    expect(detail.get_by_role("button", name="Suspend")).to_be_visible()
    with connected(desk, "reader") as socket:
        detail.get_by_role("button", name="Disconnect").click()
        assert hear(socket, "disconnected")["reason"] == "request"
    expect(detail.get_by_text("delivery disabled")).to_be_visible()
    detail.get_by_role("button", name="Connect", exact=True).click()
    expect(detail.get_by_text("not connected")).to_be_visible()
    with connected(desk, "reader"):
        pass


def test_a_change_that_comes_second_suspends_no_session(desk: Desk) -> None:
    made = create_session(desk.zone, "reader")
    desk.open(f"sessions?session={made['id']}", "Sessions")
    detail = desk.drawer("Session")
    detail.get_by_label("Window").fill("9")
    change(desk.zone, made, window=8)
    expect(detail.get_by_text("window 8")).to_be_visible()  # read again after 5 s
    expect(detail.get_by_label("Window")).to_have_value("9")  # but not under the hands
    detail.get_by_role("button", name="Save").click()
    alert = detail.get_by_role("alert").filter(has_text="Changed in the meantime")
    alert.get_by_role("button", name="Load the current version").click()
    expect(detail.get_by_label("Window")).to_have_value("8")


def test_a_group_shows_its_members_and_registrations(desk: Desk) -> None:
    desk.zone.create_stream("orders")
    group = create_group(desk.zone, "team", quality="best_effort")
    create_session(desk.zone, "first", group="team")
    create_session(desk.zone, "second", group="team")
    desk.zone.register({**SHOP, "session_group": "team"})
    page = desk.open("sessions", "Sessions")
    groups = page.get_by_role("table", name="Session groups")
    expect(groups.get_by_role("row").nth(1)).to_contain_text("best effort, fifo")
    groups.get_by_role("button", name="Session group team").click()
    detail = desk.drawer("Session group")
    members = detail.get_by_role("table", name="Members of the session group")
    expect(members.get_by_role("row")).to_have_count(3)
    detail.get_by_role("button", name="Suspend").click()
    registrations = detail.get_by_role("table", name="Registrations of the session group")
    expect(registrations).to_contain_text("session group suspended")
    detail.get_by_role("button", name="Delete").click()
    question = page.get_by_role("dialog", name="Delete the session group team?")
    question.get_by_role("button", name="Delete").click()
    expect(question.get_by_role("alert")).to_contain_text("session_group_in_use")
    question.get_by_role("button", name="Cancel").click()
    members.get_by_role("button", name="Member second").click()
    session = desk.drawer("Session")
    expect(session.get_by_text("Best-effort delivery has no positions")).to_be_visible()
    assert show(desk, f"/v1/session-groups/{group['id']}")["suspended"] is True


def test_a_group_that_shares_shows_its_position_and_its_events_in_flight(desk: Desk) -> None:
    desk.zone.create_stream("orders")
    page = desk.open("sessions", "Sessions")
    desk.button("New session group").click()
    form = page.get_by_role("dialog", name="New session group")
    form.get_by_role("combobox", name="Client").fill("tester")
    form.get_by_label("Name").fill("workers")
    expect(form.get_by_label("Key")).to_have_count(0)
    form.get_by_role("combobox", name="Each event goes to").click()
    page.get_by_role("option", name="one member").click()
    form.get_by_label("Key").fill("@colour")
    form.get_by_label("Attempts").fill("5")
    form.get_by_role("button", name="Create").click()
    expect(form.get_by_label("Key")).to_have_attribute("aria-invalid", "true")
    form.get_by_label("Key").fill("customer")
    form.get_by_role("button", name="Create").click()
    detail = desk.drawer("Session group")
    expect(detail.get_by_text(f"{RELIABLE}, at most 5 attempts")).to_be_visible()
    expect(detail.get_by_text("one member by customer")).to_be_visible()
    expect(detail.get_by_text("No events in flight")).to_be_visible()
    [made] = show(desk, "/v1/session-groups")["items"]
    shared = made["sharing"], made["share_by"], made["attempts_max"]
    assert shared == ("one", "customer", 5)
    member = create_session(desk.zone, "one", group="workers")
    desk.zone.register({**SHOP, "session_group": "workers"})
    desk.zone.emit("orders", [{**EVENT, "attributes": {"customer": n}} for n in range(4)])
    assert len(pulled(desk.zone, 3, "one", visibility_s=600)) == 3
    pull(desk.zone, "one", max=0, **acknowledged(1))
    position = detail.get_by_role("table", name="Streams of the session group").get_by_role("row")
    expect(position.nth(1).get_by_role("cell").nth(1)).to_have_text("1")
    expect(position.nth(1).get_by_role("cell").nth(3)).to_have_text("3")
    claims = detail.get_by_role("table", name="Events in flight of the session group")
    expect(claims.get_by_role("row")).to_have_count(3)
    expect(claims.get_by_role("row").nth(1)).to_contain_text("one")
    expect(claims.get_by_role("row").nth(1).get_by_role("cell").nth(1)).to_have_text("2")
    end_visibility(desk.hub, 3)
    expect(claims.get_by_role("row").nth(2)).to_contain_text("over")
    visit(desk, f"sessions?session={member['id']}", "Sessions")
    flight = page.get_by_role("table", name="Events in flight of the session")
    expect(flight.get_by_role("row")).to_have_count(3)
    expect(flight.get_by_role("row").nth(1).get_by_role("cell").nth(2)).to_have_text("1")
    visit(desk, "sessions", "Sessions")
    groups = page.get_by_role("table", name="Session groups").get_by_role("row").nth(1)
    expect(groups).to_contain_text("one member by customer")
    expect(groups.get_by_role("cell").nth(5)).to_have_text("3")
    expect(groups.get_by_role("cell").nth(6)).to_have_text("2")


def test_a_registration_belongs_to_a_session_or_a_session_group(desk: Desk) -> None:
    desk.zone.create_stream("orders")
    create_session(desk.zone, "reader")
    create_session(desk.zone, "meter", kind="supplier", supplies=[{"domain": "a", "type": "b"}])
    create_group(desk.zone, "team")
    night = {"name": "night", "session": "reader"}
    for body in (night, {"name": "day"}):
        path = "/v1/registration-groups"
        assert desk.hub.call("POST", path, body, key=desk.zone.admin).status == 201
    page = desk.open("registrations", "Registrations")
    for owner in ("reader", "team"):
        desk.button("New registration").click()
        form = page.get_by_role("dialog", name="New registration")
        form.get_by_role("combobox", name="Client").fill("tester")
        form.get_by_role("combobox", name="Session or session group").click()
        expect(page.get_by_role("option")).to_have_text(["reader", "team"])
        page.get_by_role("option", name=owner).click()
        form.get_by_role("combobox", name="Streams").click()
        page.get_by_role("option", name="orders").click()
        page.keyboard.press("Escape")
        form.get_by_role("combobox", name="Group", exact=True).click()
        if owner == "reader":
            expect(page.get_by_role("option")).to_have_text(["night"])
            page.get_by_role("option", name="night").click()
        else:
            expect(page.get_by_role("option")).to_have_count(0)
        form.get_by_role("button", name="Register", exact=True).click()
        expect(form).to_have_count(0)
    found = show(desk, "/v1/registrations")["items"]
    assert [(one["session"], one["session_group"], one["group"]) for one in found] == [
        ("reader", None, "night"),
        (None, "team", None),
    ]
    expect(page.get_by_role("table").get_by_role("row")).to_have_count(3)
    page.get_by_role("combobox", name="Of the session").click()
    page.get_by_role("option", name="team").click()
    expect(page.get_by_role("table").get_by_role("row")).to_have_count(2)
    page.get_by_role("button", name=f"Registration {found[1]['id']}", exact=True).click()
    expect(desk.drawer("Registration")).to_contain_text("Session groupteam")


def test_a_group_of_registrations_belongs_to_a_session(desk: Desk) -> None:
    create_session(desk.zone, "reader")
    page = desk.open("groups", "Groups")
    desk.button("New group").click()
    form = page.get_by_role("dialog", name="New group")
    form.get_by_role("combobox", name="Client").fill("tester")
    form.get_by_role("combobox", name="Session or session group").click()
    page.get_by_role("option", name="reader").click()
    form.get_by_label("Name").fill("night")
    form.get_by_role("button", name="Create").click()
    expect(desk.drawer("Group")).to_contain_text("Sessionreader")


def test_a_viewer_is_offered_no_changes_of_sessions_and_timers(desk: Desk) -> None:
    made = create_session(desk.zone, "reader")
    desk.zone.create_stream("orders")
    timer = {"stream": "orders", "handle": "tick", "after_s": 3_600}
    tick = desk.hub.call("POST", "/v1/timers", timer, key=desk.zone.admin).json
    sign_in(desk, logged_in(desk.hub, "viewer"))
    visit(desk, f"sessions?session={made['id']}", "Sessions")
    detail = desk.drawer("Session")
    expect(detail.get_by_label("Window")).to_be_disabled()
    for name in ("Suspend", "Disconnect", "Delete", "Save", "New session", "New session group"):
        expect(desk.button(name)).to_have_count(0)
    visit(desk, f"timers?timer={tick['id']}", "Timers")
    expect(desk.drawer("Timer")).to_contain_text("tick")
    for name in ("Suspend", "Delete", "New timer"):
        expect(desk.button(name)).to_have_count(0)


def test_the_audit_trail_names_the_session(desk: Desk) -> None:
    desk.zone.create_stream("orders")
    create_session(desk.zone, "reader")
    desk.hub.call(
        *("POST", "/v1/registrations", {"streams": ["orders"]}),
        key=desk.zone.admin,
        headers={"EventHub-Session": "reader"},
    )
    page = desk.open("audit-trail?type=registration.created", "Audit trail")
    expect(page.get_by_role("table").get_by_role("row").nth(1)).to_contain_text("session reader")
