"""The built console in a real Chromium, against the running hub of tests/live.py.

Every page fails its test when it reports an error of its own: an exception, or something that the
page's policy forbids.
"""

import os
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, sync_playwright

from eventhub.web import console
from tests.browser.desk import Desk, window
from tests.live import LiveHub, LiveZone


@pytest.fixture(scope="package")
def chromium() -> Iterator[Browser]:
    """Yield one browser for all tests; it ends before others run event loops of their own."""
    found = map(shutil.which, ("chromium-headless-shell", "chromium", "chromium-browser"))
    program = next(filter(None, found), None)
    if program is None:
        pytest.fail("Chromium is needed: as root, .ci/run installs it with apt-get")
    if not (Path(console.DIST) / "index.html").is_file():
        pytest.fail("the console is not built: make console")
    arguments = ["--no-sandbox"] if os.geteuid() == 0 else []
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=program, args=arguments)
        yield browser
        browser.close()


@pytest.fixture(scope="package")
def shared(chromium: Browser) -> Iterator[Page]:
    """Yield one window for most tests: a new one compiles the whole console first."""
    with window(chromium) as page:
        yield page


@pytest.fixture
def desk(shared: Page, hub: LiveHub, zone: LiveZone) -> Iterator[Desk]:
    """Yield an operator at a browser, in a zone of the test's own."""
    with Desk.at(shared, hub, zone) as opened:
        yield opened
