"""Embedded servers for one process: tests, benchmarks, fault runs and `manage.py restore` start
them with a single call. Plain module.

    with embedded(Path("/tmp/data")) as env:
        os.environ.update(env)

They are the same programs, settings and guardians as those of `manage.py up`, and end with the
calling process.
"""

import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from eventhub.base import limits
from eventhub.base.guarded_process import GuardedProcess
from eventhub.supervisor.hub import LockedFolder, Servers
from eventhub.supervisor.supervisor import HubFailed, ProcessSpec

POLL_S = 0.01


@contextmanager
def embedded(data: Path, *, lasting: bool = False) -> Iterator[dict[str, str]]:
    """Start the servers that DATABASE_URL and REDIS_URL do not replace; yield the variables that
    every process of a hub needs. Output goes to `<data>/servers.log`. `lasting`: the data is a
    hub's, so it is flushed to the disk, and the log's mark is the hub's. Raises HubFailed,
    FolderUnusable, NoIdentity.
    """
    locked = LockedFolder.take(data)
    with ExitStack() as stack:
        stack.callback(locked.leave)
        servers = Servers.choose(locked.folder, locked.sockets)
        env = locked.environment(servers)
        if lasting:
            locked.mark(env)
        log = stack.enter_context((locked.folder.root / "servers.log").open("ab"))
        starting: list[tuple[ProcessSpec, GuardedProcess]] = []
        for spec in servers.specs(env, sync=lasting):
            if spec.before is not None:
                spec.before()
            process = GuardedProcess(
                spec.command, locked.identity, keep_fds=(locked.lock,), output=log
            )
            stack.callback(process.end)
            if spec.once:
                _await_end(spec, process)
            else:
                starting.append((spec, process))
        for spec, process in starting:
            _await_ready(spec, process)
        names = ("EVENTHUB_SECRET_KEY", "EVENTHUB_DATA", "EVENTHUB_MARK_URL")
        yield {**servers.environment(), **{name: env[name] for name in names if name in env}}


def _await_end(part: ProcessSpec, process: GuardedProcess) -> None:
    status = process.wait(limits.READY_TIMEOUT_S_MAX)
    if status != 0:
        raise HubFailed(f"{part.command.name} failed with status {status}; see servers.log")


def _await_ready(part: ProcessSpec, process: GuardedProcess) -> None:
    until = time.monotonic() + limits.READY_TIMEOUT_S_MAX
    while part.is_ready is not None and not part.is_ready():
        if process.poll() is not None or time.monotonic() > until:
            raise HubFailed(f"{part.command.name} did not become ready; see servers.log")
        time.sleep(POLL_S)
