"""The TypeScript client in a page: with a connection token, which a websocket has in its URL."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, Page, Route

from tests.acceptance.wire import numbered
from tests.live import LiveHub, LiveZone
from tests.typescript_client import build

WAIT_MS = 20_000
IN_PAGE = """
async ([token, session]) => {
  const { HubClient } = await import("/client/index.js");
  const hub = new HubClient(location.origin, async () => token);
  const refused = new HubClient(location.origin, async () => "no-token");
  const signal = AbortSignal.timeout(20_000);
  const found = {};
  for (const transport of ["websocket", "sse", "poll"]) {
    found[transport] = [];
    for await (const event of hub.listen("orders", { start: "oldest", transport, signal })) {
      if (found[transport].push(event.event.attributes.n) === 3) break;
    }
    try {
      for await (const event of refused.listen("orders", { transport, signal })) event;
    } catch (error) {
      found[transport].push(error.name);
    }
  }
  const consumer = hub.session(session, { signal });
  for await (const event of consumer) {
    await consumer.acknowledge(event, { stored: true });
    found.session = event.event.attributes.n;
    break;
  }
  return JSON.stringify(found);
}
"""


@pytest.fixture
def page(chromium: Browser, hub: LiveHub, tmp_path: Path) -> Iterator[Page]:
    """Yield a page that the hub serves, which has the client under /client/."""
    build(tmp_path)

    def file(route: Route) -> None:
        name = route.request.url.rpartition("/client/")[2]
        route.fulfill(path=tmp_path / name, content_type="text/javascript")

    context = chromium.new_context(bypass_csp=True)
    opened = context.new_page()
    opened.set_default_timeout(WAIT_MS)
    opened.route("**/client/**", file)
    opened.goto(f"{hub.web[0].url}/docs/errors")
    yield opened
    context.close()


def test_a_page_listens_with_a_token_and_sees_why_it_is_refused(
    hub: LiveHub, zone: LiveZone, page: Page
) -> None:
    zone.create_stream("orders")
    made = hub.call("POST", "/v1/sessions", {"name": "s", "kind": "consumer"}, key=zone.admin)
    assert made.status == 201, made
    zone.register({"streams": ["orders"], "session": "s"})
    zone.emit("orders", numbered(1, 3))
    found: dict[str, Any] = json.loads(page.evaluate(IN_PAGE, [zone.token(), "s"]))
    each = [1, 2, 3, "NotAllowed"]
    assert found == {"websocket": each, "sse": each, "poll": each, "session": 1}
