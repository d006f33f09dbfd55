"""Filters in the console: written with what the hub reads in them, tried on stored events,
explained, registered.
"""

from playwright.sync_api import Locator, Page, expect

from tests.browser.desk import Desk
from tests.browser.test_look import violations

SLOW = " ".join(f"(not (wildcard text '*a*b*c*{n}))" for n in range(240))  # 1 ms an event


def order(**attributes: object) -> dict[str, object]:
    return {"domain": "shop", "type": "order.placed", "attributes": attributes}


def editor(page: Page, language: str) -> Locator:
    page.get_by_role("combobox", name="Language").click()
    page.get_by_role("option", name=language).click()
    return page.get_by_role("textbox", name="Filter")


def write(text: Locator, filter: str) -> None:
    """Write in an empty editor."""
    text.press("ControlOrMeta+a")
    text.press("Delete")
    text.fill(filter)


def test_a_filter_is_written_tried_explained_and_registered(desk: Desk) -> None:
    desk.zone.create_stream("orders")
    names = ("Joe", "Ann")
    desk.zone.emit("orders", [order(user=names[n % 2], total=n) for n in range(20)])
    page = desk.open("filters", "Filters")
    expect(page.get_by_text("No condition yet")).to_be_visible()
    text = editor(page, "predicate")
    desk.button("Insert user").click()
    expect(text).to_have_text("user ")
    write(text, "(and (= user 'Joe)\n  (like total 5))")
    expect(page.get_by_text("Line 2, column 4:")).to_be_visible()
    expect(page.locator(".cm-mistake")).to_have_text("like")
    expect(text).to_have_attribute("aria-invalid", "true")
    write(text, "(and (> total 5) (not (> total 5)))")
    expect(page.get_by_text("No event can match this filter")).to_be_visible()
    write(text, "(and (= user 'Joe) (not (> total 9)))")
    reading = page.get_by_role("status", name="Filter check")
    expect(reading.get_by_label("In predicate form")).to_contain_text('(= user "Joe")')
    expect(reading).to_contain_text("events with the requested value of user")
    expect(page.locator(".cm-mistake")).to_have_count(0)

    page.get_by_label("How many").fill("16")
    page.get_by_label("How many").press("Enter")
    ran = page.get_by_role("status", name="Dry run")
    expect(ran).to_contain_text("matched3")
    expect(ran).to_contain_text("events evaluated16")
    expect(page.get_by_role("img", name="Matches over time: 3 in")).to_be_visible()
    assert violations(page) == []
    matched = page.get_by_role("region", name="Matched events").get_by_role("button")
    expect(matched).to_have_count(3)
    matched.first.click()
    event = page.get_by_role("dialog", name="orders 5")
    tree = event.get_by_role("list", name="The filter, part by part")
    expect(event).to_contain_text("The draft matches it.")
    expect(tree).to_contain_text('user is "Joe", expected = "Joe"')
    expect(tree).to_contain_text("fails (> total 9)")
    page.keyboard.press("Escape")

    page.reload()  # what was run is in the address
    expect(text).to_contain_text("(not (> total 9))")
    desk.button("Register it").click()
    form = page.get_by_role("dialog", name="Register it")
    form.get_by_role("combobox", name="Client").fill("tester")
    expect(form.get_by_role("textbox", name="Filter")).to_contain_text("(= user 'Joe)")
    form.get_by_role("button", name="Register", exact=True).click()
    expect(form).to_be_hidden()
    [made] = desk.hub.operate("GET", f"/v1/registrations?zone={desk.zone.name}").json["items"]
    assert made["predicate"] == '(and (= user "Joe") (not (> total 9)))'
    assert (made["client"], made["streams"]) == ("tester", ["orders"])


def test_each_language_marks_its_mistakes_and_leads_on_to_predicate(desk: Desk) -> None:
    desk.zone.create_stream("orders")
    page = desk.open("filters", "Filters")
    page.get_by_label("Type", exact=True).fill("order.placed")
    desk.button("Go on in predicate").click()
    expect(page.get_by_role("textbox", name="Filter")).to_have_text('(= @type "order.placed")')
    for language, wrong, marked, words in (
        ("ready", "Order | $total = 5", "=", "Line 1, column 16:"),
        ("propositional", "(and user (or))", "or", "Line 1, column 12:"),
        ("cel", "event.type == 'order' && total = 5", "=", "Line 1, column 32:"),
        ("cesql", "type = 'order' AND total == 5", "=", "Line 1, column 27:"),
        ("eventbridge", '{"detail": {"total": 5}}', '"total"', "detail.total:"),
        ("eventbridge", '{"detail": ', None, "This is not JSON"),
    ):
        write(editor(page, language), wrong)
        expect(page.get_by_text(words)).to_be_visible()
        if marked is not None:
            expect(page.locator(".cm-mistake")).to_have_text(marked)
    expect(desk.button("Run")).to_be_disabled()


def test_a_dry_run_is_stopped_and_a_refused_one_says_why(desk: Desk) -> None:
    desk.zone.create_stream("logs")
    for _ in range(4):
        events = [{**order(text="a1b2" * 50), "mask": "1"}] * 1_000
        assert desk.zone.emit("logs", events).status == 200
    query = f"language=predicate&stream=logs&filter=(and {SLOW} (exists nothing))"
    page = desk.open(f"filters?{query}", "Filters")
    desk.button("Run").click()
    ran = page.get_by_role("status", name="Dry run")
    expect(ran).to_contain_text("events evaluated")
    expect(page.get_by_role("progressbar")).to_be_visible()
    desk.button("Stop").click()
    expect(ran).to_contain_text("Stopped.")
    desk.button("Run").wait_for()
    page.get_by_text("Since", exact=True).click()
    page.get_by_label("Since when").fill("2030-01-01T00:00:00")
    desk.button("Run").click()
    expect(ran).to_contain_text("No event in that range. Choose an earlier start, or the last")
    page.get_by_label("Until when").fill("2029-01-01T00:00:00")
    expect(page.get_by_text("The end must be after the start.")).to_be_visible()
    expect(desk.button("Run")).to_be_disabled()
    page.get_by_label("Since when").fill("2020-01-01T00:00:00")
    page.get_by_label("Until when").fill("2021-01-01T00:00:00")
    page.get_by_label("Until when").press("Enter")
    expect(ran).to_contain_text("No event in that range. Choose an earlier start or a later end.")
    page.get_by_text("All", exact=True).click()
    write(page.get_by_role("textbox", name="Filter"), "(nonsense)")
    desk.button("Run").click()
    expect(page.get_by_role("alert")).to_contain_text("filter_syntax")


def test_an_event_shows_its_matches_near_matches_and_audience(desk: Desk) -> None:
    desk.zone.create_stream("orders")
    wanting = {"streams": ["orders"], "language": "predicate"}
    matching, near, other = desk.zone.register(
        {**wanting, "filter": "(= user 'Joe)"},
        {**wanting, "filter": "(and (= user 'Joe) (> total 9))"},
        {**wanting, "filter": "(= user 'Ann)"},
    )
    body = {"groups": ["ops"]}
    path = f"/v1/clients/tester?zone={desk.zone.name}"
    assert desk.hub.operate("PATCH", path, body).status == 200
    desk.zone.emit("orders", {**order(user="Joe", total=3), "audience": ["ops"]})
    page = desk.open("live?stream=orders&from=oldest", "Live events")
    page.get_by_role("list", name="Events").get_by_role("button").click()
    event = page.get_by_role("dialog", name="orders 1")
    expect(event.get_by_text("Audienceops")).to_be_visible()
    event.get_by_role("button", name="Show matching registrations").click()
    expect(event).to_contain_text("Matched: 1 of 3 evaluated registrations.")
    nearly = event.get_by_role("list", name="Nearly matched").get_by_role("listitem")
    first = nearly.filter(has_text=f"Registration {near['id']}")
    expect(first).to_contain_text("failed 1 of 2")
    expect(first).to_contain_text("total is 3, expected > 9")
    event.get_by_role("button", name=f"Explain registration {matching['id']}").click()
    found = event.get_by_role("list", name="Matched").get_by_role("listitem").first
    expect(found).to_contain_text(f"Registration {matching['id']} matches it.")
    expect(found).to_contain_text("It is in the event's audience")
    assert violations(page) == []
    event.get_by_role("link", name=f"Registration {other['id']}").click()
    registration = page.get_by_role("dialog", name=f"Registration {other['id']}")
    explain = registration.get_by_role("region", name="Explain")
    expect(explain.get_by_label("Sequence")).to_have_value("1")
    explain.get_by_role("button", name="Explain").click()
    expect(explain).to_contain_text("does not match it.")
    expect(explain).to_contain_text('user is "Joe", expected = "Ann"')
    assert violations(page) == []
