"""A browser's own EventSource at the SSE route: it resumes by itself, and after a refusal the page
mints another token.
"""

import json
from collections.abc import Iterator
from typing import Any

import pytest
from playwright.sync_api import Browser, Page

from tests.acceptance.wire import numbered
from tests.live import LiveHub, LiveZone

WAIT_MS = 20_000
# What a page does; nothing but the standard's own interface.
PAGE = """
(url) => {
  window.received = []; window.states = []; window.opened = 0;
  const source = new EventSource(url);
  source.addEventListener('event', (m) => {
    window.received.push([m.lastEventId, JSON.parse(m.data)]);
  });
  source.addEventListener('gap', (m) => window.states.push(['gap', JSON.parse(m.data)]));
  source.onopen = () => { window.opened += 1; };
  source.onerror = () => window.states.push(['error', source.readyState]);
  window.source = source;
}
"""


@pytest.fixture
def page(chromium: Browser, hub: LiveHub) -> Iterator[Page]:
    """Yield an empty page of the hub's origin."""
    context = chromium.new_context()
    opened = context.new_page()
    opened.set_default_timeout(WAIT_MS)
    opened.route("**/empty", lambda route: route.fulfill(body="", content_type="text/html"))
    opened.goto(f"{hub.web[1].url}/empty")
    yield opened
    context.close()


def listen(page: Page, hub: LiveHub, token: str, start: str) -> None:
    url = f"{hub.web[1].url}/v1/streams/orders/events?from={start}&access_token={token}"
    page.evaluate(PAGE, url)


def received(page: Page, count: int) -> list[dict[str, Any]]:
    """Return the first `count` events, once they have arrived."""
    page.wait_for_function(f"window.received.length >= {count}", polling=20)
    found: list[Any] = json.loads(page.evaluate("JSON.stringify(window.received)"))
    for id, event in found:
        assert id == f"{event['segment']}:{event['sequence']}"
    return [event for _, event in found]


def test_an_event_source_resumes_by_itself(hub: LiveHub, zone: LiveZone, page: Page) -> None:
    """Its process dies in the middle; nothing is lost, and nothing comes twice."""
    zone.create_stream("orders", segment_events_max=3)
    zone.emit("orders", numbered(1, 4))
    listen(page, hub, zone.token(), "oldest")
    received(page, 4)
    hub.web[1].kill()
    zone.emit("orders", numbered(5, 8))
    hub.web[1].start()
    received(page, 8)
    zone.emit("orders", numbered(9, 10))
    events = received(page, 10)
    assert [(one["prev"], one["sequence"]) for one in events] == [(n - 1, n) for n in range(1, 11)]
    assert [one["liveness"] for one in events[:4]] == ["playback"] * 4
    assert {one["liveness"] for one in events[4:8]} == {"recovery"}
    assert page.evaluate("window.opened") >= 2


def test_a_refused_event_source_ends_and_another_token_goes_on(
    hub: LiveHub, zone: LiveZone, page: Page
) -> None:
    """The key behind the token is revoked: the browser receives 401 and stops reconnecting."""
    zone.create_stream("orders")
    zone.emit("orders", numbered(1, 2))
    key = zone.key("listen:orders")
    listen(page, hub, zone.token(key), "oldest")
    last = received(page, 2)[-1]
    zone.revoke(key)
    page.wait_for_function("window.source.readyState === EventSource.CLOSED", polling=20)
    zone.emit("orders", numbered(3, 3))
    again = zone.token(zone.key("listen:orders"))
    listen(page, hub, again, f"{last['segment']}:{last['sequence']}")
    assert [(one["prev"], one["sequence"]) for one in received(page, 1)] == [(2, 3)]


def test_an_event_source_continues_after_a_reported_gap(
    hub: LiveHub, zone: LiveZone, page: Page
) -> None:
    zone.create_stream("orders", segment_events_max=2)
    ranges = zone.emit("orders", numbered(1, 6)).json["ranges"]
    hub.sql("UPDATE segments SET tier = 'dropped' WHERE uuid = %s", ranges[1]["segment"])
    hub.sql("UPDATE segments SET tier = 'dropped' WHERE uuid = %s", ranges[0]["segment"])
    listen(page, hub, zone.token(), f"{ranges[0]['segment']}:1")
    events = received(page, 2)
    assert [(one["prev"], one["sequence"]) for one in events] == [(4, 5), (5, 6)]
    [[kind, gap]] = page.evaluate("window.states")
    assert (kind, gap["code"], gap["missed"]) == ("gap", "gap", {"first": 2, "last": 4})
