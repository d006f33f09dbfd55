"""Embedded servers and supervised processes that are killed, fail or never get ready."""

import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.integration.up_process import HOME, processes_of, wait_until

SERVERS = """
import os, sys
from pathlib import Path
for name in ("DATABASE_URL", "REDIS_URL"):
    os.environ.pop(name, None)
from eventhub.supervisor.embedded import embedded
with embedded(Path(sys.argv[1])) as env:
    print(env["DATABASE_URL"], flush=True)
    sys.stdin.read()
"""

SUPERVISED = """
import os, shlex, sys
from eventhub.base.guarded_process import Command
from eventhub.base.guarded_process import current_identity
from eventhub.supervisor.output import Output
from eventhub.supervisor.supervisor import HubFailed, ProcessSpec, RetryLimits, Supervisor
words, limits = shlex.split(sys.argv[2]), RetryLimits(*eval(sys.argv[3]))
command = Command("slow", words, {**os.environ, "MARK": sys.argv[1]})
spec = ProcessSpec(command, stage=0, is_ready=lambda: False, slow_after_s=0.2)
try:
    Supervisor([spec], current_identity(), Output(), retry_limits=limits).run(lambda: None)
except HubFailed as error:
    sys.exit(str(error))
"""


def start(script: str, data: Path, *words: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-c", script, str(data), *words],
        cwd=HOME,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )


@pytest.mark.parametrize("killed", [True, False])
def test_embedded_servers_end_with_their_process(tmp_path: Path, killed: bool) -> None:
    data = tmp_path / "data"
    process = start(SERVERS, data)
    assert process.stdout is not None
    assert process.stdout.readline().startswith("postgresql://")
    assert any("bin/postgres" in line for line in processes_of(data))
    if killed:
        process.kill()
    process.communicate()
    wait_until(lambda: not processes_of(data), "the servers to end")


@pytest.mark.parametrize(
    ("command", "limits", "said"),
    [
        ("sleep 600", "(None, 0.4)", "EVENTHUB_START_TIMEOUT_S allows 0.4 s"),
        ("false", "(2, None)", "ended with status 1 after 2 restarts in a row"),
        ("sh -c 'exit 78'", "()", "slow cannot run with the hub's settings"),
    ],
)
def test_limit_or_invalid_setting_stops_the_hub_with_a_reason(
    tmp_path: Path, command: str, limits: str, said: str
) -> None:
    process = start(SUPERVISED, tmp_path, command, limits)
    output, _ = process.communicate(timeout=60)
    assert process.returncode == 1
    assert said in output
    assert processes_of(tmp_path) == []


@pytest.mark.parametrize(
    ("command", "said"),
    [
        ("sleep 600", "slow is not ready after 1 s: still waiting for it"),
        ("false", "restarting it in 1 s"),
        ("/absent/program", "restarting it in 1 s"),
    ],
)
def test_without_limits_restarts_continue_and_are_reported(
    tmp_path: Path, command: str, said: str
) -> None:
    """On a busy machine after a power cut the hub ended for good after a minute."""
    process = start(SUPERVISED, tmp_path, command, "()")
    assert process.stdout is not None
    assert any(said in line for line in process.stdout)
    process.send_signal(signal.SIGINT)
    process.communicate(timeout=60)
    assert process.returncode == 0
    assert processes_of(tmp_path) == []
