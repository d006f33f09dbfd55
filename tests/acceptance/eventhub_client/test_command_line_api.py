"""The command line against every operation of the management API."""

import json
import re
from pathlib import Path

import orjson
import pytest
from eventhub_client.commands.api import Operation, operations

from tests.acceptance.documented import operations as documented
from tests.acceptance.shell import Shell
from tests.acceptance.wire import EVENT
from tests.live import OPERATOR, LiveHub, LiveZone
from tests.sink import Sink

# what `emit`, `listen`, `segments download` and `login` do, and what providers send
BY_HAND = re.compile(
    r"/v1/(session(/setup|/password)?|webhooks/{token}|sessions/{session}/events"
    r"|streams/{stream}/(events|segments/{segment}/raw))"
)


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory, hub: LiveHub) -> Path:
    """Return the home of a person who has signed in as the operator, once for all tests."""
    home = tmp_path_factory.mktemp("home")
    shell = Shell(hub.new_zone(), HOME=str(home), EVENTHUB_PASSWORD=hub.password)
    shell.ok("login", OPERATOR)
    [file] = home.rglob("logins.json")
    assert file.stat().st_mode & 0o077 == 0
    return home


def test_every_operation_of_the_api_has_a_command() -> None:
    assert {(one.method, one.path) for one in operations()} == {
        (one.method, one.route)
        for one in documented()
        if one.route.startswith("/v1/") and not BY_HAND.fullmatch(one.route)
    }


def test_resources_are_created_listed_changed_and_deleted(zone: LiveZone, sink: Sink) -> None:
    zone.create_stream("orders")
    shell = Shell(zone)
    shell.ok_here("clients", "create", "--name", "billing", "--groups", '["eu"]')
    assert shell.ok_here("clients", "show", "billing").json["groups"] == ["eu"]
    shell.ok_here("clients", "update", "billing", "--groups", "[]")
    grants = '[{"action": "listen", "streams": "orders"}]'
    key = shell.ok_here("clients", "keys", "create", "billing", "--grants", grants).json
    assert key["key"].startswith("ehk_")
    url = sink.url("/hook")
    words = ("--url", url, "--description", "Billing", "--ordered", "true")
    endpoint = str(shell.ok_here("endpoints", "create", *words).json["id"])
    shell.ok_here("endpoints", "update", endpoint, "--enabled", "false")
    assert shell.ok_here("endpoints", "show", endpoint).json["enabled"] is False
    words = ("--streams", '["orders"]', "--domain", "shop", "--endpoint", endpoint)
    shell.ok_here("registrations", "create", *words)
    listed = shell.ok_here("registrations", "list", "--stream", "orders", "--json").json["items"]
    assert [item["domain"] for item in listed] == ["shop"]
    registration = str(listed[0]["id"])
    assert shell.ok_here("registrations", "list").out.splitlines()[0].startswith("ID")
    shell.ok_here("registrations", "delete", registration)
    assert shell.here("registrations", "show", registration).status == 1
    shell.ok_here("endpoints", "delete", endpoint)
    shell.ok_here("clients", "delete", "billing")


def test_a_body_comes_whole_from_an_argument_a_file_or_standard_input(
    zone: LiveZone, tmp_path: Path
) -> None:
    shell = Shell(zone)
    shell.ok_here("clients", "create", "--data", '{"name": "first"}')
    shell.ok_here("clients", "create", "--data", "-", stdin='{"name": "second"}')
    file = tmp_path / "body.json"
    file.write_text('{"name": "third"}')
    shell.ok_here("clients", "create", "--data", f"@{file}")
    names = [item["name"] for item in shell.ok_here("clients", "list", "--json").json["items"]]
    assert {"first", "second", "third"} <= set(names)
    both = shell.here("clients", "create", "--name", "x", "--data", "{}")
    assert (both.status, "not both" in both.err) == (2, True)
    missing = shell.here("clients", "create")
    assert (missing.status, "--name" in missing.err) == (2, True)


def test_only_an_operator_lists_zones_and_jobs(zone: LiveZone, home: Path, tmp_path: Path) -> None:
    refused = Shell(zone).here("zones", "list")
    assert (refused.status, "eventhub login" in refused.err) == (2, True)
    assert "EVENTHUB_KEY" not in refused.err, "it is set"
    shell = Shell(zone, HOME=str(home))
    assert zone.name in shell.ok_here("zones", "list", "--limit", "1000").out
    assert "audit" in shell.ok_here("jobs", "list").out
    stranger = Shell(zone, HOME=str(tmp_path), EVENTHUB_PASSWORD="wrong")
    wrong = stranger.here("login", OPERATOR)
    assert (wrong.status, "password is wrong" in wrong.err, "key" in wrong.err) == (4, True, False)
    stranger = Shell(zone, HOME=str(tmp_path), EVENTHUB_PASSWORD=zone.hub.password)
    stranger.ok_here("login", OPERATOR)
    [logins] = tmp_path.rglob("logins.json")
    copy = logins.read_bytes()
    stranger.ok_here("logout")
    assert stranger.here("jobs", "list").status == 2
    logins.write_bytes(copy)  # a login that has ended on the hub
    ended = stranger.here("jobs", "list")
    assert (ended.status, "Log in again: eventhub login" in ended.err) == (4, True)
    stranger.ok_here("logout")
    assert stranger.here("jobs", "list").status == 2


def test_a_login_serves_the_commands_that_are_written_by_hand(zone: LiveZone, home: Path) -> None:
    """They said that there is no key, and could not name a zone."""
    shell = Shell(zone, HOME=str(home))
    del shell.env["EVENTHUB_KEY"]
    in_zone = ("--zone", zone.name)
    shell.ok_here("streams", "create", "prices", "keyed=true", *in_zone)
    shell.ok_here("streams", "set", "prices", "retain_events=9", *in_zone)
    zone.emit("prices", {**EVENT, "key": "a"})
    assert '"retain_events": 9' in shell.ok_here("streams", "show", "prices", *in_zone).out
    for words in (("streams", "list"), ("segments", "list", "prices"), ("types", "list")):
        shown = shell.ok_here(*words, *in_zone).out
        assert ("prices" in shown) is (words[0] == "streams")
    assert [item["key"] for item in shell.ok_here("state", "prices", *in_zone).json] == ["a"]
    assert shell.ok_here("state", "prices", "a", *in_zone).json["key"] == "a"
    follow = shell.here("state", "prices", "--follow")
    assert (follow.status, "EVENTHUB_KEY" in follow.err) == (2, True)


def test_a_damaged_file_of_logins_is_named_and_replaced(zone: LiveZone, tmp_path: Path) -> None:
    """It blocked the login too, which would have replaced it."""
    file = tmp_path / ".config/eventhub/logins.json"
    file.parent.mkdir(parents=True)
    shell = Shell(zone, HOME=str(tmp_path), EVENTHUB_PASSWORD=zone.hub.password)
    for content in ('{"x": [', "[1]"):
        file.write_text(content)
        refused = shell.here("jobs", "list")
        assert (refused.status, f"{file} cannot be read" in refused.err) == (2, True)
        assert "Delete it" in refused.err
    shell.ok_here("login", OPERATOR)
    shell.ok_here("jobs", "list")
    shell.ok_here("logout")
    again = shell.here("logout")
    assert (again.status, "Nobody is logged in" in again.err) == (2, True)


WITH_PAIRS = ["streams", "set"]  # written by hand: its policy is pairs


@pytest.mark.parametrize(
    "operation",
    [one for one in operations() if one.words != WITH_PAIRS],
    ids=lambda one: "-".join(one.words),
)
def test_each_command_reaches_its_route(zone: LiveZone, operation: Operation, home: Path) -> None:
    """The hub answers, or refuses with a problem of its own what it does not have."""
    shell = Shell(zone, HOME=str(home))
    words = [*operation.words, *("1" for _ in operation.arguments)]
    if operation.media:
        words += ["--data", json.dumps({"unknown": 1})]
    done = shell.here(*words)
    assert done.status in (0, 1), done
    missing = "Nothing exists at this path" in done.err and "(field" not in done.err
    assert not missing, "the hub has no such route"
    if done.status == 0 and operation.method == "GET" and done.out.startswith("{"):
        orjson.loads(done.out)


def test_a_page_is_a_table_with_the_way_to_the_next(zone: LiveZone) -> None:
    shell = Shell(zone)
    shell.ok_here("clients", "create", "--name", "one")
    shell.ok_here("clients", "create", "--name", "two")
    page = shell.ok_here("clients", "list", "--limit", "1")
    assert len(page.out.splitlines()) == 2
    after = page.err.split("--after ")[1].strip()
    assert shell.ok_here("clients", "list", "--after", after).out != page.out
