"""Match indexes by the command and the API: build, show, verify, repair, and who may use them."""

import json
import re
import resource
import tempfile
import time
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from django.core.management import CommandError, call_command

from tests.forked import manage
from tests.live import LiveHub, LiveZone

PATH = "/v1/streams/orders/match-index"


@pytest.fixture
def hub_environment(hub: LiveHub, monkeypatch: pytest.MonkeyPatch) -> None:
    """Set the environment that the banner of the hub exports."""
    for name in ("DATABASE_URL", "DATABASE_DIRECT_URL", "EVENTHUB_DATA"):
        monkeypatch.setenv(name, hub.env[name])


def command(*words: str) -> tuple[int, str]:
    """Run `manage.py index WORDS`; return its status and output."""
    said = StringIO()
    try:
        call_command("index", *words, stdout=said)
    except CommandError as error:
        return error.returncode, f"{said.getvalue()}{error}\n"
    return 0, said.getvalue()


def shop(zone: LiveZone, registrations: int) -> list[dict[str, Any]]:
    """Create a stream with the strategy `index`, with registrations on it."""
    zone.create_stream("orders", matching="index")
    endpoint = zone.endpoint("https://example.org/hook")["id"]
    return register(zone, endpoint, range(registrations))


def register(zone: LiveZone, endpoint: int, totals: range) -> list[dict[str, Any]]:
    request: dict[str, Any] = {"streams": ["orders"], "endpoint": endpoint, "language": "predicate"}
    return zone.register(*({**request, "filter": f"(> total {total})"} for total in totals))


def state_of_index(zone: LiveZone, key: str = "") -> dict[str, Any]:
    answer = zone.hub.call("GET", PATH, key=key or zone.admin)
    assert answer.status == 200, answer
    found: dict[str, Any] = answer.json
    return found


def epoch(zone: LiveZone, number: int, name: str = "orders") -> dict[str, Path]:
    """Return the shards of an epoch, in the folder that docs/match-index.md names."""
    [[stream]] = zone.hub.sql(
        "SELECT s.id FROM streams s JOIN zones z ON z.id = s.zone_id"
        " WHERE z.name = %s AND s.name = %s",
        *(zone.name, name),
    )
    folder = Path(zone.hub.env["EVENTHUB_DATA"], "indexes", f"stream-{stream}")
    return {path.name: path for path in (folder / f"epoch-{number:08}").glob("*.idx")}


def contents(zone: LiveZone, number: int) -> dict[str, bytes]:
    return {name: path.read_bytes() for name, path in epoch(zone, number).items()}


def spoil(path: Path) -> None:
    """Flip one bit in the middle of a file."""
    spoilt = bytearray(path.read_bytes())
    spoilt[len(spoilt) // 2] ^= 1
    path.write_bytes(spoilt)


def request_twice(zone: LiveZone) -> None:
    """Request a build twice; the second request changes nothing."""
    for _ in range(2):
        answer = zone.hub.call("POST", PATH, key=zone.admin)
        assert (answer.status, answer.json["build"]["state"]) == (202, "waiting")


@pytest.mark.usefixtures("hub_environment", "without_workers")
def test_an_index_is_requested_built_changed_verified_and_repaired(
    hub: LiveHub, zone: LiveZone
) -> None:
    made = shop(zone, 20)
    where = ("--stream", "orders", "--zone", zone.name)
    found = state_of_index(zone)
    assert (found["index"], found["changed_since"], found["build"]) == (None, 20, None)
    assert (found["buildable"], found["builds_from"]) == (True, 50_000)
    request_twice(zone)
    status, said = command("build", "--zone", zone.name)
    assert status == 0, said
    assert f"{zone.name}/orders: epoch 1, versions: 20, entries: 20, " in said
    problem = hub.call("POST", PATH, key=zone.admin).refused(409, "nothing_to_index")
    assert problem["detail"] == "Nothing has changed since the index of orders was built."
    found = state_of_index(zone)
    assert (found["buildable"], found["why"]) == (False, problem["detail"])
    assert (found["index"]["epoch"], found["index"]["registrations"]) == (1, 20)
    assert (found["changed_since"], found["build"]["state"]) == (0, "built")

    register(zone, made[0]["endpoint"], range(20, 25))
    assert hub.call("DELETE", f"/v1/registrations/{made[3]['id']}", key=zone.admin).status == 204
    assert state_of_index(zone)["changed_since"] == 6
    assert command("build", *where)[0] == 0
    assert command("build", "--full", *where)[0] == 0
    assert contents(zone, 2) == contents(zone, 3), "a rebuild from the tables gives the same"
    assert state_of_index(zone)["index"]["registrations"] == 24
    assert command("verify", *where) == (
        0,
        f"{zone.name}/orders: ok\nIndexes: 1, faulty: 0\n",
    )
    _, said = command("show", "--zone", zone.name)
    row = said.splitlines()[1].split()
    assert (row[:4], row[-2:]) == ([zone.name, "orders", "3", "24"], ["0", "current"])
    [output] = json.loads(command("show", "--zone", zone.name, "--json")[1])
    assert output == {"zone": zone.name, **state_of_index(zone)}

    [(name, path)] = epoch(zone, 3).items()
    spoil(path)
    done = manage(hub.env, "index", "verify", *where)
    assert done.returncode == 1
    assert "orders: FAULTY" in done.stdout
    found_first = "was found to be damaged"  # by a forwarder, which reads a new index whole
    assert name in done.stdout or found_first in done.stdout
    assert done.stderr.count("\n") == 1
    [output] = re.findall(r"manage\.py index (build --full .*)", done.stdout)
    assert command(*output.split())[0] == 0
    assert command("verify", *where)[0] == 0


@pytest.mark.usefixtures("without_workers")
def test_a_requested_index_is_built_at_once(hub: LiveHub, zone: LiveZone) -> None:
    """Workers polled every five seconds on a new connection. This hub has no timetable."""
    shop(zone, 20)
    request_twice(zone)
    hub.start_callbacks()
    until = time.monotonic() + 60
    while state_of_index(zone)["build"]["state"] != "built":
        assert time.monotonic() < until, state_of_index(zone)
        time.sleep(0.1)
    hub.call("POST", PATH, key=zone.admin).refused(409, "nothing_to_index")


@pytest.mark.usefixtures("hub_environment")
def test_a_failure_of_one_stream_does_not_end_the_run(hub: LiveHub, zone: LiveZone) -> None:
    shop(zone, 3)
    zone.create_stream("apples", matching="index")
    zone.register({"streams": ["apples"], "callback": "https://example.org/hook"})
    where = ("--zone", zone.name)
    for name in ("apples", "orders"):
        assert command("build", "--stream", name, *where)[0] == 0

    change = {"matching": "compile"}
    assert hub.call("PUT", "/v1/streams/apples", change, key=zone.admin).status == 200
    status, said = command("verify", *where)
    assert status == 1
    assert f"{zone.name}/apples: The stream does not use a match index" in said
    assert f"{zone.name}/orders: ok" in said

    change = {"matching": "index"}
    assert hub.call("PUT", "/v1/streams/apples", change, key=zone.admin).status == 200
    in_the_way = next(iter(epoch(zone, 1, "apples").values())).parents[1] / "manifest.json.part"
    in_the_way.mkdir()
    status, said = command("build", "--all", *where)
    assert status == 1
    assert f"{zone.name}/apples: Another file or folder has the name" in said
    assert "[Errno 21] Is a directory" in said, "the operator sees which"
    assert f"{zone.name}/orders: epoch 2" in said


@pytest.mark.usefixtures("hub_environment")
def test_a_full_disk_during_a_verification_is_reported(
    hub: LiveHub, zone: LiveZone, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    shop(zone, 3)
    where = ("--stream", "orders", "--zone", zone.name)
    assert command("build", *where)[0] == 0
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1_000, before[1]))  # bytes of a file: as if full
    try:
        status, said = command("verify", *where)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    assert (status, f"File too large: '{tmp_path}" in said) == (1, True), said
    assert command("verify", *where)[0] == 0


def test_only_managers_of_the_stream_see_its_index(hub: LiveHub, zone: LiveZone) -> None:
    shop(zone, 1)
    other = hub.new_zone()
    path = f"{PATH}?zone={zone.name}"
    assert hub.operate("GET", path).json == state_of_index(zone)
    assert state_of_index(zone, zone.key("manage:orders"))["stream"] == "orders"
    for key in (zone.key("emit:*", "listen:*"), zone.key("manage:other*")):
        for method in ("GET", "POST"):
            hub.call(method, PATH, key=key).refused(403, "forbidden")
            hub.call(method, "/v1/streams/none/match-index", key=key).refused(403, "forbidden")
    for method in ("GET", "POST"):
        hub.call(method, PATH, key=other.admin).refused(404, "unknown_stream")
        hub.call(method, path, key=other.admin).refused(404, "not_found")
    assert state_of_index(zone)["build"] is None


def test_a_stream_that_uses_no_index_gets_none(hub: LiveHub, zone: LiveZone) -> None:
    zone.create_stream("orders")
    zone.create_stream("scanned", matching="scan")
    zone.create_stream("passing", durability="transient")
    for name, said in (
        ("orders", "No registration"),
        ("scanned", "`scan`"),
        ("passing", "transient"),
        ("system", "in memory"),
    ):
        path = f"/v1/streams/{name}/match-index"
        problem = hub.call("POST", path, key=zone.admin).refused(409, "nothing_to_index")
        assert said in problem["detail"]
        found = hub.call("GET", path, key=zone.admin).json
        assert (found["buildable"], found["why"]) == (False, problem["detail"])
    zone.register({"streams": ["system"], "callback": "https://example.org/hook"})
    found = hub.call("GET", "/v1/streams/system/match-index", key=zone.admin).json
    assert found["changed_since"] == 0, "all zones have registrations there"
    zone.register({"streams": ["orders"], "callback": "https://example.org/hook"})
    detail = hub.call("POST", PATH, key=zone.admin).refused(409, "nothing_to_index")["detail"]
    assert "versions: 1)" in detail
    assert "from 50,000 versions on" in detail


@pytest.mark.usefixtures("hub_environment")
def test_the_command_reports_wrong_arguments(
    zone: LiveZone, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    zone.create_stream("orders")
    for words, said in (
        (("show", "--zone", "nowhere"), "There is no zone nowhere."),
        (("build", "--stream", "x", "--zone", zone.name), f"The zone {zone.name} has no stream x."),
        (("build", "--stream", "orders", "--zone", zone.name), "there is nothing to index"),
        (("verify", "--stream", "orders", "--zone", zone.name), "orders has no match index"),
    ):
        status, output = command(*words)
        assert (status, output.count("\n"), said in output) == (1, 1, True), output
    status, output = command("build", "--zone", zone.name)
    assert (status, "No build is requested or due." in output) == (0, True)
    assert "No stream has an index." in command("show", "--zone", zone.name)[1]
    monkeypatch.setenv("EVENTHUB_DATA", str(tmp_path / "none"))
    status, output = command("show")
    assert (status, "export EVENTHUB_DATA=" in output) == (1, True)
