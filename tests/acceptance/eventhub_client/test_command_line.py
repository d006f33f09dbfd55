"""OIF-02, and the command line as a whole: emit, listen, replay, streams, segments, state."""

import os
import signal
import sqlite3
import subprocess
import sys
from pathlib import Path
from typing import Any

import orjson
import psutil
import pytest
from eventhub_client.callbacks import verify

from tests.acceptance.shell import Shell
from tests.acceptance.wire import EVENT, numbered
from tests.live import LiveHub, LiveZone
from tests.sink import Sink

SECRET = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"


@pytest.fixture
def receiver() -> Any:
    with Sink().serving() as sink:
        yield sink


def ns(lines: list[Any]) -> list[int]:
    return [line["event"]["attributes"]["n"] for line in lines]


@pytest.mark.req("OIF-02")
def test_several_consumers_get_the_same_event_from_one_emit(
    zone: LiveZone, tmp_path: Path, receiver: Sink
) -> None:
    """Printed, appended to a log, written to a database, forwarded, and given to a program."""
    zone.create_stream("orders")
    log, database, seen = tmp_path / "orders.log", tmp_path / "orders.db", tmp_path / "seen"
    program = tmp_path / "program.py"
    program.write_text("import sys; open(sys.argv[1], 'a').write(sys.stdin.read())")
    shell = Shell(zone, EVENTHUB_FORWARD_SECRET=SECRET)
    words = ["listen", "orders", "--from", "oldest", "--count", "2", "--file", str(log)]
    words += ["--sqlite", str(database), "--forward", receiver.url("/hook")]
    words += ["--exec", f"{sys.executable} {program} {seen}"]
    with shell.running(*words) as listening:
        shell.ok("emit", "orders", orjson.dumps(numbered(1, 1)[0]).decode())
        shell.ok("emit", "orders", "--domain", "shop", "--type", "paid", "--attribute", "n=2")
        printed = [listening.line(), listening.line()]
    assert ns(printed) == [1, 2]
    assert [orjson.loads(line) for line in log.read_text().splitlines()] == printed
    assert [orjson.loads(line) for line in seen.read_text().splitlines()] == printed
    with sqlite3.connect(database) as db:
        rows = db.execute("SELECT sequence, type, event FROM events ORDER BY sequence").fetchall()
    assert [(n, t) for n, t, _ in rows] == [(1, "order.placed"), (2, "paid")]
    assert [orjson.loads(event) for _, _, event in rows] == [line["event"] for line in printed]
    posted = receiver.wait(2, "/hook")
    for called, line in zip(posted, printed, strict=True):
        assert verify(SECRET, called.headers, called.body)
        assert called.json["event"] == line["event"]
        assert called.json["sequence"] == line["sequence"]


def test_events_come_from_an_argument_a_file_and_standard_input(
    zone: LiveZone, tmp_path: Path
) -> None:
    zone.create_stream("orders")
    shell = Shell(zone)
    lines = [orjson.dumps(event).decode() for event in numbered(1, 1203)]
    file = tmp_path / "events.ndjson"
    file.write_text("\n".join(lines[1:3]))
    one = shell.ok("emit", "orders", lines[0])
    assert one.json["ranges"][0]["first"] == one.json["ranges"][0]["last"] == 1
    shell.ok("emit", "orders", "--file", str(file))
    many = shell.ok("emit", "orders", stdin="\n\n".join(lines[3:]))
    assert [line["ranges"][0]["last"] for line in many.lines] == [503, 1003, 1203]
    later = ("--domain", "shop", "--type", "reminder", "--delay-ms", "3600000")
    [delayed] = shell.ok_here("emit", "orders", *later).json["delayed"]
    shell.ok_here("timers", "delete", str(delayed["timer"]))
    assert ns(shell.ok_here("replay", "orders").lines) == list(range(1, 1204))


def test_a_replay_has_two_ends_and_a_filter_and_is_marked_playback(zone: LiveZone) -> None:
    zone.create_stream("orders", segment_events_max=10)
    zone.emit("orders", [*numbered(1, 30), *numbered(31, 40, domain="else")])
    shell = Shell(zone)
    some = shell.ok("replay", "orders", "--until", "33", "--domain", "else").lines
    assert ns(some) == [31, 32, 33]
    assert {line["liveness"] for line in some} == {"playback"}
    place = f"{some[0]['segment']}:{some[0]['sequence']}"
    rest = shell.ok_here("replay", "orders", "--from", place, "--attribute", "n=40").lines
    assert ns(rest) == [40]
    assert shell.ok_here("replay", "orders", "--attribute", 'n="40"').out == ""
    text = shell.ok_here("replay", "orders", "--from", place, "--format", "text").out
    assert len(text.splitlines()) == 9
    assert "else order.placed" in text


@pytest.mark.parametrize("via", ["websocket", "sse", "poll"])
def test_a_restarted_command_resumes_where_the_last_one_ended(
    zone: LiveZone, tmp_path: Path, via: str
) -> None:
    zone.create_stream("orders")
    shell = Shell(zone)
    place = str(tmp_path / "cursor")
    words = ("listen", "orders", "--from", "oldest", "--cursor-file", place, "--transport", via)
    zone.emit("orders", numbered(1, 3))
    with shell.running(*words) as listening:
        assert ns([listening.line() for _ in range(3)]) == [1, 2, 3]
        ended = listening.end(signal.SIGINT)
    assert (ended.status, ended.out) == (130, ""), ended
    assert "Traceback" not in ended.err
    assert Path(place).read_text().endswith("}\n")
    zone.emit("orders", numbered(4, 5))
    with shell.running(*words) as listening:
        assert ns([listening.line(), listening.line()]) == [4, 5]
        assert listening.end(signal.SIGTERM).status == 143
    refused = shell.here("listen", "other", "--cursor-file", place)
    assert refused.status == 2
    assert "is of the stream orders" in refused.err


def test_a_listener_resumes_when_its_web_process_is_killed(hub: LiveHub, zone: LiveZone) -> None:
    zone.create_stream("orders")
    web = hub.web[1]
    shell = Shell(zone, url=web.url)
    with shell.running("listen", "orders", "--from", "oldest") as listening:
        zone.emit("orders", numbered(1, 2))
        assert ns([listening.line(), listening.line()]) == [1, 2]
        web.kill()
        try:
            zone.emit("orders", numbered(3, 4))
        finally:
            web.start()
        assert ns([listening.line(), listening.line()]) == [3, 4]
        assert listening.end().status == 130


def test_a_program_that_fails_stops_the_command_before_the_cursor_moves_or_is_left_out(
    zone: LiveZone, tmp_path: Path
) -> None:
    zone.create_stream("orders")
    zone.emit("orders", numbered(1, 3))
    program = tmp_path / "program.py"
    program.write_text(
        "import json, sys\n"
        "n = json.load(sys.stdin)['event']['attributes']['n']\n"
        "sys.exit(9 if n == 2 else 0)\n"
    )
    shell = Shell(zone)
    place = str(tmp_path / "cursor")
    words = ["listen", "orders", "--from", "oldest", "--cursor-file", place]
    words += ["--exec", f"{sys.executable} {program}"]
    failed = shell.run(*words)
    assert failed.status == 6
    assert "exit status 9" in failed.err
    assert ns(failed.lines) == [1]
    assert orjson.loads(Path(place).read_bytes())["sequence"] == 1
    skipped = shell.ok(*words, "--on-failure", "skip", "--count", "2")
    assert ns(skipped.lines) == [2, 3]
    assert "skipped" in skipped.err


def test_a_program_that_hangs_is_ended_with_all_it_started(zone: LiveZone, tmp_path: Path) -> None:
    zone.create_stream("orders")
    zone.emit("orders", numbered(1, 1))
    pids = tmp_path / "pids"
    command = f"sh -c 'echo $$ >> {pids}; sleep 300 & wait'"
    shell = Shell(zone)
    words = ["listen", "orders", "--from", "oldest", "--exec", command, "--timeout", "0.3"]
    failed = shell.run(*words)
    assert failed.status == 6
    assert "not done within 0.3 s" in failed.err
    groups = {int(pid) for pid in pids.read_text().split()}
    assert len(groups) == 3
    assert [found for found in psutil.process_iter() if alive_in(found, groups)] == []


def alive_in(process: psutil.Process, groups: set[int]) -> bool:
    try:
        return os.getpgid(process.pid) in groups and process.status() != psutil.STATUS_ZOMBIE
    except (ProcessLookupError, psutil.NoSuchProcess):
        return False


def test_a_receiver_that_fails_is_tried_again(zone: LiveZone, receiver: Sink) -> None:
    zone.create_stream("orders")
    zone.emit("orders", numbered(1, 1))
    receiver.answer = lambda called: (204 if len(receiver.called) > 1 else 503, {})
    shell = Shell(zone)
    words = ["listen", "orders", "--from", "oldest", "--count", "1", "--quiet"]
    done = shell.ok(*words, "--forward", receiver.url("/hook"))
    assert done.out == ""
    first, second = receiver.at("/hook")
    assert first.id == second.id
    secret = done.err.split()[-1]
    assert verify(secret, second.headers, second.body) == second.id


def test_streams_segments_and_state(zone: LiveZone, tmp_path: Path) -> None:
    shell = Shell(zone)
    made = shell.ok_here("streams", "create", "prices", "keyed=true", "segment_events_max=2")
    assert made.json["name"] == "prices"
    for key, price in (("a", 1), ("b/c", 2), ("a", 3)):
        words = ("--domain", "shop", "--type", "price", "--key", key, "--attribute", f"p={price}")
        shell.ok_here("emit", "prices", *words)
    heading, *rows = shell.ok_here("streams", "list").out.splitlines()
    assert heading.split() == ["NAME", "DURABILITY", "KEYED", "SEQUENCE", "SEGMENT"]
    listed = shell.ok_here("streams", "list", "--json").json
    assert {stream["name"] for stream in listed} == {"prices", "system"}
    [prices] = [stream for stream in listed if stream["name"] == "prices"]
    assert ["prices", "sync", "true", "3", prices["segment"]["uuid"]] in map(str.split, rows)
    assert shell.ok_here("streams", "set", "prices", "retain_events=1000").status == 0
    assert "1000" in shell.ok_here("streams", "show", "prices").out
    state = {
        item["key"]: item["event"]["attributes"] for item in shell.ok_here("state", "prices").json
    }
    assert state == {"a": {"p": 3}, "b/c": {"p": 2}}
    assert shell.ok_here("state", "prices", "b/c").json["event"]["attributes"] == {"p": 2}
    segments = shell.ok_here("segments", "list", "prices", "--json").json
    assert [segment["state"] for segment in segments] == ["sealed", "open"]
    assert segments[0]["uuid"] in shell.ok_here("segments", "list", "prices").out
    raw = tmp_path / "raw"
    shell.ok_here("segments", "download", "prices", segments[0]["uuid"], "--output", str(raw))
    assert raw.stat().st_size > 0


@pytest.mark.parametrize(
    ("form", "line"),
    [
        (
            "cloudevents",
            '{"specversion": "1.0", "id": "1", "source": "/till", "type": "paid", "n": 7}',
        ),
        ("oif", "type: paid; n: 7"),
    ],
)
def test_events_of_other_forms_are_taken(zone: LiveZone, form: str, line: str) -> None:
    zone.create_stream("orders")
    shell = Shell(zone)
    shell.ok("emit", "orders", "--format", form, stdin=line)
    [found] = shell.ok_here("replay", "orders").lines
    assert found["event"]["type"] == "paid"
    assert str(found["event"]["attributes"]["n"]) == "7"


def test_an_outbox_on_the_command_line(hub: LiveHub, zone: LiveZone, tmp_path: Path) -> None:
    zone.create_stream("orders")
    box = str(tmp_path / "box")
    web = hub.web[1]
    shell = Shell(zone, url=web.url)
    web.stop()
    try:
        words = ("--outbox", box, "--wait", "0.2")
        queued = shell.run("emit", "orders", *words, stdin=orjson.dumps(EVENT).decode())
        assert queued.status == 7
        assert queued.json["pending"] == 1
        assert "eventhub outbox send" in queued.err
        assert shell.ok_here("outbox", "status", box).json["pending"] == 1
    finally:
        web.start()
    poison = orjson.dumps({"domain": "shop"}).decode()
    emitted = shell.ok_here("emit", "orders", "--outbox", box, stdin=poison)
    assert emitted.json == {"queued": 1, "pending": 0, "dead_letters": 1}
    [dead] = shell.ok_here("outbox", "dead-letters", box).json
    assert dead["problem"]["code"] == "missing_field"
    assert (
        shell.ok_here("outbox", "drop", box, str(dead["number"])).json["event"]["domain"] == "shop"
    )
    assert len(shell.ok_here("replay", "orders").lines) == 1


def test_a_closed_output_pipe_is_no_error(zone: LiveZone, tmp_path: Path) -> None:
    zone.create_stream("orders")
    zone.emit("orders", numbered(1, 1000))
    shell = Shell(zone)
    script = f"{sys.executable} -m eventhub_client replay orders | head -1"
    shell.env["PATH"] = os.environ["PATH"]
    command = ["bash", "-o", "pipefail", "-c", script]
    done = subprocess.run(command, env=shell.env, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    assert len(done.stdout.splitlines()) == 1
