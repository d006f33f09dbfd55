"""Trials of patterns leave a web process's time to its event loop, and refuse no other client."""

import threading
import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from eventhub.base import limits
from eventhub.base.errors import Unavailable
from registrations.pattern_groups.trial_turns import Trials


@pytest.mark.parametrize("count", [1, 3])
def test_trials_take_half_of_the_time_together(count: int) -> None:
    trials, all_run = Trials(), threading.Barrier(count)

    def share(client: int) -> float:
        with trials.run((1, client)) as pause:
            all_run.wait()
            began_s, used_s = time.monotonic(), time.thread_time()
            while time.thread_time() < used_s + 0.05:
                pause()
            found = (time.thread_time() - used_s) / (time.monotonic() - began_s)
            all_run.wait()
            return found

    with ThreadPoolExecutor(count) as pool:
        assert sum(pool.map(share, range(count))) < 0.6


def test_a_client_has_one_trial_and_all_have_a_few(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "PATTERN_TRIAL_WAIT_S_MAX", 0.0)
    monkeypatch.setattr(limits, "PATTERN_TRIALS_MAX", 2)
    trials = Trials()
    with trials.run((1, 1)):
        with pytest.raises(Unavailable), trials.run((1, 1)):
            pass
        with trials.run((1, 2)), pytest.raises(Unavailable), trials.run((1, 3)):
            pass
        with trials.run((1, 3)):
            pass
    with trials.run((1, 1)):
        pass
