"""Time limits for a busy machine. A test that asserts how soon something happens runs beside other
test processes, which take turns on the processors with it and with its hub.
"""

import os


def stretched(seconds: float) -> float:
    """Return a time limit of an idle machine, longer by the share of a processor that each running
    process has: with six running processes on two cores it is three times as long.
    """
    cores = len(os.sched_getaffinity(0))
    return seconds * max(1.0, os.getloadavg()[0] / cores)
