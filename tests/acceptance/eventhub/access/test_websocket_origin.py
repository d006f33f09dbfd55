"""Pages that open a websocket: those of the hub and of listed origins. Programs send no origin."""

import json
from collections.abc import Iterator

import pytest
from websockets.asyncio.client import connect
from websockets.exceptions import InvalidStatus

from tests.live import LiveHub, LiveZone
from tests.live_processes import WebProcess


@pytest.fixture(scope="module")
def listing(hub: LiveHub, tmp_path_factory: pytest.TempPathFactory) -> Iterator[WebProcess]:
    """Yield one more web process of the hub, with origins in both settings."""
    env = {
        **hub.env,
        "EVENTHUB_ORIGINS": "https://hub.example.org",
        "EVENTHUB_CORS_ORIGINS": "https://*.pages.example, http://127.0.0.1:5173, null",
    }
    web = WebProcess("listing", env, tmp_path_factory.mktemp("listing") / "web.log")
    web.start()
    try:
        yield web
    finally:
        web.stop()


async def opened(zone: LiveZone, url: str, **origin: str) -> str:
    """Return "" if a websocket opens, else the code of the refusal. The connection always leads to
    the hub, under any name.
    """
    headers = {"Authorization": f"Bearer {zone.admin}", **origin}
    try:
        async with connect(url, additional_headers=headers, host="127.0.0.1"):
            return ""
    except InvalidStatus as error:
        assert error.response.status_code == 403
        assert error.response.headers["content-type"] == "application/problem+json"
        return str(json.loads(error.response.body or b"")["code"])


async def test_own_pages_and_programs_connect(hub: LiveHub, zone: LiveZone) -> None:
    own = hub.url
    assert await opened(zone, hub.ws_url) == ""
    assert await opened(zone, hub.ws_url, Origin=own) == ""
    assert await opened(zone, hub.ws_url, Origin=own.upper()) == ""


@pytest.mark.parametrize(
    "origin",
    [
        "https://evil.example",
        "http://127.0.0.1",
        "http://127.0.0.1:1",
        "null",
        "",
        "file://",
        "http://127.0.0.1:99999",
        "http://[",
    ],
)
async def test_pages_of_other_origins_are_refused(
    hub: LiveHub, zone: LiveZone, origin: str
) -> None:
    assert await opened(zone, hub.ws_url, Origin=origin) == "origin_not_allowed"


async def test_a_name_that_is_not_the_hubs_makes_no_own_origin(
    hub: LiveHub, zone: LiveZone
) -> None:
    """As after DNS rebinding: the page's host and the request's are the same, and foreign."""
    port = hub.url.rpartition(":")[2]
    for name, outcome in (("evil.example", "origin_not_allowed"), ("localhost", "")):
        origin = f"http://{name}:{port}"
        url = hub.ws_url.replace("127.0.0.1", name)
        assert await opened(zone, url, Origin=origin) == outcome


async def test_listed_origins_connect(zone: LiveZone, listing: WebProcess) -> None:
    for origin in (
        *("https://hub.example.org", "https://a.pages.example", "https://a.b.pages.example"),
        *("http://127.0.0.1:5173", "null"),
    ):
        assert await opened(zone, listing.ws_url, Origin=origin) == "", origin
    for origin in ("http://hub.example.org", "https://pages.example", "https://xpages.example"):
        assert await opened(zone, listing.ws_url, Origin=origin) == "origin_not_allowed", origin
