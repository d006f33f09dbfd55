"""Keep the parts running: start them in order of readiness, start a crashed one again, stop them in
reverse. It goes on trying, with growing pauses, unless it is told how long to. SIGUSR2 replaces the
hub's own parts one after the other, each by whatever version is on the disk then. Plain module.

It knows nothing of what the parts are; `eventhub.supervisor.hub` says that. All decisions are made
in one thread, on events from one queue; other threads only wait for a process or copy its output.
"""

import contextlib
import errno
import os
import queue
import signal
import subprocess
import threading
import time
from collections.abc import Callable, Sequence
from typing import NamedTuple

from eventhub.base import guardian, limits
from eventhub.base.guarded import Command, Guarded, Identity
from eventhub.supervisor.output import Output
from eventhub.supervisor.restarts import Excuse, decide

TICK_S = 0.05  # while something is starting or due
IDLE_S = 60.0
KILL_GRACE_S = 1.0  # for a guardian to kill its tree
ORPHANS_TOLD_S = 10.0  # how often processes that outlive SIGKILL are reported
HURRY_SIGNALS = 2  # to the hub: what is left is killed
OFTEN = 3  # restarts in a row that are worth a word
SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
RENEW = signal.SIGUSR2


class HubFailed(Exception):
    """The hub cannot be kept running; the message says which part failed, and why."""


class Part(NamedTuple):
    """What the supervisor keeps running. Parts of one stage start together, after the stages before
    are ready."""

    command: Command
    stage: int
    is_ready: Callable[[], bool] | None = (
        None  # asked every tick until true; must answer within 2 s
    )
    once: bool = False  # it has to end with status 0, and is then ready
    slow_after_s: float = limits.SLOW_START_S  # reported when it is not ready by then
    before: Callable[[], None] | None = None  # called before every start; may raise OSError
    renewable: bool = False  # replaced by RENEW


class _Run:
    """The state of one part."""

    def __init__(self, part: Part) -> None:
        self.part = part
        self.process: Guarded | None = None
        self.started_at = 0.0
        self.slow_at = 0.0  # when it is next reported as slow
        self.due_at: float | None = None
        self.ready = False
        self.ending = False  # it was told to, to be replaced
        self.renewed = True
        self.unproven = False  # it was replaced, and was not ready since
        self.restarts_at: list[float] = []

    @property
    def name(self) -> str:
        return self.part.command.name

    def is_starting(self) -> bool:
        running = self.process is not None and self.process.poll() is None
        return running and not self.ready and not self.ending


class _Exit(NamedTuple):
    run: _Run
    process: Guarded
    status: int


class Patience(NamedTuple):
    """How long the hub goes on trying; None: without end.

    `restarts_max`: restarts of one part in a row. `start_s_max`: seconds until a part is ready, at
    the hub's start. `excuse` is asked when a part has ended.
    """

    restarts_max: int | None = None
    start_s_max: float | None = None
    excuse: Callable[[], Excuse | None] = lambda: None


PATIENCE = Patience()


class Supervisor:
    """Runs the parts until a signal, or until one of them cannot be kept running."""

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
        self._renewing: list[_Run] = []  # the first is being replaced
        self._complete = False  # all were ready once; from then on none is too slow

    def run(self, on_ready: Callable[[], None]) -> None:
        """Start everything, call `on_ready`, and return after a stop signal, with all parts
        stopped. Raises HubFailed, also with all parts stopped."""
        guardian.become_subreaper()  # orphans of a guardian that was killed come to us
        handlers = {number: signal.signal(number, self._on_signal) for number in _heeded()}
        handlers[RENEW] = signal.signal(RENEW, self._on_renew)
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

    def _on_renew(self, number: int, _frame: object) -> None:
        self._events.put(number)

    # --- starting ---

    def _start_all(self) -> None:
        for stage in sorted({run.part.stage for run in self._runs}):
            runs = [run for run in self._runs if run.part.stage == stage]
            for run in runs:
                self._try_start(run)
            while not all(run.ready for run in runs):
                if self._stop_signals:
                    return
                self._step()

    def _try_start(self, run: _Run) -> None:
        """Start it, or plan another try where the system refuses: a disk may be away for a while,
        and processes or memory may be short."""
        run.due_at = None
        try:
            self._start(run)
        except OSError as error:
            self._plan_restart(run, f"cannot be started ({error})")

    def _start(self, run: _Run) -> None:
        if run.part.before is not None:
            run.part.before()
        run.ready = False
        run.started_at = time.monotonic()
        run.slow_at = run.started_at + run.part.slow_after_s
        process = Guarded(run.part.command, self._identity, keep_fds=self._keep_fds)
        try:
            if process.process.stdout is not None:
                self._output.pump(run.name, process.process.stdout)
            threading.Thread(target=self._await_exit, args=(run, process), daemon=True).start()
        except RuntimeError as error:  # threads are short
            process.end()
            raise OSError(errno.EAGAIN, str(error)) from error
        run.process = process

    def _await_exit(self, run: _Run, process: Guarded) -> None:
        self._events.put(_Exit(run, process, process.wait()))

    # --- watching ---

    def _step(self) -> None:
        """Wait for one event, or for a tick; then do what is due."""
        busy = self._renewing or any(
            run.due_at or (run.process and not run.ready) for run in self._runs
        )
        try:
            event = self._events.get(timeout=TICK_S if busy else IDLE_S)
        except queue.Empty:
            event = None
        if self._stop_signals:
            return
        if isinstance(event, _Exit):
            self._on_exit(event)
        elif event == RENEW:
            self._renew()
        for run in self._runs:
            if run.due_at is not None and time.monotonic() >= run.due_at:
                self._try_start(run)
            elif run.is_starting():
                self._check_ready(run)
        self._renew_next()

    def _renew(self) -> None:
        """Begin anew, also in the middle: what is on the disk may be another version again."""
        if not self._complete:
            self._output.say("not all parts are ready yet: replace them later")
            return
        renewable = [run for run in self._runs if run.part.renewable]
        self._renewing = sorted(renewable, key=lambda run: run.ready)  # first those that are away
        for run in self._renewing:
            run.renewed = False
        self._output.say("replacing " + ", ".join(run.name for run in self._renewing))

    def _renew_next(self) -> None:
        """One part is away at a time."""
        while self._renewing and self._renewing[0].renewed and self._renewing[0].ready:
            self._renewing.pop(0)
            if not self._renewing:
                self._output.say("all parts are replaced")
        if self._renewing and not self._renewing[0].renewed:
            run = self._renewing[0]
            run.renewed = run.unproven = True
            if run.process is not None and run.process.poll() is None:
                run.ready = False
                run.ending = True
                run.process.stop()
            elif run.due_at is not None:  # it waits for its next try
                run.due_at, run.restarts_at = time.monotonic(), []

    def _check_ready(self, run: _Run) -> None:
        part, now = run.part, time.monotonic()
        took_s = now - run.started_at
        if not part.once and (part.is_ready is None or part.is_ready()):
            run.ready, run.unproven = True, False
            self._output.say(f"{run.name} is ready after {took_s:.1f} s")
            return
        start_s_max = self._patience.start_s_max
        if start_s_max is not None and took_s > start_s_max and not self._complete:
            raise HubFailed(
                f"{run.name} is not ready after {took_s:.0f} s, of {start_s_max:g} that "
                "EVENTHUB_START_TIMEOUT_S allows; its output is above"
            )
        if now >= run.slow_at:
            run.slow_at = now + took_s  # after 60 s, 120 s, 240 s ...
            self._output.say(f"{run.name} is not ready after {took_s:.0f} s: still waiting for it")

    def _on_exit(self, event: _Exit) -> None:
        run = event.run
        if event.status < 0:
            self._output.say(f"the guardian of {run.name} was killed: clearing what it left")
            self._clear_orphans(run.part.command)
        if run.part.once and event.status == 0:
            run.ready = True
            return
        if run.ending:
            run.ending = False
            self._plan(run, 0.0)
            return
        if run.unproven:
            if self._renewing:
                self._output.say(
                    f"{run.name} cannot run; the reason is in its output above. The others are not "
                    "replaced, and it is tried again"
                )
            self._renewing = []
        elif event.status == os.EX_CONFIG:
            raise HubFailed(
                f"{run.name} cannot run as the hub is set or with its data, and another try would "
                "not help; the reason is in its output above"
            )
        self._plan_restart(run, f"ended with status {event.status}")

    def _plan_restart(self, run: _Run, reason: str) -> None:
        now = time.monotonic()
        excuse = self._patience.excuse()
        if excuse is not None:
            reason = f"{reason}, {excuse.reason}"
            if excuse.at_once:
                self._plan(run, limits.DISK_FULL_RESTART_S)
                self._output.say(f"{run.name} {reason}: trying again")
                return
        delay_s, row = decide(run.restarts_at, now, self._patience.restarts_max)
        if delay_s is None:
            raise HubFailed(
                f"{run.name} {reason} and was restarted {row} times in a row already, as many as "
                "EVENTHUB_RESTARTS_MAX allows; the hub stops, the reason is in its output above"
            )
        run.restarts_at = [*run.restarts_at[-row:], now + delay_s] if row else [now + delay_s]
        self._plan(run, delay_s)
        often = f", after {row} restarts in a row" if row >= OFTEN else ""
        self._output.say(f"{run.name} {reason}: starting it again in {delay_s:g} s{often}")

    def _plan(self, run: _Run, delay_s: float) -> None:
        run.due_at = time.monotonic() + delay_s
        run.ready = False

    def _clear_orphans(self, command: Command) -> None:
        """End the tree of a killed guardian, which the kernel gave to us, before its part starts
        again. Returns when nothing is left of it."""
        known = {run.process.pid for run in self._runs if run.process is not None}
        now = time.monotonic()
        until, tell_at = now + command.grace_s, now + command.grace_s + ORPHANS_TOLD_S
        number: int = command.stop_signal
        while orphans := _children(known):
            guardian.signal_all(orphans, number)
            now = time.monotonic()
            patient = now < until and self._stop_signals < HURRY_SIGNALS
            number = 0 if patient else signal.SIGKILL
            if now >= tell_at:
                tell_at = now + ORPHANS_TOLD_S
                self._output.say(f"{command.name} was killed and does not end: process {orphans}")
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
        for run in self._runs:
            if run.process is not None and _collect(run.process) < 0:
                self._clear_orphans(run.part.command)
        self._output.drain()
        if any(run.process is not None for run in self._runs):
            self._output.say("stopped")

    def _await_all(self, processes: Sequence[Guarded], until: float, signals: int) -> None:
        while left := [process for process in processes if process.poll() is None]:
            hurried = self._stop_signals > signals
            if hurried or time.monotonic() >= until:
                names = ", ".join(process.command.name for process in left)
                self._output.say(
                    f"killing {names}{'' if hurried else ', which did not end in time'}"
                )
                for process in left:
                    process.kill()
                return
            time.sleep(TICK_S / 2)


def _heeded() -> list[signal.Signals]:
    """The signals that stop the hub: without SIGHUP when it is run by `nohup`."""
    ignored = signal.getsignal(signal.SIGHUP) is signal.SIG_IGN
    return [one for one in SIGNALS if one != signal.SIGHUP or not ignored]


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
