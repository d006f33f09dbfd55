"""Commands below their guardian."""

import sys
from pathlib import Path

from eventhub.base.guarded_process import Command, GuardedProcess, current_identity
from tests.integration.forward_world import eventually

WAITING = """
import pathlib, signal, sys
began, ended = map(pathlib.Path, sys.argv[1:])
signal.signal(signal.SIGTERM, lambda *_: ended.touch())
began.touch()
while True:
    signal.pause()
"""


def test_a_killed_command_gets_no_chance_to_end_by_itself(tmp_path: Path) -> None:
    """It got SIGTERM some milliseconds before, so a killed forwarder released its streams."""
    began, ended = tmp_path / "began", tmp_path / "ended"
    argv = (sys.executable, "-c", WAITING, str(began), str(ended))
    running = GuardedProcess(Command("waiting", argv, {}, grace_s=5.0), current_identity())
    eventually(began.exists, "the start")
    running.kill()
    assert running.wait(10) == 128 + 9
    assert not ended.exists()
