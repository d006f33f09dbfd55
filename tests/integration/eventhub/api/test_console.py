"""The caller_with that serves the console: what may be stored, what may run, what is not there."""

import gzip
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from django.test import Client

from eventhub.web import console
from tests.integration.access_world import refused

PAGE = f'<!doctype html><script nonce="{console.NONCE}" src="/console/assets/app-1a.js"></script>'
SCRIPT = b"console.log('it is there')"


@pytest.fixture
def built(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Yield a console as the build leaves it, with a secret beside it."""
    (tmp_path / "secret.js").write_text("secret")
    dist = tmp_path / "dist"
    (dist / "assets").mkdir(parents=True)
    (dist / "index.html").write_text(PAGE)
    (dist / "icon.svg").write_text("<svg/>")
    (dist / "assets" / "app-1a.js").write_bytes(SCRIPT)
    (dist / "assets" / "app-1a.js.gz").write_bytes(gzip.compress(SCRIPT))
    monkeypatch.setattr(console, "DIST", dist)
    yield dist


@pytest.fixture
def browser() -> Client:
    return Client()


@pytest.mark.parametrize("path", ["/", "/console"])
def test_the_hubs_own_address_leads_to_the_console(browser: Client, path: str) -> None:
    answer = browser.get(path)
    assert (answer.status_code, answer["Location"]) == (302, "/console/")


@pytest.mark.parametrize(
    "path", ["/console/", "/console/live", "/console/zones/a/streams/shop.orders"]
)
def test_every_path_of_the_console_is_its_page(browser: Client, built: Path, path: str) -> None:
    answer = browser.get(path)
    assert answer.status_code == 200
    assert answer["Cache-Control"] == "no-store"
    assert b"/console/assets/app-1a.js" in answer.content


def test_the_page_runs_only_scripts_with_its_nonce_or_of_its_origin(
    browser: Client, built: Path
) -> None:
    first, second = (browser.get("/console/") for _ in range(2))
    policies = [answer["Content-Security-Policy"] for answer in (first, second)]
    nonces = [re.findall(r"'nonce-([^']+)'", policy)[0] for policy in policies]
    assert nonces[0] != nonces[1]
    assert f'nonce="{nonces[0]}"'.encode() in first.content
    assert "unsafe" not in policies[0] and "http" not in policies[0]
    for part in ("default-src 'none'", "frame-ancestors 'none'", "base-uri 'none'"):
        assert part in policies[0]


def test_assets_are_cached_for_ever_and_other_files_are_revalidated(
    browser: Client, built: Path
) -> None:
    script = browser.get("/console/assets/app-1a.js")
    assert (script.status_code, script.content) == (200, SCRIPT)
    assert script["Content-Type"].startswith("text/javascript")
    assert "immutable" in script["Cache-Control"]
    assert browser.get("/console/icon.svg")["Cache-Control"] == "no-cache"


def test_a_compressed_file_is_sent_to_clients_that_accept_it(browser: Client, built: Path) -> None:
    packed = browser.get("/console/assets/app-1a.js", headers={"Accept-Encoding": "br, gzip"})
    assert packed["Content-Encoding"] == "gzip"
    assert gzip.decompress(packed.content) == SCRIPT
    assert packed["Vary"] == "Accept-Encoding"


@pytest.mark.parametrize(
    "path",
    [
        "assets/app-2b.js", "assets/", "assets/app-1a.map", "../secret.js",
        "assets/../../secret.js",
        "%2e%2e/secret.js", "assets/%2e%2e/%2e%2e/secret.js", "index.html", "assets/app-1a.js/x.js",
        "icon.svg%00", "assets/app-1a.js.gz",
    ],
)  # fmt: skip
def test_a_path_that_is_no_file_of_the_console_is_404(
    browser: Client, built: Path, path: str
) -> None:
    refused(browser.get(f"/console/{path}"), 404, "not_found")


@pytest.mark.parametrize("path", ["/", "/console/", "/console/assets/app-1a.js"])
def test_the_console_is_only_read(browser: Client, built: Path, path: str) -> None:
    answer = browser.post(path)
    refused(answer, 405, "method_not_allowed")
    assert answer["Allow"] == "GET, HEAD"


def test_a_missing_build_of_the_console_is_answered_with_the_command(
    browser: Client, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(console, "DIST", tmp_path / "nowhere")
    answer = browser.get("/console/live")
    assert answer.status_code == 503
    assert b"make setup" in answer.content
    assert answer["Cache-Control"] == "no-store"
