"""Keep the parts running: start them in order of readiness, start a crashed one again, stop them in
reverse.

It knows nothing of what the parts are; `eventhub.up.hub` says that. All decisions are made in one
thread, on events from one queue; other threads only wait for a process or copy its output.
"""

import contextlib
import os
import queue
import signal
import subprocess
import threading
import time
from collections.abc import Callable, Sequence
from typing import NamedTuple

from eventhub import guardian, limits
from eventhub.guarded import Command, Guarded, Identity
from eventhub.up.output import Output
from eventhub.up.restarts import WINDOW_S, decide

TICK_S = 0.05  # while something is starting or due
IDLE_S = 60.0
KILL_GRACE_S = 1.0  # for a guardian to kill its tree
SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


class HubFailed(Exception):
    """A part cannot be kept running; the message says which and why."""


class Part(NamedTuple):
    """What the supervisor keeps running. Parts of one stage start together, after the stages before
    are ready."""

    command: Command
    stage: int
    is_ready: Callable[[], bool] | None = (
        None  # asked every tick until true; must answer within 2 s
    )
    once: bool = False  # it has to end with status 0, and is then ready
    ready_timeout_s: float = limits.READY_TIMEOUT_S_MAX  # at the hub's start
    before: Callable[[], None] | None = None  # called before every start


class _Run:
    """The state of one part."""

    def __init__(self, part: Part) -> None:
        self.part = part
        self.process: Guarded | None = None
        self.started_at = 0.0
        self.due_at: float | None = None
        self.ready = False
        self.restarts_at: list[float] = []

    @property
    def name(self) -> str:
        return self.part.command.name


class _Exit(NamedTuple):
    run: _Run
    process: Guarded
    status: int


class Patience(NamedTuple):
    """How often a part may end. `excuse` says why one that has just ended is not to blame, or
    nothing: then it is started again however often.
    """

    restarts_per_minute: int = limits.RESTARTS_PER_MINUTE_MAX
    excuse: Callable[[], str] = lambda: ""


PATIENCE = Patience()


class Supervisor:
    """Runs the parts until a signal, or until one of them fails for good."""

    def __init__(
        self,
        parts: Sequence[Part],
        identity: Identity,
        output: Output,
        *,
        keep_fds: tuple[int, ...] = (),
        patience: Patience = PATIENCE,
    ) -> None:
        self._runs = [_Run(part) for part in parts]
        self._identity = identity
        self._output = output
        self._keep_fds = keep_fds
        self._patience = patience
        self._events: queue.SimpleQueue[_Exit | int] = queue.SimpleQueue()
        self._stop_signals = 0
        self._complete = False  # all were ready once; from then on nothing is ended for being slow

    def run(self, on_ready: Callable[[], None]) -> None:
        """Start everything, call `on_ready`, and return after a stop signal, with all parts
        stopped. Raises HubFailed, also with all parts stopped."""
        guardian.become_subreaper()  # orphans of a guardian that was killed come to us
        handlers = {number: signal.signal(number, self._on_signal) for number in SIGNALS}
        try:
            self._start_all()
            if not self._stop_signals:
                self._complete = True
                on_ready()
            while not self._stop_signals:
                self._step()
        finally:
            self._stop_all()
            for number, handler in handlers.items():
                signal.signal(number, handler)

    def _on_signal(self, number: int, _frame: object) -> None:
        self._stop_signals += 1
        self._events.put(number)

    # --- starting ---

    def _start_all(self) -> None:
        for stage in sorted({run.part.stage for run in self._runs}):
            runs = [run for run in self._runs if run.part.stage == stage]
            for run in runs:
                self._start(run)
            while not all(run.ready for run in runs):
                if self._stop_signals:
                    return
                self._step()

    def _start(self, run: _Run) -> None:
        if run.part.before is not None:
            run.part.before()
        run.ready = False
        run.due_at = None
        run.started_at = time.monotonic()
        process = Guarded(run.part.command, self._identity, keep_fds=self._keep_fds)
        run.process = process
        if process.process.stdout is not None:
            self._output.pump(run.name, process.process.stdout)
        threading.Thread(target=self._await_exit, args=(run, process), daemon=True).start()

    def _await_exit(self, run: _Run, process: Guarded) -> None:
        self._events.put(_Exit(run, process, process.wait()))

    # --- watching ---

    def _step(self) -> None:
        """Wait for one event, or for a tick; then do what is due."""
        busy = any(run.due_at is not None or not run.ready for run in self._runs if run.process)
        try:
            event = self._events.get(timeout=TICK_S if busy else IDLE_S)
        except queue.Empty:
            event = None
        if self._stop_signals:
            return
        if isinstance(event, _Exit):
            self._on_exit(event)
        for run in self._runs:
            if run.due_at is not None and time.monotonic() >= run.due_at:
                self._start(run)
            elif run.process is not None and run.process.poll() is None and not run.ready:
                self._check_ready(run)

    def _check_ready(self, run: _Run) -> None:
        part = run.part
        took_s = time.monotonic() - run.started_at
        if not part.once and (part.is_ready is None or part.is_ready()):
            run.ready = True
            self._output.say(f"{run.name} is ready after {took_s:.1f} s")
        elif took_s > part.ready_timeout_s and not self._complete:
            raise HubFailed(f"{run.name} is not ready after {took_s:.0f} s; its output is above")

    def _on_exit(self, event: _Exit) -> None:
        run = event.run
        if event.status < 0:
            self._output.say(f"the guardian of {run.name} was killed: clearing what it left")
            self._clear_orphans(run.part.command)
        if run.part.once and event.status == 0:
            run.ready = True
            return
        excuse = self._patience.excuse()
        if excuse:
            self._plan(run, limits.DISK_FULL_RESTART_S)
            self._output.say(f"{run.name} ended with status {event.status}, {excuse}: trying again")
            return
        if run.part.once:
            raise HubFailed(f"{run.name} failed with status {event.status}; its output is above")
        self._plan_restart(run, event.status)

    def _plan_restart(self, run: _Run, status: int) -> None:
        now = time.monotonic()
        run.restarts_at = [at for at in run.restarts_at if now - at < WINDOW_S]
        delay_s = decide(run.restarts_at, now, self._patience.restarts_per_minute).delay_s
        if delay_s is None:
            raise HubFailed(
                f"{run.name} ended with status {status} and was restarted {len(run.restarts_at)} "
                "times within a minute already; the hub stops, the reason is in its output above"
            )
        run.restarts_at.append(now)
        self._plan(run, delay_s)
        self._output.say(f"{run.name} ended with status {status}: starting it again in {delay_s} s")

    def _plan(self, run: _Run, delay_s: float) -> None:
        run.due_at = time.monotonic() + delay_s
        run.ready = False

    def _clear_orphans(self, command: Command) -> None:
        """End the tree of a killed guardian, which the kernel gave to us, before its part starts
        again."""
        known = {run.process.pid for run in self._runs if run.process is not None}
        until = time.monotonic() + command.grace_s
        number: int = command.stop_signal
        while orphans := _children(known):
            guardian.signal_all(orphans, number)
            number = 0 if time.monotonic() < until else signal.SIGKILL
            for pid in orphans:
                with contextlib.suppress(ChildProcessError):  # a grandchild: its parent collects it
                    os.waitpid(pid, os.WNOHANG)
            time.sleep(TICK_S)

    # --- stopping ---

    def _stop_all(self) -> None:
        """In reverse, each stage together, all within STOP_TIMEOUT_S_MAX; a second signal kills
        what is left."""
        alive = [
            run for run in self._runs if run.process is not None and run.process.poll() is None
        ]
        if alive:
            self._output.say("stopping (once more: at once)")
        until = time.monotonic() + limits.STOP_TIMEOUT_S_MAX - 2 * KILL_GRACE_S
        signals = self._stop_signals
        for stage in sorted({run.part.stage for run in alive}, reverse=True):
            processes = [
                r.process for r in alive if r.part.stage == stage and r.process is not None
            ]
            grace_s = max((process.command.grace_s for process in processes), default=0.0)
            for process in processes:
                process.stop()
            self._await_all(processes, min(until, time.monotonic() + grace_s), signals)
        for run in alive:
            if run.process is not None and _collect(run.process) < 0:
                self._clear_orphans(run.part.command)
        if alive:
            self._output.say("stopped")

    def _await_all(self, processes: Sequence[Guarded], until: float, signals: int) -> None:
        while any(process.poll() is None for process in processes):
            if time.monotonic() >= until or self._stop_signals > signals:
                for process in processes:
                    process.kill()
                return
            time.sleep(TICK_S / 2)


def _collect(process: Guarded) -> int:
    """The status of a guardian that was told to stop or kill; one that does not answer is killed
    itself."""
    try:
        return process.wait(KILL_GRACE_S)
    except subprocess.TimeoutExpired:
        process.process.kill()
        return process.wait()


def _children(known: set[int]) -> list[int]:
    """Processes that came to us from a guardian that is gone, and all below them."""
    everyone = guardian.descendants(os.getpid())
    ours = {pid for root in known for pid in (root, *guardian.descendants(root))}
    return [pid for pid in everyone if pid not in ours]
