"""Embedded servers and supervised parts of a process that ends badly, or never gets ready."""

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
from eventhub.up.embedded import embedded
with embedded(Path(sys.argv[1])) as env:
    print(env["DATABASE_URL"], flush=True)
    sys.stdin.read()
"""

NEVER_READY = """
import os, sys
from eventhub.guarded import Command
from eventhub.guarded import ordinary
from eventhub.up.output import Output
from eventhub.up.supervisor import HubFailed, Part, Supervisor
command = Command("slow", ("sleep", "600"), {**os.environ, "MARK": sys.argv[1]})
part = Part(command, stage=0, is_ready=lambda: False, ready_timeout_s=0.2)
try:
    Supervisor([part], ordinary(), Output()).run(lambda: None)
except HubFailed as error:
    sys.exit(str(error))
"""


def start(script: str, data: Path) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-c", script, str(data)],
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


def test_part_that_never_gets_ready_stops_the_hub_with_a_reason(tmp_path: Path) -> None:
    process = start(NEVER_READY, tmp_path)
    output, _ = process.communicate(timeout=20)
    assert process.returncode == 1
    assert "slow is not ready after" in output
    assert processes_of(tmp_path) == []
