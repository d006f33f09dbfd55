"""`eventhub relay`, and what `replay --forward` sends again, in a shell."""

from pathlib import Path
from typing import Any

import orjson
import pytest

from tests.acceptance.eventhub_client.test_command_line import SECRET, ns
from tests.acceptance.shell import Shell
from tests.acceptance.wire import EVENT, numbered
from tests.live import LiveHub, LiveZone
from tests.sink import Sink


@pytest.mark.req("FOX-03")
def test_a_relay_transforms_by_application_and_stores_each_event_once(
    zone: LiveZone, tmp_path: Path
) -> None:
    zone.create_stream("orders", segment_events_max=3)
    zone.create_stream("partner")
    switch = tmp_path / "switch.json"
    rename = [{"rename": {"total": "amount"}}, {"set": {"currency": "CHF"}}]
    switch.write_bytes(orjson.dumps({"billing": rename, "*": [{"remove": ["n"]}]}))

    def event(n: int, *application: str) -> dict[str, Any]:
        return {**EVENT, "attributes": {"n": n, "total": n}, "application": application}

    zone.emit("orders", [event(1, "billing"), event(2, "till"), event(3, "till", "billing")])
    zone.emit("orders", [event(4), event(5, "billing")])
    shell = Shell(zone)
    words = ("relay", "orders", "partner", "--switch", str(switch))
    shell.ok(*words, "--count", "3")
    shell.ok_here(*words, "--count", "5")  # from the beginning again
    made = shell.ok_here("replay", "partner").lines
    assert [line["event"]["attributes"] for line in made] == [
        {"n": 1, "amount": 1, "currency": "CHF"},
        {"total": 2},
        {"n": 3, "amount": 3, "currency": "CHF"},
        {"total": 4},
        {"n": 5, "amount": 5, "currency": "CHF"},
    ]
    first = shell.ok_here("replay", "orders").lines[0]
    place = f"{first['segment']}:{first['sequence']}"
    assert made[0]["event"]["cause"] == f"orders:{place}"
    billing = shell.ok_here("replay", "orders", "--application", "billing").lines
    assert ns(billing) == [1, 3, 5], "chosen by application"


def test_a_relay_emits_together_what_arrived_together(zone: LiveZone) -> None:
    """One request for each event took 75 s for 1,000."""
    zone.create_stream("orders", segment_events_max=400)
    zone.create_stream("copy")
    zone.emit("orders", numbered(1, 1000))
    shell = Shell(zone)
    shell.ok("relay", "orders", "copy", "--count", "700")
    shell.ok("relay", "orders", "copy", "--count", "1000")  # from the beginning again
    made = shell.ok_here("replay", "copy").lines
    assert ns(made) == list(range(1, 1001))
    assert len({line["appended_at"] for line in made}) < 100, "a request has one time"


def test_a_relay_stores_the_events_before_a_refused_one(
    hub: LiveHub, zone: LiveZone, tmp_path: Path
) -> None:
    partner, key, cursor = hub.new_zone(), tmp_path / "key", tmp_path / "cursor"
    zone.create_stream("orders")
    for name in ("copy", "probe"):
        partner.create_stream(name, undeclared="refuse")
    declare(partner, "order.placed")
    key.write_text(partner.admin)
    key.chmod(0o600)
    one, two, three, four, five = numbered(1, 5)
    zone.emit("orders", [one, two, three, {**four, "type": "order.lost"}, five])
    shell, there = Shell(zone), Shell(partner)
    words = ("relay", "orders", "copy", "--to-key-file", str(key), "--cursor-file", str(cursor))
    refused = shell.here(*words)
    assert (refused.status, "undeclared_type" in refused.err) == (1, True), refused
    assert ns(there.ok_here("replay", "copy").lines) == [1, 2, 3]
    fourth = shell.ok_here("replay", "orders").lines[3]
    assert f"{fourth['segment']}:4" in refused.err
    declare(partner, "order.lost")
    shell.ok_here(*words, "--count", "2")
    assert ns(there.ok_here("replay", "copy").lines) == [1, 2, 3, 4, 5]


def declare(zone: LiveZone, type: str) -> None:
    """Wait until the web process that is asked knows the type; `probe` takes declared types
    alone.
    """
    path = f"/v1/types/shop/{type}"
    assert zone.hub.call("PUT", path, {"schema": {}}, key=zone.admin).status == 201
    while zone.emit("probe", {**EVENT, "type": type}).status != 200:
        pass


def test_a_replay_keeps_the_ids_of_the_callbacks(zone: LiveZone, sink: Sink) -> None:
    zone.create_stream("orders")
    url = sink.url(f"/{zone.name}")
    zone.register({"streams": ["orders"], "callback": url})
    zone.emit("orders", numbered(1, 2))
    ids = [called.id for called in sink.wait(2, f"/{zone.name}")]
    shell = Shell(zone, EVENTHUB_FORWARD_SECRET=SECRET)
    shell.ok_here("replay", "orders", "--quiet", "--forward", url)
    other = ("--forward", sink.url("/other"), "--forward-endpoint", ids[0].rpartition("_")[2])
    shell.ok_here("replay", "orders", "--quiet", *other)
    assert [called.id for called in sink.wait(4, f"/{zone.name}")][2:] == sorted(ids)
    assert [called.id for called in sink.wait(2, "/other")] == sorted(ids)
    shell.ok_here("replay", "orders", "--quiet", "--forward", sink.url("/third"))
    assert not {called.id for called in sink.at("/third")} & set(ids)


@pytest.mark.req("FOX-03", "FOX-05")
def test_a_relay_changes_no_immutable_property(zone: LiveZone, tmp_path: Path) -> None:
    zone.create_stream("orders")
    zone.create_stream("partner")
    schema = {"properties": {"origin": {"type": "string", "readOnly": True}}}
    path = "/v1/types/shop/order.placed"
    assert zone.hub.call("PUT", path, {"schema": schema}, key=zone.admin).status == 201
    while True:  # until the web process that we ask knows the type
        zone.emit("orders", {**EVENT, "attributes": {"origin": "Basel"}})
        shell = Shell(zone)
        found = shell.ok_here("replay", "orders").lines
        if "version" in found[-1]["event"]:
            break
    switch = tmp_path / "switch.json"
    switch.write_bytes(orjson.dumps({"*": [{"set": {"origin": "Bern"}}]}))
    last = f"{found[-1]['segment']}:{found[-1]['sequence'] - 1}"
    words = ("relay", "orders", "partner", "--switch", str(switch), "--from", last)
    refused = shell.here(*words)
    assert refused.status == 1
    assert "attributes.origin is immutable" in refused.err
    skipped = shell.ok_here(*words, "--on-immutable", "skip", "--count", "1")
    assert "skipped" in skipped.err
    assert shell.ok_here("replay", "partner").out == ""
    switch.write_bytes(b'{"*": [{"turn": {}}]}')
    wrong = shell.here(*words)
    assert (wrong.status, "*[0]" in wrong.err) == (2, True)
