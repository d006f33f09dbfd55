"""Pauses of the tasks of a process that look for work now and then."""

import os
import time

import pytest

from eventhub.base import limits
from eventhub.base.event_loop import pause_together_s

EARLY_S = 0.011  # a timer's precision, which no task waits for again


def moments(monkeypatch: pytest.MonkeyPatch, now_s: float, *pauses_s: float) -> list[float]:
    """Return when tasks that begin to pause now look."""
    monkeypatch.setattr(time, "monotonic", lambda: now_s)
    return [now_s + pause_together_s(pause_s) for pause_s in pauses_s]


@pytest.mark.parametrize("now_s", [1_000.0, 1_001.3, 1_004.999, 5_000_002.5])
def test_tasks_that_pause_for_different_times_look_at_common_moments(
    monkeypatch: pytest.MonkeyPatch, now_s: float
) -> None:
    pauses_s = (5.0, 7.5, 10.0, 12.0, 300.0)
    found = moments(monkeypatch, now_s, *pauses_s)
    apart = [(at_s - found[0]) / limits.PAUSE_TOGETHER_S for at_s in found]
    assert apart == pytest.approx([round(steps) for steps in apart], abs=1e-6)
    for at_s, pause_s in zip(found, pauses_s, strict=True):
        early_s = now_s + pause_s - at_s
        assert -EARLY_S <= early_s < limits.PAUSE_TOGETHER_S


def test_a_task_that_looks_at_each_moment_misses_none_and_comes_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    at_s = moments(monkeypatch, 1_000.0, 5.0)[0]
    for late_s in (0.0, 0.3, -0.001, 0.002, 4.0, -0.005):
        following_s = moments(monkeypatch, at_s + late_s, 5.0)[0]
        assert following_s - at_s == pytest.approx(5.0)
        at_s = following_s


def test_short_pauses_are_as_long_as_they_are(monkeypatch: pytest.MonkeyPatch) -> None:
    assert moments(monkeypatch, 1_000.0, 0.25, 3.5) == [1_000.25, 1_003.5]


def test_processes_have_moments_of_their_own(monkeypatch: pytest.MonkeyPatch) -> None:
    found = []
    for pid in range(4_000, 4_008):
        monkeypatch.setattr(os, "getpid", lambda pid=pid: pid)
        found += [at_s % limits.PAUSE_TOGETHER_S for at_s in moments(monkeypatch, 1_000.0, 5.0)]
    gaps = [
        later - earlier for earlier, later in zip(sorted(found), sorted(found)[1:], strict=False)
    ]
    assert min(gaps) > 0.2
    assert sum(gaps) > limits.PAUSE_TOGETHER_S / 2, "spread over the time between two moments"
