"""The commands of the pages for those who come from other products, run as printed."""

import json
import os
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.live import LiveZone

DOCS = Path(__file__).resolve().parents[4] / "docs"
BLOCK = re.compile(r"^```sh\n(.*?)^```", re.MULTILINE | re.DOTALL)
Run = Callable[[str], list[dict[str, Any]]]


@pytest.fixture
def run(zone: LiveZone, tmp_path: Path) -> Run:
    """Return a function that runs the commands of a page with a new key, and returns the answers
    that they print.
    """
    (tmp_path / ".venv").symlink_to(sys.prefix)
    (tmp_path / ".curlrc").write_text("fail-with-body\nsilent\n")
    zone.create_stream("orders")
    key = zone.key("manage:*", "emit:*", "listen:*", client="shop")
    env = {**os.environ, "CURL_HOME": str(tmp_path), "no_proxy": "*",
           "HUB": zone.hub.url, "KEY": key}  # fmt: skip

    def run(page: str) -> list[dict[str, Any]]:
        script = "".join(BLOCK.findall((DOCS / page).read_text()))
        words = ["/bin/bash", "-euo", "pipefail", "-c", script]
        done = subprocess.run(words, cwd=tmp_path, env=env, capture_output=True, text=True)
        assert done.returncode == 0, done.stdout + done.stderr
        return _documents(done.stdout)

    return run


def _documents(text: str) -> list[dict[str, Any]]:
    """Return the JSON documents of a text, one after the other."""
    found, at, decoder = [], 0, json.JSONDecoder()
    while at < len(text.rstrip()):
        document, at = decoder.raw_decode(text, at)
        found.append(document)
    return found


def test_a_customer_of_svix_has_a_webhook_and_gets_its_event(run: Run, zone: LiveZone) -> None:
    *_, registration, receipt = run("coming-from-svix.md")
    assert registration["client"] == "acme"
    assert registration["secret"].startswith("whsec_")
    assert receipt["ranges"][0]["last"] == 1
    read = "/v1/streams/messages/events?from=oldest"
    body = {"grants": [{"action": "listen", "streams": "messages"}]}
    acme = zone.hub.call("POST", "/v1/clients/acme/keys", body, key=zone.admin).json["key"]
    for key, seen in ((acme, 1), (zone.admin, 0)):
        assert len(zone.hub.call("GET", read, key=key).json["events"]) == seen


def test_a_rule_of_eventbridge_matches_its_event(run: Run, zone: LiveZone) -> None:
    _, checked, registration, _ = run("coming-from-eventbridge.md")
    assert checked["warnings"] == []
    assert checked["predicate"] == registration["predicate"]
    matches = zone.hub.call("GET", "/v1/streams/bus/events/1/matches", key=zone.admin).json
    assert [one["id"] for one in matches["matches"]] == [registration["id"]]


def test_a_consumer_of_nats_pulls_and_acknowledges(run: Run) -> None:
    session, registration, receipt, acknowledged = run("coming-from-nats.md")
    assert session["attempts_max"] == 5
    assert registration["session"] == "shipping"
    assert acknowledged["streams"][0]["cursor"]["sequence"] == receipt["ranges"][0]["last"]


def test_a_group_of_kafka_shares_by_key(run: Run) -> None:
    *_, one, two = run("coming-from-kafka.md")
    orders = [[each["event"]["attributes"]["order"] for each in pull["events"]]
              for pull in (one, two)]  # fmt: skip
    assert orders == [[1], [3]]


def test_a_browser_of_centrifugo_reads_with_a_token(run: Run) -> None:
    _, page = run("coming-from-centrifugo.md")
    assert [each["event"]["type"] for each in page["events"]] == ["order.sent"]
