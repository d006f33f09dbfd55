"""An operator at the console: pages opened in a zone, and what they said that they should not."""

import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from playwright.sync_api import Browser, ConsoleMessage, Error, Locator, Page, ViewportSize, expect

from tests.live import LiveHub, LiveZone

WAIT_MS = 60_000  # the machine may be busy; what is there is found at once
SIZE: ViewportSize = {"width": 1280, "height": 720}
TURN = "path => { history.pushState(null, '', path); dispatchEvent(new PopStateEvent('popstate')) }"
NOWHERE, NO_PAGE = "/console/nowhere", "There is no such page"
_REFUSALS = re.compile(r"Failed to load resource|WebSocket connection")  # the tests provoke them
expect.set_options(timeout=WAIT_MS)


@contextmanager
def window(browser: Browser, **options: Any) -> Iterator[Page]:
    """Open a window without animations: a busy machine would press a button where it was a moment
    before.
    """
    context = browser.new_context(**{"reduced_motion": "reduce", "viewport": SIZE, **options})
    context.set_default_timeout(WAIT_MS)
    try:
        yield context.new_page()
    finally:
        context.close()


class Desk:
    """`page` is the browser's; `open(...)` goes to a page of the console, signed in. The console is
    loaded once for several tests, which takes longer than most of them; those of what a load does
    reload the page.
    """

    def __init__(self, page: Page, hub: LiveHub, zone: LiveZone) -> None:
        self.page = page
        self.context = page.context
        self.hub = hub
        self.zone = zone
        self.complaints: list[str] = []

    @classmethod
    @contextmanager
    def opened(
        cls, browser: Browser, hub: LiveHub, zone: LiveZone, **options: Any
    ) -> Iterator["Desk"]:
        """Open a desk in a window of its own. `options` are those of a browser's context:
        `color_scheme`, and so on.
        """
        with window(browser, **options) as page, cls.at(page, hub, zone) as desk:
            yield desk

    @classmethod
    @contextmanager
    def at(cls, page: Page, hub: LiveHub, zone: LiveZone) -> Iterator["Desk"]:
        """Open a desk in a window that others have used; it is left like a new one, but for its
        cache and the console, which stays loaded after a test that passed.
        """
        desk = cls(page, hub, zone)
        page.on("pageerror", desk._fail)
        page.on("console", desk._hear)
        try:
            yield desk
            assert desk.complaints == [], desk.complaints
            desk._leave()
        except BaseException:
            desk.leave_console()
            raise
        finally:
            page.remove_listener("pageerror", desk._fail)
            page.remove_listener("console", desk._hear)

    def sign_in(self) -> None:
        """Sign in with the cookies of the hub's operator, as a login leaves them."""
        pairs = self._cookies().items()
        self.context.add_cookies([{"name": n, "value": v, "url": self.hub.url} for n, v in pairs])

    def open(self, page: str, heading: str) -> Page:
        """Return a page by its path in the zone, once its heading is there. All of the page is new:
        the one before is left first.
        """
        if not self._leave_page():
            self.sign_in()
            self.page.goto(f"{self.hub.url}{NOWHERE}")
        return self.turn_to(page, heading)

    def turn_to(self, page: str, heading: str) -> Page:
        """Return another page than the present one, without loading the console again, as by a
        link, once its heading is there, which is another one.
        """
        expect(self.heading(heading)).to_have_count(0)
        self.page.evaluate(TURN, f"/console/zones/{self.zone.name}/{page}")
        expect(self.heading(heading)).to_be_visible()
        return self.page

    def heading(self, text: str) -> Locator:
        return self.page.get_by_role("heading", name=text, level=1, exact=True)

    def drawer(self, noun: str) -> Locator:
        """Return the drawer of one object: that of `Session 5`, not those of `New session` and of
        `Session group 5`, which may still be closing.
        """
        return self.page.get_by_role("dialog", name=re.compile(rf"^{noun} \S+$"))

    def button(self, name: str) -> Locator:
        return self.page.get_by_role("button", name=name, exact=True)

    def _leave(self) -> None:
        """Leave the window to another test."""
        if not self._leave_page():
            self.leave_console()
            return
        self.page.evaluate("localStorage.clear(); sessionStorage.clear()")
        self._look_as_at_first()

    def _leave_page(self) -> bool:
        """Return whether the console is loaded for the hub's operator, after leaving its page."""
        if not self.page.url.startswith(f"{self.hub.url}/console"):
            return False
        if {one["name"]: one["value"] for one in self.context.cookies()} != self._cookies():
            return False
        if not self.page.url.endswith(NOWHERE):
            self.page.evaluate(TURN, NOWHERE)
            expect(self.heading(NO_PAGE)).to_be_visible()
        return True

    def leave_console(self) -> None:
        """End what the console has in memory, and the login."""
        if self.page.url.startswith("http"):
            self.page.evaluate("localStorage.clear(); sessionStorage.clear()")
        self.context.clear_cookies()
        self.page.goto(f"{self.hub.url}/healthz")  # of the same site: its process stays
        self._look_as_at_first()

    def _look_as_at_first(self) -> None:
        self.page.emulate_media(color_scheme="light")
        if self.page.viewport_size != SIZE:
            self.page.set_viewport_size(SIZE)

    def _cookies(self) -> dict[str, str]:
        cookies = self.hub.operator()["Cookie"].split("; ")
        return dict(cookie.split("=", 1) for cookie in cookies)

    def _fail(self, error: Error) -> None:
        self.complaints.append(str(error))

    def _hear(self, message: ConsoleMessage) -> None:
        if message.type in ("error", "warning") and not _REFUSALS.search(message.text):
            self.complaints.append(message.text)
