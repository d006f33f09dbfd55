"""Operators, what a role is offered, and the audit trail."""

import secrets

from playwright.sync_api import expect

from tests.acceptance.operators import OperatorLogin, logged_in
from tests.browser.desk import Desk
from tests.live import OPERATOR

NEW = "sesame-" + secrets.token_urlsafe(9)


def sign_in(desk: Desk, login: OperatorLogin) -> None:
    """Sign in with the cookies of a login, in place of the admin's."""
    pairs = [cookie.split("=", 1) for cookie in login.headers["Cookie"].split("; ")]
    desk.context.clear_cookies()
    desk.context.add_cookies([{"name": n, "value": v, "url": desk.hub.url} for n, v in pairs])


def visit(desk: Desk, page: str, heading: str) -> None:
    """Open a page without signing in."""
    desk.page.goto(f"{desk.hub.url}/console/zones/{desk.zone.name}/{page}")
    expect(desk.heading(heading)).to_be_visible()


def test_a_new_operator_sets_its_password_and_is_offered_what_its_role_may(desk: Desk) -> None:
    name = f"eve-{secrets.token_hex(4)}"
    page = desk.open("operators", "Operators")
    desk.button("New operator").click()
    form = page.get_by_role("dialog", name="New operator")
    form.get_by_label("Name").fill(name)
    form.get_by_role("radio", name="Viewer").check()
    form.get_by_role("button", name="Create").click()
    once = page.get_by_role("dialog", name=f"The set-up token of {name}")
    token = once.get_by_label("Secret").inner_text()
    once.get_by_role("button", name="Done").click()
    row = page.get_by_role("row").filter(has_text=name)
    expect(row).to_contain_text("no password yet")
    desk.hub.sql("DELETE FROM login_attempts")
    desk.context.clear_cookies()
    visit(desk, "streams", "Sign in")
    desk.button("Use a set-up token").click()
    page.get_by_label("Username").fill(name)
    page.get_by_label("Set-up token").fill(token)
    page.get_by_label("New password", exact=True).fill(NEW)
    desk.button("Set the password").click()
    expect(desk.heading("Streams")).to_be_visible()
    expect(desk.button("New stream")).to_have_count(0)
    expect(page.get_by_role("link", name="Operators")).to_have_count(0)
    desk.turn_to("operators", "Operators")
    expect(page.get_by_text("Only for admins")).to_be_visible()


def test_a_viewer_reads_what_it_cannot_change(desk: Desk) -> None:
    desk.zone.create_stream("orders")
    desk.zone.key("emit:orders", client="shop", label="tills", allowed_addresses=["10.1.0.0/16"])
    sign_in(desk, logged_in(desk.hub, "viewer"))
    visit(desk, "clients?client=shop", "Clients")
    page = desk.page
    row = page.get_by_role("row").filter(has_text="tills")
    expect(row).to_contain_text("10.1.0.0/16")
    for name in ("New client", "New key", "Edit", "Revoke", "Delete the client"):
        expect(desk.button(name)).to_have_count(0)
    desk.turn_to("streams/orders/policy", "orders")
    expect(page.get_by_label("Hold")).to_be_disabled()
    expect(desk.button("Save")).to_have_count(0)
    desk.turn_to("live?stream=orders", "Live events")
    expect(page.get_by_text("Listening: no event received yet")).to_be_visible()


def test_an_operator_issues_no_keys_and_revokes_them(desk: Desk) -> None:
    desk.zone.key("emit:orders", client="shop", label="tills")
    sign_in(desk, logged_in(desk.hub, "operator"))
    visit(desk, "clients?client=shop", "Clients")
    row = desk.page.get_by_role("row").filter(has_text="tills")
    expect(row.get_by_role("button", name="Revoke")).to_be_visible()
    expect(row.get_by_role("button", name="Edit")).to_have_count(0)
    expect(desk.button("New key")).to_have_count(0)


def test_a_key_is_bound_to_addresses(desk: Desk) -> None:
    key = desk.zone.key("listen:*", client="shop", label="tills")
    page = desk.open("clients?client=shop", "Clients")
    row = page.get_by_role("row").filter(has_text="tills")
    expect(row).to_contain_text("everywhere")
    row.get_by_role("button", name="Edit").click()
    form = page.get_by_role("dialog", name="Key ")
    addresses = form.get_by_role("combobox", name="Allowed addresses")
    addresses.fill("10.1.0.0/99")
    addresses.press("Enter")
    form.get_by_role("button", name="Save").click()
    expect(form.get_by_text("This must be an IP address")).to_be_visible()
    addresses.press("Backspace")
    addresses.fill("192.0.2.0/24")
    addresses.press("Enter")
    form.get_by_role("button", name="Save").click()
    expect(row).to_contain_text("192.0.2.0/24")
    answer = desk.hub.call("GET", "/v1/streams", key=key)
    answer.refused(403, "address_not_allowed")


def test_the_audit_trail_shows_acts_as_they_happen(desk: Desk) -> None:
    page = desk.open("audit-trail?resource=stream", "Audit trail")
    expect(page.get_by_text("live", exact=True)).to_be_visible()
    desk.zone.create_stream("orders")
    row = page.get_by_role("row").filter(has_text="stream.created")
    expect(row).to_contain_text("stream orders")
    expect(row).to_contain_text("tester, key")
    desk.hub.operate("PUT", f"/v1/streams/more?zone={desk.zone.name}", {})
    expect(page.get_by_role("row").filter(has_text=OPERATOR)).to_contain_text("stream more")
    page.get_by_role("combobox", name="Callers").click()
    page.get_by_role("option", name="API keys").click()
    expect(page.get_by_role("row").filter(has_text=OPERATOR)).to_have_count(0)
    row.get_by_role("button", name="stream.created").click()
    act = page.get_by_role("dialog")
    expect(act.get_by_text("127.0.0.1")).to_be_visible()
    act.get_by_role("link", name="system").click()
    expect(desk.heading("system")).to_be_visible()
    expect(page.get_by_role("dialog")).to_contain_text("stream.created")


def test_an_operator_changes_its_password_in_the_console(desk: Desk) -> None:
    login = logged_in(desk.hub, "viewer")
    sign_in(desk, login)
    visit(desk, "overview", "Overview")
    page = desk.page
    desk.button(f"Signed in as {login.name}").click()
    page.get_by_role("menuitem", name="Change the password").click()
    form = page.get_by_role("dialog", name="Change the password")
    form.get_by_label("Present password", exact=True).fill("wrong")
    form.get_by_label("New password", exact=True).fill(NEW)
    form.get_by_role("button", name="Change the password").click()
    expect(form.get_by_text("not your present password")).to_be_visible()
