"""Process supervision: start the processes in stages, restart a crashed one, and stop them in
reverse order. Restarts have growing pauses, and continue unless they are limited. SIGUSR2 replaces
the hub's own processes one after the other, each by the version that is then on the disk. Plain
module.

It does not know what the processes do; `eventhub.supervisor.hub` defines them. All decisions are
made in one thread, on events from one queue; other threads only wait for a process or copy its
output.
"""

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
from eventhub.base.forking import ForkServer
from eventhub.base.guarded_process import Command, GuardedProcess, Identity
from eventhub.supervisor import orphans
from eventhub.supervisor.forks import Forks, ServerExit
from eventhub.supervisor.output import Output
from eventhub.supervisor.restarts import ExternalCause, decide

TICK_S = 0.05  # between two checks while a process starts or is due
IDLE_S = 60.0
KILL_GRACE_S = 1.0  # for a guardian to kill its tree
HURRY_SIGNALS = 2  # to the hub, after which remaining processes are killed
OFTEN = 3  # restarts in a row that are worth a message
SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
REPLACE = signal.SIGUSR2


class HubFailed(Exception):
    """The hub cannot be kept running; the message names the process that failed, and the reason."""


class ProcessSpec(NamedTuple):
    """A process that the supervisor keeps running. Processes of one stage start together, after the
    earlier stages are ready.
    """

    command: Command
    stage: int
    is_ready: Callable[[], bool] | None = None  # called every tick until true; returns within 2 s
    once: bool = False  # it must end with status 0, and is then ready
    slow_after_s: float = limits.SLOW_START_S  # reported when it is not ready after this
    before: Callable[[], None] | None = None  # called before every start; may raise OSError
    replaceable: bool = False  # replaced by REPLACE


class _Supervised:
    """The state of one process."""

    def __init__(self, spec: ProcessSpec) -> None:
        self.spec = spec
        self.process: GuardedProcess | None = None
        self.started_at = 0.0
        self.slow_at = 0.0  # when it is next reported as slow
        self.due_at: float | None = None
        self.ready = False
        self.ending = False  # it was asked to end, to be replaced
        self.must_be_replaced = False
        self.not_ready_since_replaced = False  # it was replaced, and has not been ready since
        self.restarts_at: list[float] = []

    @property
    def name(self) -> str:
        return self.spec.command.name

    def is_starting(self) -> bool:
        running = self.process is not None and self.process.poll() is None
        return running and not self.ready and not self.ending


class _Exit(NamedTuple):
    run: _Supervised
    process: GuardedProcess
    status: int


class RetryLimits(NamedTuple):
    """How long the hub tries to keep its processes running; None: without end.

    `restarts_max`: restarts of one process in a row. `start_s_max`: seconds until a process is
    ready, at the hub's start. `external_cause` is called when a process has ended.
    """

    restarts_max: int | None = None
    start_s_max: float | None = None
    external_cause: Callable[[], ExternalCause | None] = lambda: None


UNLIMITED = RetryLimits()


class Supervisor:
    """Runs processes until a signal, or until one of them cannot be kept running."""

    def __init__(
        self,
        specs: Sequence[ProcessSpec],
        identity: Identity,
        output: Output,
        *,
        keep_fds: tuple[int, ...] = (),
        retry_limits: RetryLimits = UNLIMITED,
    ) -> None:
        self._runs = [_Supervised(spec) for spec in specs]
        self._identity = identity
        self._output = output
        self._keep_fds = keep_fds
        self._retry_limits = retry_limits
        self._events: queue.SimpleQueue[_Exit | ServerExit | int] = queue.SimpleQueue()
        self._forks = Forks(None, output, self._events.put)
        self._stop_signals = 0
        self._replacing: list[_Supervised] = []  # the first is being replaced
        self._complete = False  # all were ready once; afterwards none is too slow

    def fork_from(self, start: Callable[[], ForkServer]) -> None:
        """Fork Python commands from a server that `start` starts, instead of executing them."""
        self._forks = Forks(start, self._output, self._events.put)

    def run(self, on_ready: Callable[[], None]) -> None:
        """Start all processes, call `on_ready`, and return after a stop signal, when all have
        stopped. Raises HubFailed, also when all have stopped.
        """
        guardian.become_subreaper()  # this process inherits the orphans of a killed guardian
        handlers = {number: signal.signal(number, self._on_signal) for number in _stop_signals()}
        handlers[REPLACE] = signal.signal(REPLACE, self._on_replace)
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

    def _on_replace(self, number: int, _frame: object) -> None:
        self._events.put(number)

    # --- starting ---

    def _start_all(self) -> None:
        self._forks.renew()
        for stage in sorted({run.spec.stage for run in self._runs}):
            runs = [run for run in self._runs if run.spec.stage == stage]
            while self._forks.is_loading() and any(
                self._forks.may_fork(run.spec.command) for run in runs
            ):
                if self._stop_signals:
                    return
                self._step()
            for run in runs:
                self._try_start(run)
            while not all(run.ready for run in runs):
                if self._stop_signals:
                    return
                self._step()

    def _try_start(self, run: _Supervised) -> None:
        """Start it, or plan a restart if the system refuses: a disk may be unavailable for a while,
        and processes or memory may be short.
        """
        run.due_at = None
        try:
            self._start(run)
        except OSError as error:
            self._plan_restart(run, f"cannot be started ({error})")

    def _start(self, run: _Supervised) -> None:
        if run.spec.before is not None:
            run.spec.before()
        run.ready = False
        run.started_at = time.monotonic()
        run.slow_at = run.started_at + run.spec.slow_after_s
        process = self._forks.start(run.spec.command, self._identity, self._keep_fds)
        try:
            if process.process.stdout is not None:
                self._output.pump(run.name, process.process.stdout)
            threading.Thread(target=self._await_exit, args=(run, process), daemon=True).start()
        except RuntimeError as error:  # threads are short
            process.end()
            raise OSError(errno.EAGAIN, str(error)) from error
        run.process = process

    def _await_exit(self, run: _Supervised, process: GuardedProcess) -> None:
        self._events.put(_Exit(run, process, process.wait()))

    # --- watching ---

    def _step(self) -> None:
        """Wait for one event, or for a tick; then do what is due."""
        busy = (
            self._replacing
            or self._forks.is_loading()
            or any(run.due_at or (run.process and not run.ready) for run in self._runs)
        )
        try:
            event = self._events.get(timeout=TICK_S if busy else IDLE_S)
        except queue.Empty:
            event = None
        if self._stop_signals:
            return
        if isinstance(event, _Exit):
            self._on_exit(event)
        elif isinstance(event, ServerExit):
            self._forks.on_exit(event)
        elif event == REPLACE:
            self._replace_all()
        for run in self._runs:
            if run.due_at is not None and time.monotonic() >= run.due_at:
                self._try_start(run)
            elif run.is_starting():
                self._check_ready(run)
        self._replace_next()

    def _replace_all(self) -> None:
        """Start replacing, even during a replacement: another version may be on the disk."""
        if not self._complete:
            self._output.say("not all processes are ready yet; send SIGUSR2 again when they are")
            return
        replaceable = [run for run in self._runs if run.spec.replaceable]
        self._replacing = sorted(
            replaceable, key=lambda run: run.ready
        )  # first those that are down
        for run in self._replacing:
            run.must_be_replaced = True
        self._forks.renew()
        self._output.say("replacing " + ", ".join(run.name for run in self._replacing))

    def _replace_next(self) -> None:
        """Replace the next process when the last one is ready, so that one is down at a time."""
        if self._forks.is_loading():
            return
        while (
            self._replacing and not self._replacing[0].must_be_replaced and self._replacing[0].ready
        ):
            self._replacing.pop(0)
            if not self._replacing:
                self._output.say("all processes are replaced")
        if self._replacing and self._replacing[0].must_be_replaced:
            run = self._replacing[0]
            run.must_be_replaced, run.not_ready_since_replaced = False, True
            if run.process is not None and run.process.poll() is None:
                run.ready = False
                run.ending = True
                run.process.stop()
            elif run.due_at is not None:  # it waits for its restart
                run.due_at, run.restarts_at = time.monotonic(), []

    def _check_ready(self, run: _Supervised) -> None:
        spec, now = run.spec, time.monotonic()
        took_s = now - run.started_at
        if not spec.once and (spec.is_ready is None or spec.is_ready()):
            run.ready, run.not_ready_since_replaced = True, False
            self._output.say(f"{run.name} is ready after {took_s:.1f} s")
            return
        start_s_max = self._retry_limits.start_s_max
        if start_s_max is not None and took_s > start_s_max and not self._complete:
            raise HubFailed(
                f"{run.name} is not ready after {took_s:.0f} s; EVENTHUB_START_TIMEOUT_S allows "
                f"{start_s_max:g} s. Its output is above"
            )
        if now >= run.slow_at:
            run.slow_at = now + took_s  # after 60 s, 120 s, 240 s ...
            self._output.say(f"{run.name} is not ready after {took_s:.0f} s: still waiting for it")

    def _on_exit(self, event: _Exit) -> None:
        run = event.run
        if event.status < 0:
            self._output.say(f"the guardian of {run.name} was killed: ending its processes")
            self._clear_orphans(run.spec.command)
        if run.spec.once and event.status == 0:
            run.ready = True
            return
        if run.ending:
            run.ending = False
            self._plan(run, 0.0)
            return
        if run.not_ready_since_replaced:
            if self._replacing:
                self._output.say(
                    f"{run.name} cannot run; the reason is in its output above. The other "
                    "processes are not replaced, and it is restarted"
                )
            self._replacing = []
        elif event.status == os.EX_CONFIG:
            raise HubFailed(
                f"{run.name} cannot run with the hub's settings or data, and a restart would not "
                "help; the reason is in its output above"
            )
        self._plan_restart(run, f"ended with status {event.status}")

    def _plan_restart(self, run: _Supervised, reason: str) -> None:
        now = time.monotonic()
        external_cause = self._retry_limits.external_cause()
        if external_cause is not None:
            reason = f"{reason}, {external_cause.reason}"
            if external_cause.at_once:
                self._plan(run, limits.DISK_FULL_RESTART_S)
                self._output.say(f"{run.name} {reason}: restarting it")
                return
        delay_s, row = decide(run.restarts_at, now, self._retry_limits.restarts_max)
        if delay_s is None:
            raise HubFailed(
                f"{run.name} {reason} after {row} restarts in a row, as many as "
                "EVENTHUB_RESTARTS_MAX allows; the hub stops, the reason is in its output above"
            )
        run.restarts_at = [*run.restarts_at[-row:], now + delay_s] if row else [now + delay_s]
        self._plan(run, delay_s)
        often = f", after {row} restarts in a row" if row >= OFTEN else ""
        self._output.say(f"{run.name} {reason}: restarting it in {delay_s:g} s{often}")

    def _plan(self, run: _Supervised, delay_s: float) -> None:
        run.due_at = time.monotonic() + delay_s
        run.ready = False

    def _clear_orphans(self, command: Command) -> None:
        known = {run.process.pid for run in self._runs if run.process is not None}
        orphans.clear(
            command,
            known | self._forks.pids,
            lambda: self._stop_signals >= HURRY_SIGNALS,
            self._output.say,
        )

    # --- stopping ---

    def _stop_all(self) -> None:
        """Stop all in reverse order, each stage together, within STOP_TIMEOUT_S_MAX; a second
        signal kills the rest.
        """
        alive = [
            run for run in self._runs if run.process is not None and run.process.poll() is None
        ]
        if alive:
            self._output.say("stopping (press Ctrl-C again to kill)")
        until = time.monotonic() + limits.STOP_TIMEOUT_S_MAX - 2 * KILL_GRACE_S
        signals = self._stop_signals
        for stage in sorted({run.spec.stage for run in alive}, reverse=True):
            processes = [
                r.process for r in alive if r.spec.stage == stage and r.process is not None
            ]
            grace_s = max((process.command.grace_s for process in processes), default=0.0)
            for process in processes:
                process.stop()
            self._await_all(processes, min(until, time.monotonic() + grace_s), signals)
        for run in self._runs:
            if run.process is not None and _collect(run.process) < 0:
                self._clear_orphans(run.spec.command)
        self._forks.end()
        self._output.drain()
        if any(run.process is not None for run in self._runs):
            self._output.say("stopped")

    def _await_all(self, processes: Sequence[GuardedProcess], until: float, signals: int) -> None:
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


def _stop_signals() -> list[signal.Signals]:
    """Return the signals that stop the hub: without SIGHUP when it is run by `nohup`."""
    ignored = signal.getsignal(signal.SIGHUP) is signal.SIG_IGN
    return [one for one in SIGNALS if one != signal.SIGHUP or not ignored]


def _collect(process: GuardedProcess) -> int:
    """Return the status of a guardian that was asked to stop or kill; one that does not end is
    killed itself.
    """
    try:
        return process.wait(KILL_GRACE_S)
    except subprocess.TimeoutExpired:
        process.process.kill()
        return process.wait()
