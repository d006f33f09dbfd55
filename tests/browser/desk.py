"""An operator at the console: pages opened in a zone, and what they said that they should not."""

import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from playwright.sync_api import Browser, BrowserContext, ConsoleMessage, Locator, Page, expect

from tests.live import LiveHub, LiveZone

WAIT_MS = 15_000  # the machine may be busy; what is there is found at once
_REFUSALS = re.compile(r"Failed to load resource|WebSocket connection")  # the tests provoke them
expect.set_options(timeout=WAIT_MS)


class Desk:
    """`page` is the browser's; `open(...)` goes to a page of the console, signed in."""

    def __init__(self, context: BrowserContext, hub: LiveHub, zone: LiveZone) -> None:
        self.context = context
        self.hub = hub
        self.zone = zone
        self.complaints: list[str] = []
        context.set_default_timeout(WAIT_MS)
        self.page: Page = context.new_page()
        self.page.on("pageerror", lambda error: self.complaints.append(str(error)))
        self.page.on("console", self._hear)

    @classmethod
    @contextmanager
    def opened(
        cls, browser: Browser, hub: LiveHub, zone: LiveZone, **options: Any
    ) -> Iterator["Desk"]:
        """`options` are those of a browser's context: `color_scheme`, `viewport`. Nothing moves by
        itself: a busy machine presses a button where it was a moment before.
        """
        context = browser.new_context(**{"reduced_motion": "reduce", **options})
        try:
            desk = cls(context, hub, zone)
            yield desk
            assert desk.complaints == [], desk.complaints
        finally:
            context.close()

    def sign_in(self) -> None:
        """With the cookies of the hub's operator, as a login leaves them."""
        cookies = self.hub.operator()["Cookie"].split("; ")
        pairs = [cookie.split("=", 1) for cookie in cookies]
        self.context.add_cookies([{"name": n, "value": v, "url": self.hub.url} for n, v in pairs])

    def open(self, page: str, heading: str) -> Page:
        """A page by its path in the zone, once its heading is there."""
        self.sign_in()
        self.page.goto(f"{self.hub.url}/console/zones/{self.zone.name}/{page}")
        expect(self.heading(heading)).to_be_visible()
        return self.page

    def heading(self, text: str) -> Locator:
        return self.page.get_by_role("heading", name=text, level=1, exact=True)

    def button(self, name: str) -> Locator:
        return self.page.get_by_role("button", name=name, exact=True)

    def _hear(self, message: ConsoleMessage) -> None:
        if message.type in ("error", "warning") and not _REFUSALS.search(message.text):
            self.complaints.append(message.text)
