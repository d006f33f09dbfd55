"""Embedded servers for one process: tests, benchmarks, fault runs and `manage.py restore` start
them with one call. Plain module.

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
from eventhub.base.guarded import Guarded
from eventhub.supervisor.hub import Place, Servers
from eventhub.supervisor.supervisor import HubFailed, Part

POLL_S = 0.01


@contextmanager
def embedded(data: Path, *, lasting: bool = False) -> Iterator[dict[str, str]]:
    """Start what DATABASE_URL and REDIS_URL do not replace; yields the variables that every process
    of a hub needs. Output goes to `<data>/servers.log`. `lasting`: the data is a hub's, so what is
    made is forced to the disk, and the log's mark is the hub's. Raises HubFailed, FolderUnusable,
    NoIdentity."""
    place = Place.take(data)
    with ExitStack() as stack:
        stack.callback(place.leave)
        servers = Servers.choose(place.folder, place.sockets)
        env = place.environment(servers)
        if lasting:
            place.mark(env)
        log = stack.enter_context((place.folder.root / "servers.log").open("ab"))
        starting: list[tuple[Part, Guarded]] = []
        for part in servers.parts(env, sync=lasting):
            if part.before is not None:
                part.before()
            process = Guarded(part.command, place.identity, keep_fds=(place.lock,), output=log)
            stack.callback(process.end)
            if part.once:
                _await_end(part, process)
            else:
                starting.append((part, process))
        for part, process in starting:
            _await_ready(part, process)
        names = ("EVENTHUB_SECRET_KEY", "EVENTHUB_DATA", "EVENTHUB_MARK_URL")
        yield {**servers.environment(), **{name: env[name] for name in names if name in env}}


def _await_end(part: Part, process: Guarded) -> None:
    status = process.wait(limits.READY_TIMEOUT_S_MAX)
    if status != 0:
        raise HubFailed(f"{part.command.name} failed with status {status}; see servers.log")


def _await_ready(part: Part, process: Guarded) -> None:
    until = time.monotonic() + limits.READY_TIMEOUT_S_MAX
    while part.is_ready is not None and not part.is_ready():
        if process.poll() is not None or time.monotonic() > until:
            raise HubFailed(f"{part.command.name} did not become ready; see servers.log")
        time.sleep(POLL_S)
