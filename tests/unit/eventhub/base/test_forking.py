"""Commands that are forked from a server which has loaded a module."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest

from eventhub.base.forking import ForkServer, ServerEnded
from eventhub.base.guarded_process import Command, GuardedProcess, current_identity
from tests.integration.forward_world import eventually

MODULE = "tests.unit.eventhub.base.forked_module"
PROGRAM = str(Path(__file__).with_name("forked_program.py"))
FORMS = {
    "script": (sys.executable, PROGRAM),
    "module": (sys.executable, "-m", "tests.unit.eventhub.base.forked_program"),
}


def started(module: str = MODULE, **more: str) -> ForkServer:
    env = {"PATH": os.environ["PATH"], "SERVER": "1", **more}
    return ForkServer(module, env, current_identity()._asdict(), subprocess.PIPE)


@pytest.fixture(scope="module")
def server() -> Iterator[ForkServer]:
    server = started()
    yield server
    server.end()


def forked(server: ForkServer, *words: str, argv: tuple[str, ...] = FORMS["script"],
           fds: tuple[int, ...] = (), keep_fds: tuple[int, ...] = (),
           **env: str) -> GuardedProcess:  # fmt: skip
    command = Command("forked", (*argv, *words), env, fds=fds)
    process = GuardedProcess(command, current_identity(), keep_fds=keep_fds, server=server)
    assert not isinstance(process.process, subprocess.Popen)
    return process


def output(process: GuardedProcess) -> str:
    assert process.process.stdout is not None
    return process.process.stdout.read().decode()


@pytest.mark.parametrize("form", FORMS)
def test_a_forked_command_is_as_if_it_had_been_executed(server: ForkServer, form: str) -> None:
    process = forked(server, "report", "two words", argv=FORMS[form], WORD="given", EMPTY="")
    seen: dict[str, Any] = json.loads(output(process))
    assert process.wait(10) == 0
    assert seen["argv"] == ["report", "two words"]
    assert seen["environment"] == {"WORD": "given", "EMPTY": ""}
    assert seen["input"] == ""
    assert seen["group"] and seen["child_signals"] and seen["interrupt"] and seen["collects"]
    assert seen["threads"] == 1
    assert seen["descriptors"] == [0, 1, 2, 3], "and that of the folder that it lists"
    assert seen["command_line"] == [*FORMS[form], "report", "two words"]
    # what an executed one has not
    assert seen["loaded_by_parent"] and seen["frozen"]
    assert seen["adopted"] == ["given"]


@pytest.mark.parametrize(
    ("words", "status", "printed"),
    [
        (("exit", "0"), 0, ""),
        (("exit", "null"), 0, ""),
        (("exit", "78"), 78, ""),
        (("exit", '"refused"'), 1, "refused\n"),
        (("raise",), 1, "RuntimeError: a reason\n"),
        (("die", "9"), 128 + 9, ""),
        (("die", "15"), 128 + 15, ""),
    ],
)
def test_the_exit_status_is_that_of_the_command(
    server: ForkServer, words: tuple[str, ...], status: int, printed: str
) -> None:
    process = forked(server, *words)
    assert output(process).endswith(printed)
    assert process.wait(10) == process.poll() == status


def test_a_command_gets_descriptors_under_their_numbers_and_its_guardian_the_others(
    server: ForkServer, tmp_path: Path
) -> None:
    reading, writing = os.pipe()
    lock = os.open(tmp_path, os.O_RDONLY)
    os.write(writing, b"through a pipe")
    os.close(writing)
    process = forked(server, "read", str(reading), fds=(reading,), keep_fds=(lock,))
    os.close(reading)
    assert output(process) == "through a pipe\n"
    assert process.wait(10) == 0
    waiting = forked(server, "wait", str(tmp_path / "pid"), keep_fds=(lock,))
    try:
        eventually((tmp_path / "pid").exists, "the start")
        child = psutil.Process(int((tmp_path / "pid").read_text()))
        assert str(tmp_path) in open_files(waiting.pid)
        assert str(tmp_path) not in open_files(child.pid)
        assert json.loads(psutil.Process(waiting.pid).cmdline()[4])["name"] == "forked"
        assert child.ppid() == waiting.pid
    finally:
        assert waiting.end() == 128 + signal.SIGTERM
        os.close(lock)


def open_files(pid: int) -> list[str]:
    return [str(entry.readlink()) for entry in Path(f"/proc/{pid}/fd").iterdir()]


def test_commands_outlive_the_server(tmp_path: Path) -> None:
    server = started()
    process = forked(server, "wait", str(tmp_path / "pid"))
    eventually((tmp_path / "pid").exists, "the start")
    server.process.kill()
    server.process.wait()
    assert process.poll() is None
    with pytest.raises(ServerEnded):
        forked(server, "report")
    process.stop()
    assert process.wait(10) == 128 + signal.SIGTERM
    server.end()


@pytest.mark.parametrize("victim", ["guardian", "supervisor"])
def test_a_command_ends_with_its_guardian_and_with_its_supervisor(
    server: ForkServer, tmp_path: Path, victim: str
) -> None:
    process = forked(server, "wait", str(tmp_path / "pid"))
    eventually((tmp_path / "pid").exists, "the start")
    child = psutil.Process(int((tmp_path / "pid").read_text()))
    if victim == "guardian":
        process.process.kill()
    else:
        assert process.process.stdin is not None
        process.process.stdin.close()  # as the kernel does
    assert process.process.wait(10) == (-9 if victim == "guardian" else 128 + 15)
    eventually(lambda: not child.is_running(), "its end")


def test_a_waiting_thread_and_a_time_out_do_not_disturb_each_other(server: ForkServer) -> None:
    process = forked(server, "wait", "/dev/null")
    with pytest.raises(subprocess.TimeoutExpired):
        process.wait(0.05)
    assert process.poll() is None
    process.kill()
    assert process.wait(10) == 128 + 9


def test_a_module_that_cannot_be_loaded_is_reported() -> None:
    server = started("tests.unit.eventhub.base.no_such_module")
    with pytest.raises(ServerEnded):
        forked(server, "report")
    assert server.process.stdout is not None
    assert b"ModuleNotFoundError" in server.process.stdout.read()
    assert not server.is_loading()
    server.end()


@pytest.mark.parametrize(
    ("argv", "env", "fits"),
    [
        (FORMS["script"], {}, True),
        (FORMS["module"], {"DATABASE_URL": "postgresql://", "WORD": "x"}, True),
        ((sys.executable, "-c", "pass"), {}, False),
        ((sys.executable, "-X", "faulthandler", PROGRAM), {}, False),
        (("/bin/true",), {}, False),
        (FORMS["script"], {"PYTHONPATH": "/elsewhere"}, False),
        (FORMS["script"], {"LD_PRELOAD": "libfaketime.so"}, False),
        (FORMS["script"], {"TZ": "Europe/Berlin"}, False),
        (FORMS["script"], {"PROMETHEUS_MULTIPROC_DIR": "/tmp/counters"}, False),
    ],
)
def test_a_command_that_would_load_something_else_is_executed(
    server: ForkServer, argv: tuple[str, ...], env: dict[str, str], fits: bool
) -> None:
    assert server.fits(argv, env) is fits


def test_an_executed_command_needs_no_server(server: ForkServer) -> None:
    argv = (sys.executable, "-c", "import sys; sys.exit(3)")
    process = GuardedProcess(Command("executed", argv, {}), current_identity(), server=server)
    assert isinstance(process.process, subprocess.Popen)
    assert process.wait(10) == 3
