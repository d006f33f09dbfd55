"""The outbox's file: what is queued is there again, and one process has it."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from eventhub_client.outbox_file import OutboxBusy, OutboxError, OutboxFile, OutboxFull, Queued
from eventhub_client.profile import Profile, addresses

OTHER = """
import sys
from pathlib import Path
from eventhub_client.outbox_file import OutboxBusy, OutboxFile
try:
    OutboxFile(Path(sys.argv[1])).put("s", [b"{}"])
except OutboxBusy as error:
    sys.exit(str(error))
"""
KILLED = """
import os, signal, sys
from pathlib import Path
from eventhub_client.outbox_file import OutboxFile
OutboxFile(Path(sys.argv[1])).put("s", [b"1", b"2"])
os.kill(os.getpid(), signal.SIGKILL)
"""


def other(program: str, path: Path) -> subprocess.CompletedProcess[str]:
    argv = [sys.executable, "-c", program, str(path)]
    return subprocess.run(argv, capture_output=True, text=True, check=False)


def test_queued_events_survive_a_kill_of_the_process(tmp_path: Path) -> None:
    path = tmp_path / "box"
    assert other(KILLED, path).returncode == -9
    again = OutboxFile(path)
    assert [queued.event for queued in again.batch("s", 10, 10)] == [b"1", b"2"]
    again.close()


def test_a_second_process_is_refused_with_the_id_of_the_owner(tmp_path: Path) -> None:
    path = tmp_path / "box"
    mine = OutboxFile(path)
    refused = other(OTHER, path)
    assert refused.returncode == 1
    assert f"in use by process {os.getpid()}" in refused.stderr
    with pytest.raises(OutboxBusy):
        OutboxFile(path)
    looking_on = OutboxFile(path, read_only=True)
    assert looking_on.count() == 0
    looking_on.close()
    mine.close()
    assert other(OTHER, path).returncode == 0


def test_batches_are_in_order_and_bounded_but_never_empty(tmp_path: Path) -> None:
    box = OutboxFile(tmp_path / "box")
    box.put("a", [b"11", b"22", b"33"])
    box.put("b", [b"x"])
    assert [q.event for q in box.batch("a", 2, 100)] == [b"11", b"22"]
    assert [q.event for q in box.batch("a", 9, 5)] == [b"11", b"22"]
    assert [q.event for q in box.batch("a", 9, 1)] == [b"11"]
    assert sorted(box.streams()) == ["a", "b"]
    box.remove([1, 2])
    box.rewrite(Queued(3, b"44"))
    assert box.batch("a", 9, 9) == [Queued(3, b"44")]
    box.close()


def test_a_full_queue_refuses_and_retains_its_events(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("eventhub.base.limits.OUTBOX_BYTES_MAX", 256 * 1024)
    box = OutboxFile(tmp_path / "box")
    with pytest.raises(OutboxFull, match="is full"):
        for _ in range(100):
            box.put("a", [b"x" * 5_000, b"y" * 5_000])
    assert box.count() % 2 == 0, "all or none"
    kept = box.count()
    box.remove([queued.number for queued in box.batch("a", 10, 10**6)])
    box.put("a", [b"again"])
    assert box.count() == kept - 9
    box.close()


def test_dead_letters_are_retained_until_they_are_dropped(tmp_path: Path) -> None:
    box = OutboxFile(tmp_path / "box")
    box.put("a", [b'{"n":1}', b'{"n":2}'])
    [first, _] = box.batch("a", 9, 99)
    box.dead_letter("a", first, {"code": "type_violation"})
    assert box.count() == 1
    [dead] = box.dead_letters()
    assert (dead.stream, dead.event, dead.problem["code"]) == ("a", {"n": 1}, "type_violation")
    assert box.drop(dead.number) == dead
    assert box.drop(dead.number) is None
    box.close()


@pytest.mark.req("FOX-49")
def test_the_profile_outlives_the_process_and_knows_the_address_before(tmp_path: Path) -> None:
    box = OutboxFile(tmp_path / "box")
    interest = {"stream": "orders", "type": "order.paid"}
    profile = Profile(("till",), (interest,), 3).attached("http://a:1", "10.0.0.9:1", "10.0.0.1")
    profile = profile.attached("http://b:2", "10.0.0.8:2", "10.0.0.2")
    box.save_profile(profile)
    box.close()
    again = OutboxFile(tmp_path / "box")
    found = again.profile()
    again.close()
    assert found == profile
    assert (found.node, found.address) == ("http://b:2", "10.0.0.8:2")
    assert (found.ip, found.previous_ip) == ("10.0.0.2", "10.0.0.1")
    assert found.attached("http://b:2", "10.0.0.8:2", "10.0.0.2").previous_ip == "10.0.0.1"


def test_a_file_that_is_no_outbox_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "box"
    path.write_text("something else, and long enough to be looked at" * 50)
    with pytest.raises(OutboxError, match="no outbox"):
        OutboxFile(path)


def test_the_file_is_for_its_owner_alone(tmp_path: Path) -> None:
    box = OutboxFile(tmp_path / "box")
    assert (tmp_path / "box").stat().st_mode & 0o777 == 0o600
    box.close()


def test_addresses_of_a_url_are_found_without_sending_anything() -> None:
    assert addresses("http://127.0.0.1:8000") == ("127.0.0.1:8000", "127.0.0.1")
