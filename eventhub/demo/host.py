"""Counters of this machine as events: processor, memory, disk, network, each on its channel.
Plain module.
"""

import socket
import time
from collections.abc import Iterator
from typing import Any

import psutil

from eventhub.demo.github import Draft

CHANNELS = ("cpu", "memory", "disk", "network")
MIB = 1024 * 1024


def _draft(channel: str, attributes: dict[str, Any]) -> Draft:
    return {
        "domain": "host",
        "type": "counters",
        "channels": [channel],
        "attributes": {"counter": channel, **attributes},
        "node": socket.gethostname(),
    }


def cpu() -> Draft:
    """Measure the percentage of all processors since the last call, and the load averages."""
    one, five, fifteen = psutil.getloadavg()
    load = {"load_1m": round(one, 2), "load_5m": round(five, 2), "load_15m": round(fifteen, 2)}
    return _draft("cpu", {"percent": psutil.cpu_percent(), "cores": psutil.cpu_count(), **load})


def memory() -> Draft:
    found = psutil.virtual_memory()
    available = {"available_mib": found.available // MIB, "total_mib": found.total // MIB}
    return _draft("memory", {"percent": found.percent, **available})


def disk() -> Draft:
    """Measure the use of the file system of the working folder."""
    found = psutil.disk_usage(".")
    return _draft("disk", {"percent": found.percent, "free_mib": found.free // MIB})


def network(before: tuple[int, int], elapsed_s: float) -> tuple[Draft, tuple[int, int]]:
    """Return the bytes a second since `before` (sent, received), and the current counters."""
    found = psutil.net_io_counters()
    now = (found.bytes_sent, found.bytes_recv) if found else (0, 0)
    rates = [
        round((new - old) / max(elapsed_s, 0.001)) for old, new in zip(before, now, strict=True)
    ]
    draft = _draft("network", {"sent_bytes_per_s": rates[0], "received_bytes_per_s": rates[1]})
    return draft, now


def endless() -> Iterator[list[Draft]]:
    """Yield one event for each channel, measured when it is taken."""
    psutil.cpu_percent()  # the first call has nothing to compare with
    _, counters = network((0, 0), 1.0)
    measured_at = time.monotonic()
    while True:
        now = time.monotonic()
        net, counters = network(counters, now - measured_at)
        measured_at = now
        yield [cpu(), memory(), disk(), net]
