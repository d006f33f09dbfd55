"""The command `python -m tests.benchmarks.feed JSON`: inserts events and their deliveries at a
constant rate, as forwarders do, and notifies the workers. It runs in a process of its own.
"""

import json
import os
import sys
import time
from typing import NamedTuple

from tests.benchmarks import deliveries


class Feed(NamedTuple):
    """The parameters: one event for all endpoints every `interval_s`."""

    stream_id: int
    endpoints: list[int]
    seconds: float
    interval_s: float


def main() -> None:
    feed = Feed(*json.loads(sys.argv[1]))
    with deliveries.connect(os.environ["DATABASE_URL"]) as connection:
        next_s = time.monotonic()
        until_s = next_s + feed.seconds
        while next_s < until_s:
            sequences = deliveries.append(connection, feed.stream_id, 1)
            deliveries.insert_pending(connection, feed.stream_id, sequences, feed.endpoints)
            deliveries.notify(connection)
            next_s += feed.interval_s
            time.sleep(max(0.0, next_s - time.monotonic()))


if __name__ == "__main__":
    main()
