"""Every page in light and dark, on a desk and on a telephone: readable and reachable."""

from collections.abc import Sequence
from itertools import chain, zip_longest
from pathlib import Path
from typing import Any, Literal

import pytest
from playwright.sync_api import Page, expect

from tests.browser.desk import Desk
from tests.live import LiveZone

AXE = Path(__file__).parents[2] / "frontend/node_modules/axe-core/axe.min.js"
PAGES = {
    "overview": "Overview",
    "live?stream=orders&from=oldest": "Live events",
    "filters?language=predicate&stream=orders&filter=(and (> n 0) (> n n))": "Filters",
    "registrations": "Registrations",
    "groups": "Groups",
    "endpoints": "Endpoints",
    "deliveries": "Deliveries",
    "deliveries?stream=orders&status=500": "Deliveries",
    "dead-letters": "Dead letters",
    "replays": "Replays",
    "replays/new?stream=orders&language=predicate&filter=(> n 0)": "New replay",
    "replays/new?source=deliveries&outcome=status&status=500": "New replay",
    "streams": "Streams",
    "streams/orders/events": "orders",
    "streams/orders/live?from=oldest": "orders",
    "streams/orders/interest": "orders",
    "streams/orders/match-index": "orders",
    "streams/orders/segments": "orders",
    "streams/orders/policy": "orders",
    "streams/stock/state": "stock",
    "types": "Types",
    "types/shop/order.placed": "order.placed",
    "applications": "Applications",
    "patterns": "Patterns",
    "sessions": "Sessions",
    "connectors": "Connectors",
    "timers": "Timers",
    "channels": "Channels",
    "clients": "Clients",
    "limits": "Limits",
    "storage": "Storage",
    "members": "Members",
    "traces": "Traces",
    "jobs": "Jobs",
    "audit-trail?client=tester": "Audit trail",
    "operators": "Operators",
    "jobs/backtest?stream=orders": "Back-test",
    "jobs/backtest?streams=orders&pattern={a: A}": "Back-test",
    "jobs/retention?stream=orders": "Retention",
}
ENDPOINT_TABS = ("overview", "statistics", "secrets", "authentication", "retries")
FORMS = {  # what opens each
    "filters?language=predicate&stream=orders&filter=(and (> n 0) (> n n))": "Register it",
    "registrations": "New registration",
    "groups": "New group",
    "endpoints": "New endpoint",
    "streams": "New stream",
    "types": "New type",
    "applications": "New application",
    "patterns": "New pattern",
    "sessions": "New session",
    "connectors": "New connector",
    "timers": "New timer",
    "channels": "New channel",
    "clients": "New client",
    "operators": "New operator",
    "limits": "Change the limits",
    "storage": "Change the quota",
}
LOOKS: tuple[tuple[Literal["light", "dark"], int], ...] = (("light", 1280), ("dark", 380))
# what depends on colours and sizes; the other rules find the same in both looks of a page
OF_LOOK = ("color-contrast", "link-in-text-block", "scrollable-region-focusable")
WCAG = ("wcag2a", "wcag2aa", "wcag21a", "wcag21aa")
WIDER = "document.documentElement.scrollWidth - document.documentElement.clientWidth"
CUT_OFF = """() => [...document.querySelectorAll("button, input, a, label")].filter((one) => {
  const { width, right } = one.getBoundingClientRect();
  if (width <= 1 || right <= innerWidth + 1 || !one.checkVisibility()) return false;
  for (let outer = one.parentElement; outer; outer = outer.parentElement)
    if (["auto", "scroll"].includes(getComputedStyle(outer).overflowX)) return false;
  return true;
}).map((one) => one.outerHTML.slice(0, 200))"""  # what nobody can reach, as nothing scrolls to it


def fill(zone: LiveZone) -> int:
    """Create something for every page; return the number of an endpoint."""
    zone.create_stream("orders")
    zone.emit("orders", [{"domain": "shop", "type": "order.placed", "attributes": {"n": 1}}] * 5)
    registration = {
        "streams": ["orders"],
        "type": "order.placed",
        "attributes": {"address.city": "Basel"},
    }
    [made] = zone.register(
        {**registration, "callback": "https://example.org/a-path-that-is-rather-long-too"}
    )
    zone.define_channel("alarms", 0)
    counted = {"domain": "shop", "type": "stock.counted", "key": "item/1"}
    assert zone.hub.call("PUT", "/v1/streams/stock", {"keyed": True}, key=zone.admin).status == 201
    zone.emit("stock", counted)
    schema = {"type": "object", "properties": {"n": {"type": "number"}}}
    path = "/v1/types/shop/order.placed"
    assert zone.hub.call("PUT", path, {"schema": schema}, key=zone.admin).status == 201
    group = {"name": "security", "streams": ["orders"]}
    assert zone.hub.call("POST", "/v1/pattern-groups", group, key=zone.admin).status == 201
    pattern = {
        "group": "security",
        "name": "placed-twice",
        "language": "ready",
        "text": "{a: order.placed}; {b: order.placed} per $n within 1h",
    }
    assert zone.hub.call("POST", "/v1/patterns", pattern, key=zone.admin).status == 201
    endpoint: int = made["endpoint"]
    return endpoint


def violations(
    page: Page, *more: str, rules: Sequence[str] = (), within: str = "html", but: str = "nav"
) -> list[str]:
    """Return the violations of WCAG 2.1 AA and of further rules, or of `rules` alone, that axe
    finds, with the element, in the elements that the selector `within` chooses, outside those of
    `but`: the navigation is the same on each page.
    """
    if not page.evaluate("'axe' in window"):
        page.evaluate(AXE.read_text())
    chosen = {"type": "rule", "values": rules} if rules else [*WCAG, *more]
    # of what axe may load first, no rule of these reads the styles
    options = {"runOnly": chosen, "resultTypes": ["violations"], "preload": {"assets": ["media"]}}
    places = {"include": [[within]], "exclude": [[but]] if but else []}
    ask = "([places, options]) => axe.run(places, options)"
    found: dict[str, Any] = page.evaluate(ask, [places, options])
    return [
        f"{rule['id']}: {node['html'][:160]} {node['failureSummary'][:200]}"
        for rule in found["violations"]
        for node in rule["nodes"]
    ]


def look(page: Page, scheme: Literal["light", "dark"], width: int) -> None:
    page.emulate_media(color_scheme=scheme)
    page.set_viewport_size({"width": width, "height": 844})
    expect(page.locator(f"html[data-mantine-color-scheme={scheme}]")).to_have_count(1)


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_every_page_and_form_is_accessible_and_fits(desk: Desk) -> None:
    """The navigation is the same on each page, so it is checked on one."""
    assert FORMS.keys() <= PAGES.keys()
    endpoint = fill(desk.zone)
    of_it = {f"endpoints/{endpoint}/{tab}": f"Endpoint {endpoint}" for tab in ENDPOINT_TABS}
    pages = [*PAGES.items(), *of_it.items()]
    middle = (len(pages) + 1) // 2  # of two neighbours in a half, both may have the same heading
    alternating = chain(*zip_longest(pages[:middle], pages[middle:]))
    page = desk.open("limits", "Limits")
    for scheme, width in LOOKS:
        look(page, scheme, width)
        assert violations(page, "best-practice", but="") == [], scheme
    assert page.locator("[role=option]").count() == 0  # closed lists, of up to 1,000 zones
    looks = LOOKS
    for path, heading in filter(None, alternating):
        looks = (looks[1], looks[0])  # a page has the first look that the one before had last
        page = desk.turn_to(path, heading)
        expect(page.get_by_label("Loading")).to_have_count(0)
        for scheme, width in looks:
            look(page, scheme, width)
            expect(desk.heading(heading)).to_be_visible()
            page.wait_for_function(f"{WIDER} <= 0")  # else it is wider than the screen
            assert page.evaluate(CUT_OFF) == [], (path, width)
            rules = () if (scheme, width) == looks[0] else OF_LOOK
            found = violations(page, "best-practice", rules=rules)
            assert found == [], (path, scheme)
        if path in FORMS:
            desk.button(FORMS[path]).click()
            expect(page.get_by_role("dialog").get_by_role("textbox").first).to_be_visible()
            expect(page.get_by_label("Loading")).to_have_count(0)
            assert violations(page, within="[role=dialog]") == [], path


def test_the_chosen_colours_stay(desk: Desk) -> None:
    page = desk.open("overview", "Overview")
    desk.page.get_by_role("button", name="Colours").click()
    page.get_by_role("menuitem", name="Dark").click()
    dark = page.locator("html[data-mantine-color-scheme=dark]")
    expect(dark).to_have_count(1)
    page.reload()
    expect(dark).to_have_count(1)
    expect(desk.heading("Overview")).to_be_visible()
    desk.leave_console()  # else it is dark for the next test


def test_keys_lead_everywhere(desk: Desk) -> None:
    page = desk.open("overview", "Overview")
    for key, heading in (("l", "Live events"), ("s", "Streams"), ("t", "Types"), ("h", "Channels"),
                         ("a", "Applications"), ("g", "Connectors"), ("i", "Timers"),
                         ("f", "Filters"), ("r", "Registrations"), ("n", "Sessions"),
                         ("p", "Groups"), ("m", "Limits"), ("b", "Members"), ("z", "Traces"),
                         ("u", "Audit trail"), ("w", "Operators"), ("v", "Patterns"),
                         ("e", "Endpoints"), ("d", "Deliveries"), ("x", "Dead letters"),
                         ("y", "Replays"), ("c", "Clients"), ("q", "Storage"), ("j", "Jobs"),
                         ("o", "Overview")):  # fmt: skip
        page.keyboard.type(f"g{key}")
        expect(desk.heading(heading)).to_be_visible()
    page.keyboard.press("?")
    expect(page.get_by_role("dialog", name="Keyboard")).to_be_visible()
    page.keyboard.press("Escape")
    expect(page.get_by_role("dialog")).to_be_hidden()


def test_keys_that_are_typed_into_a_field_lead_nowhere(desk: Desk) -> None:
    page = desk.open("live?stream=system", "Live events")
    desk.button("Filter").click()
    page.get_by_label("Domain").press_sequentially("gd?")
    expect(page.get_by_label("Domain")).to_have_value("gd?")
    expect(desk.heading("Live events")).to_be_visible()


def test_the_skip_link_comes_first_and_the_focus_is_seen(desk: Desk) -> None:
    page = desk.open("overview", "Overview")
    expect(page.get_by_label("Loading")).to_have_count(0)  # else the focus goes with what is shown
    page.keyboard.press("Tab")
    skip = page.get_by_role("link", name="Skip to the content")
    expect(skip).to_be_focused()
    expect(skip).to_be_in_viewport()
    page.keyboard.press("Enter")
    expect(page.locator("#content")).to_be_focused()
    for _ in range(3):
        page.keyboard.press("Tab")
        outline = page.evaluate("getComputedStyle(document.activeElement).outlineStyle")
        assert outline != "none", page.evaluate("document.activeElement.outerHTML")
