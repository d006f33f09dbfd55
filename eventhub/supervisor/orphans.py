"""Processes that the supervisor inherits when their guardian is killed. Plain module."""

import contextlib
import os
import signal
import time
from collections.abc import Callable, Set

from eventhub.base import guardian
from eventhub.base.guarded_process import Command

TICK_S = 0.05
REPORT_S = 10.0  # between reports of processes that outlive SIGKILL


def clear(
    command: Command, known: Set[int], is_hurried: Callable[[], bool], say: Callable[[str], None]
) -> None:
    """End the orphans of a killed guardian before its command is restarted. Returns when none is
    left. `known` are guardians and other children whose processes stay; SIGKILL follows when the
    command's grace is over or `is_hurried`.
    """
    now = time.monotonic()
    until, report_at = now + command.grace_s, now + command.grace_s + REPORT_S
    number: int = command.stop_signal
    while orphans := _inherited(known):
        guardian.signal_all(orphans, number)
        now = time.monotonic()
        patient = now < until and not is_hurried()
        number = 0 if patient else signal.SIGKILL
        if now >= report_at:
            report_at = now + REPORT_S
            say(f"{command.name} was killed and does not end: process {orphans}")
        for pid in orphans:
            with contextlib.suppress(ChildProcessError):  # a grandchild: its parent reaps it
                os.waitpid(pid, os.WNOHANG)
        time.sleep(TICK_S)


def _inherited(known: Set[int]) -> list[int]:
    """Return the processes inherited from a killed guardian, and all below them."""
    everyone = guardian.descendants(os.getpid())
    guarded = {pid for root in known for pid in (root, *guardian.descendants(root))}
    return [pid for pid in everyone if pid not in guarded]
