"""Registrations, endpoints and deliveries in the console."""

import json

from playwright.sync_api import expect

from tests.browser.desk import Desk
from tests.browser.test_look import violations
from tests.sink import Called, Sink

LARGE = "9007199254740993"  # no double holds it


def test_a_registration_is_made_after_an_error_at_its_field_and_ends(desk: Desk) -> None:
    desk.zone.create_stream("orders")
    page = desk.open("registrations", "Registrations")
    expect(page.get_by_text("No registrations")).to_be_visible()
    desk.button("New registration").click()
    form = page.get_by_role("dialog")
    client = form.get_by_role("combobox", name="Client")
    expect(client).to_have_value("")  # the first one was chosen, and owned what was made
    expect(form.get_by_role("button", name="Register")).to_be_disabled()
    client.fill("shop")
    form.get_by_role("button", name="Create the client shop").click()
    expect(form.get_by_text("The client shop was created.")).to_be_visible()
    expect(client).to_be_focused()
    form.get_by_role("combobox", name="Streams").click()
    page.get_by_role("option", name="orders").click()
    page.keyboard.press("Escape")
    form.get_by_role("button", name="Add an attribute").click()
    form.get_by_label("Name of attribute 1").fill("total")
    form.get_by_label("Type of attribute 1").select_option("number")
    form.get_by_label("Value of attribute 1").fill("99")
    form.get_by_text("New URL").click()
    url = form.get_by_label("Callback URL")
    url.fill("http://10.1.2.3/hook")
    form.get_by_role("button", name="Register").click()
    expect(url).to_have_attribute("aria-invalid", "true")
    expect(form.get_by_text("private or local address")).to_be_visible()
    url.fill("https://example.org/hook")
    form.get_by_role("button", name="Register").click()
    secret = page.get_by_role("dialog", name="The endpoint's secret")
    expect(secret.get_by_label("Secret")).to_contain_text("whsec_")
    secret.get_by_role("button", name="Done").click()
    row = page.get_by_role("row").filter(has_text="https://example.org/hook")
    expect(row).to_contain_text("total = 99")
    row.get_by_role("button", name="Registration").first.click()
    detail = page.get_by_role("dialog")
    expect(detail).to_contain_text("Clientshop")
    detail.get_by_role("button", name="Edit").click()
    expect(detail.get_by_label("Value of attribute 1")).to_have_value("99")
    detail.get_by_label("Value of attribute 1").fill(LARGE)
    detail.get_by_role("button", name="Save").click()
    expect(row).to_contain_text(f"total = {LARGE}")
    expect(detail).to_contain_text("Version2")
    detail.get_by_role("button", name="Delete").click()
    question = page.get_by_role("dialog", name="Delete registration")
    question.get_by_role("button", name="Delete").click()
    expect(page.get_by_text("No registrations")).to_be_visible()


def test_an_endpoint_is_made_disabled_enabled_and_deleted(desk: Desk) -> None:
    page = desk.open("endpoints", "Endpoints")
    desk.button("New endpoint").click()
    form = page.get_by_role("dialog")
    client = form.get_by_role("combobox", name="Client")
    create = form.get_by_role("button", name="Create", exact=True)
    expect(client).to_have_value("")
    expect(create).to_be_disabled()
    client.fill("shop")
    form.get_by_label("URL").fill("ftp://example.org/")
    create.click()
    expect(form.get_by_label("URL")).to_have_attribute("aria-invalid", "true")
    form.get_by_label("URL").fill("https://example.org/hook")
    create.click()
    expect(client).to_have_attribute("aria-invalid", "true")  # it was created without a request
    listed = desk.hub.operate("GET", f"/v1/clients?zone={desk.zone.name}").json["items"]
    assert [one["name"] for one in listed] == ["tester"]
    client.click()
    client.fill("")
    page.get_by_role("option", name="tester").click()
    create.click()
    page.get_by_role("dialog", name="secret").get_by_role("button", name="Done").click()
    row = page.get_by_role("row").filter(has_text="https://example.org/hook")
    row.get_by_role("button").click()
    settings = page.get_by_role("region", name="Settings")
    settings.get_by_role("button", name="Edit: Settings").click()
    settings.get_by_label("URL").fill("https://example.org/moved")
    settings.get_by_role("combobox", name="Format").click()
    page.get_by_role("option", name="CloudEvents 1.0, binary").click()
    settings.get_by_role("button", name="Save").click()
    expect(settings).to_contain_text("CloudEvents 1.0, binary")
    expect(page.get_by_role("main")).to_contain_text("https://example.org/moved")
    for action, state in (("Disable", "disabled"), ("Enable", "not tried yet")):
        desk.button(action).click()
        expect(page.locator("header, main").get_by_text(state, exact=True).first).to_be_visible()
    desk.button("Delete").click()
    question = page.get_by_role("dialog", name="Delete endpoint")
    question.get_by_role("button", name="Delete").click()
    expect(page.get_by_text("No endpoints")).to_be_visible()


def test_a_delivery_is_shown_with_each_try(desk: Desk, sink: Sink) -> None:
    answers = iter((503, 200))

    def answer(_called: Called) -> tuple[int, dict[str, str]]:
        return next(answers, 200), {"x-answered-by": "the sink"}

    sink.answer = answer
    desk.zone.create_stream("orders")
    [made] = desk.zone.register({"streams": ["orders"], "callback": sink.url("/console")})
    desk.zone.emit("orders", {"domain": "shop", "type": "order.placed", "attributes": {"n": 7}})
    sink.wait(2, "/console")
    page = desk.open("deliveries", "Deliveries")  # it used to be the first endpoint's
    expect(page.get_by_role("heading", name="Choose an endpoint")).to_be_visible()
    page.get_by_role("combobox", name="Endpoint").click()
    page.get_by_role("option", name=str(made["endpoint"])).click()
    row = page.get_by_role("row").filter(has_text="orders 1")
    expect(row).to_contain_text("delivered")
    row.get_by_role("button").click()
    detail = page.get_by_role("dialog")
    tries = detail.get_by_role("button", name="Attempt")
    expect(tries).to_have_count(2)
    expect(tries.nth(1)).to_contain_text("status 503")
    response = detail.get_by_label("Response")
    expect(response.first).to_contain_text("x-answered-by: the sink")
    expect(detail.get_by_label("Request to").first).to_contain_text("webhook-id")
    event = json.loads(detail.get_by_label("the event", exact=True).inner_text())
    assert event["attributes"] == {"n": 7}


def test_the_overview_shows_streams_backlog_and_health(desk: Desk, sink: Sink) -> None:
    """No scheduler runs in these tests: the overview reports that with the reason. While the API
    does not answer, the overview marks its data as stale.
    """
    sink.answer = lambda called: (500 if called.path == "/sick" else 204, {})
    desk.zone.create_stream("orders")
    for path in ("/overview", "/sick"):
        desk.zone.register({"streams": ["orders"], "callback": sink.url(path)})
    desk.zone.emit("orders", [{"domain": "shop", "type": "order.placed"}] * 5)
    sink.wait(5, "/overview")
    # else the timetable may still be starting
    desk.zone.hub.sql("UPDATE log_state SET booted_at = booted_at - interval '2 minutes'")
    page = desk.open("overview", "Overview")
    health = page.get_by_role("status", name="Health")
    expect(health).to_contain_text("Database ok")
    expect(health).to_contain_text("Scheduler degraded")
    expect(page.get_by_role("alert")).to_contain_text("The timetable (beat) is not alive")
    expect(page.get_by_role("link", name="The hub is degraded: show why")).to_be_visible()
    ok = health.get_by_text("Database ok")
    green = ok.evaluate("badge => getComputedStyle(badge).color")
    page.route("**/v1/overview*", lambda route: route.abort())
    expect(page.get_by_text("What is shown is as of")).to_be_visible()
    assert ok.evaluate("badge => getComputedStyle(badge).color") != green
    assert violations(page) == []
    page.unroute("**/v1/overview*")
    expect(page.get_by_text("What is shown is as of")).to_have_count(0)
    expect(page.get_by_role("region", name="Events", exact=True)).to_contain_text("5")
    row = page.get_by_role("row").filter(has_text="orders")
    expect(row.get_by_role("cell").nth(4)).to_have_text("0")
    expect(page.get_by_role("img", name="Events appended per second")).to_be_visible()
    row.get_by_role("link", name="orders").click()
    expect(desk.heading("orders")).to_be_visible()
    page.go_back()
    page.get_by_role("link", name="1 failing").click()
    sick = page.get_by_role("row").filter(has_text="/sick")
    expect(sick).to_contain_text("failing: status 500")
    expect(page.get_by_role("row").filter(has_text="/overview")).to_contain_text("ok")
    sick.get_by_role("button").click()
    expect(page.get_by_role("region", name="Last attempt")).to_contain_text("status 500")


def test_a_registration_is_written_in_a_language_and_its_mistake_is_shown_in_its_place(
    desk: Desk,
) -> None:
    desk.zone.create_stream("orders")
    page = desk.open("registrations", "Registrations")
    desk.button("New registration").click()
    form = page.get_by_role("dialog")
    form.get_by_role("combobox", name="Client").fill("tester")
    form.get_by_role("combobox", name="Streams").click()
    page.get_by_role("option", name="orders").click()
    page.keyboard.press("Escape")
    form.get_by_role("combobox", name="Language").click()
    page.get_by_role("option", name="predicate").click()
    text = form.get_by_role("textbox", name="Filter")
    text.fill("(and (= type 'error)\n  (like user 'Joe))")
    form.get_by_role("button", name="Register").click()
    expect(form.get_by_text("Line 2, column 4:")).to_be_visible()
    text.fill("(and (> total 9) (not (> total 9)))")
    expect(form.get_by_text("Line 2, column 4:")).to_have_count(0)
    form.get_by_role("button", name="Register").click()
    row = page.get_by_role("row").filter(has_text="(and (> total 9) (not (> total 9)))")
    row.get_by_role("button", name="Registration").first.click()
    detail = page.get_by_role("dialog")
    expect(detail.get_by_text("No event can match this filter")).to_be_visible()
    detail.get_by_role("button", name="Edit").click()
    detail.get_by_role("combobox", name="Language").click()
    page.get_by_role("option", name="eventbridge").click()
    text = detail.get_by_role("textbox", name="Filter")
    text.fill('{"detail": {"total": [')
    detail.get_by_role("button", name="Save").click()
    expect(detail.get_by_text("This is not JSON")).to_be_visible()
    text.fill('{"detail": {"total": [{"numeric": [">", 9]}]}}')
    detail.get_by_role("button", name="Save").click()
    expect(detail.get_by_text("In predicate form")).to_be_visible()
    expect(detail.get_by_label("in predicate form", exact=True)).to_have_text("(> total 9)")
