"""What a supervisor does about a fork server that does not become ready."""

import io
import os
import queue
import subprocess
import sys
from pathlib import Path

from eventhub.base.forking import ForkServer
from eventhub.base.guarded_process import Command, current_identity
from eventhub.supervisor.forks import Forks, ServerExit
from eventhub.supervisor.output import Output
from tests.integration.forward_world import eventually


def test_a_server_that_takes_too_long_is_ended_and_commands_are_executed(tmp_path: Path) -> None:
    """A hub on a disk that hangs waited for ever, and reported nothing."""
    (tmp_path / "endless.py").write_text("import time; time.sleep(600)")
    env = {**os.environ, "PYTHONPATH": str(tmp_path)}
    servers: list[ForkServer] = []

    def start() -> ForkServer:
        servers.append(ForkServer("endless", env, current_identity()._asdict(), None))
        return servers[-1]

    printed = io.StringIO()
    exits: queue.SimpleQueue[ServerExit] = queue.SimpleQueue()
    forks = Forks(start, Output(printed), exits.put, load_s_max=0.2)
    forks.renew()
    assert forks.is_loading()
    assert forks.pids == {servers[0].process.pid}
    eventually(lambda: not forks.is_loading(), "the end of the wait")
    assert "fork-server has not loaded the hub in 0.2 s" in printed.getvalue()
    forks.on_exit(exits.get(timeout=10))  # is no reason for another one
    assert len(servers) == 1
    assert forks.pids == set()
    (tmp_path / "seven.py").write_text("raise SystemExit(7)")
    command = Command("seven", (sys.executable, str(tmp_path / "seven.py")), env)
    process = forks.start(command, current_identity(), ())
    assert isinstance(process.process, subprocess.Popen)
    assert process.wait(10) == 7
