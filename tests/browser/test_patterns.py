"""Patterns in the console: a group, a pattern that is checked and tried before it is created, and
what the page shows of it.
"""

from playwright.sync_api import expect

from tests.browser.desk import Desk

TEXT = "{a: A}; {b: B} per $user within 1h"


def test_a_pattern_is_checked_tried_and_created_in_the_console(desk: Desk) -> None:
    desk.zone.create_stream("orders")
    page = desk.open("patterns", "Patterns")
    expect(page.get_by_text("No patterns", exact=True)).to_be_visible()
    desk.button("New pattern group").click()
    form = page.get_by_role("dialog", name="New pattern group")
    form.get_by_role("combobox", name="Client").fill("tester")
    form.get_by_label("Name").fill("security")
    form.get_by_role("combobox", name="Streams").click()
    page.get_by_role("option", name="orders").click()
    page.keyboard.press("Escape")
    form.get_by_role("button", name="Create", exact=True).click()
    shown = desk.drawer("Pattern group")
    expect(shown.get_by_text("orders")).to_be_visible()
    page.keyboard.press("Escape")

    desk.button("New pattern").click()
    form = page.get_by_role("dialog", name="New pattern")
    form.get_by_role("combobox", name="Client").fill("tester")
    form.get_by_role("combobox", name="Pattern group").click()
    page.get_by_role("option", name="security").click()
    form.get_by_label("Name").fill("pair")
    form.get_by_label("Pattern", exact=True).fill("{a: A};")
    expect(form.get_by_text("Line 1, column")).to_be_visible()
    form.get_by_label("Pattern", exact=True).fill(TEXT)
    parts = form.get_by_role("list", name="Parts")
    expect(parts.get_by_text("{b: B}", exact=True)).to_be_visible()
    form.get_by_role("button", name="Try").click()
    expect(form.get_by_text("Events: 2, matches: 1")).to_be_visible()
    steps = form.get_by_role("list", name="Steps").get_by_role("listitem")
    expect(steps.filter(has_text="1. d::A").first).to_contain_text("waiting")
    expect(steps.filter(has_text="2. d::B").first).to_contain_text("match a = event 1; b = event 2")
    form.get_by_role("button", name="Create", exact=True).click()

    shown = desk.drawer("Pattern")
    expect(shown.get_by_text("running")).to_be_visible()
    shown.get_by_role("button", name="Suspend").click()
    expect(shown.get_by_role("button", name="Resume")).to_be_visible()
    [pattern] = desk.hub.call("GET", "/v1/patterns", key=desk.zone.admin).json["items"]
    assert (pattern["text"], pattern["status"], pattern["version"]) == (TEXT, "suspended", 2)

    # what others change is shown while it is open, and what is typed stays
    shown.get_by_label("Pattern", exact=True).fill("{a: A}")
    path = f"/v1/patterns/{pattern['id']}"
    desk.hub.call("PATCH", path, {"suspended": False}, key=desk.zone.admin)
    expect(shown.get_by_text("running")).to_be_visible()
    expect(shown.get_by_role("button", name="Suspend")).to_be_visible()
    expect(shown.get_by_label("Pattern", exact=True)).to_have_value("{a: A}")
    shown.get_by_role("button", name="Change").click()
    expect(shown.get_by_text("Changed in the meantime")).to_be_visible()


def test_patterns_are_found_by_their_group_and_state(desk: Desk) -> None:
    """Among a thousand patterns of a client one looked for the suspended ones page by page."""
    zone, key = desk.zone, desk.zone.admin
    zone.create_stream("orders")
    for group in ("one", "other"):
        body = {"name": group, "streams": ["orders"]}
        assert desk.hub.call("POST", "/v1/pattern-groups", body, key=key).status == 201
        patterns = [
            {"group": group, "name": f"{group}-{n}", "language": "ready", "text": "{a: A}"}
            for n in range(2)
        ]
        made = desk.hub.call("POST", "/v1/patterns", patterns, key=key).json["items"]
    path = f"/v1/patterns/{made[1]['id']}"
    assert desk.hub.call("PATCH", path, {"suspended": True}, key=key).status == 200

    page = desk.open("patterns", "Patterns")
    rows = page.get_by_role("table", name="Patterns").locator("tbody tr")
    expect(rows).to_have_count(4)
    page.get_by_role("table", name="Pattern groups").get_by_text("other", exact=True).click()
    desk.drawer("Pattern group").get_by_role("button", name="Show its patterns").click()
    expect(rows).to_have_count(2)
    page.get_by_role("combobox", name="In the state").click()
    page.get_by_role("option", name="suspended").click()
    expect(rows).to_have_count(1)
    expect(rows).to_contain_text("other-1")
    page.get_by_role("combobox", name="In the state").click()
    page.get_by_role("option", name="ended", exact=True).click()
    expect(page.get_by_text("No such patterns")).to_be_visible()
