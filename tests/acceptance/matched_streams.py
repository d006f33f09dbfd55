"""Streams of a live hub with their matching strategies, and the work of their matchers as
`/metrics` has it. Forwarders report it every 0.25 s.
"""

import re
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict
from datetime import timedelta
from functools import wraps
from typing import Any

from eventhub.base import limits
from registrations.matching.matcher import Counters
from tests.live import LiveHub, LiveZone
from tests.sink import Sink

TIMEOUT_S = 30.0
OTHER = "other"  # the label of streams beyond the first hundred of a forwarder
POLL_S = 0.05
ATTEMPTS = 3
LEASE = timedelta(seconds=limits.FORWARD_LEASE_S)


class MatchedStream:
    """A stream, by default named after its strategy."""

    def __init__(self, zone: LiveZone, strategy: str, name: str = "") -> None:
        self.zone = zone
        self.strategy = strategy
        self.name = zone.create_stream(name or strategy, matching=strategy)
        [(self.id,)] = zone.hub.sql(
            "SELECT s.id FROM streams s JOIN zones z ON z.id = s.zone_id"
            " WHERE z.name = %s AND s.name = %s",
            *(zone.name, self.name),
        )

    def emit(self, events: Any) -> None:
        assert self.zone.emit(self.name, events).status == 200

    def emit_reported(self, event: Any) -> None:
        """Emit an event and wait for a report, which includes all that was forwarded before."""
        before = self.work()
        self.emit(event)
        wait_equal(lambda: self.work() != before, True)

    def work(self) -> Counters:
        """Return the reported work of the stream's matchers."""
        return match_work(self.zone.hub, (str(self.id), OTHER), self.strategy)

    def epoch(self) -> int:
        """Return the epoch of the stream's lease; it increases with each change of the owner."""
        query = "SELECT epoch FROM forwarding WHERE stream_id = %s"
        [(found,)] = self.zone.hub.sql(query, self.id)
        return int(found)

    def versions(self) -> dict[str, int]:
        """Return the number of versions that the stream is matched with, by location."""
        found: dict[str, int] = {}
        for labels, value in samples(self.zone.hub, "eventhub_index_versions"):
            if labels["stream"] in (str(self.id), OTHER):
                found[labels["where"]] = found.get(labels["where"], 0) + int(value)
        return found


class LeaseMoved(Exception):
    """A stream got another forwarder during a measurement; it matches the last events again."""


def undisturbed(test: Callable[[LiveHub, LiveZone, Sink], None]) -> Callable[..., None]:
    """Repeat a test in a new zone if a lease moved: on a busy machine a forwarder may lose it."""

    @wraps(test)
    def attempt(hub: LiveHub, zone: LiveZone, sink: Sink) -> None:
        for _ in range(ATTEMPTS - 1):
            try:
                return test(hub, zone, sink)
            except LeaseMoved:
                zone = hub.new_zone()
        return test(hub, zone, sink)

    return attempt


Costs = Mapping[MatchedStream, tuple[Any, Counters]]


def check_costs(costs: Costs) -> None:
    """Emit an event on each stream, and wait until exactly this work is reported for it. Raise
    LeaseMoved.
    """
    before = {stream: stream.work() for stream in costs}
    epochs = {stream: stream.epoch() for stream in costs}
    for stream, (event, _) in costs.items():
        stream.emit(event)

    def spent() -> dict[str, dict[str, int]]:
        found = {
            stream.name: {
                work: count - getattr(before[stream], work)
                for work, count in asdict(stream.work()).items()
            }
            for stream in costs
        }
        if found != expected and epochs != {stream: stream.epoch() for stream in costs}:
            raise LeaseMoved
        return found

    expected = {stream.name: asdict(work) for stream, (_, work) in costs.items()}
    wait_equal(spent, expected)


def wait_equal(current: Callable[[], Any], expected: Any) -> None:
    """Wait until a value is as expected; fail with both."""
    until_s = time.monotonic() + TIMEOUT_S
    while (found := current()) != expected and time.monotonic() < until_s:
        time.sleep(POLL_S)
    assert found == expected, f"{found} instead of {expected}"


def match_work(hub: LiveHub, streams: Sequence[str], strategy: str) -> Counters:
    """Return the reported work of matchers, by the labels of their streams."""
    found = Counters()
    for labels, value in samples(hub, "eventhub_match_work_total"):
        if labels["stream"] in streams and labels["strategy"] == strategy:
            setattr(found, labels["work"], getattr(found, labels["work"]) + int(value))
    return found


def samples(hub: LiveHub, name: str) -> Iterator[tuple[dict[str, str], float]]:
    """Yield the labels and the value of each sample of a metric."""
    for line in hub.call("GET", "/metrics").body.decode().splitlines():
        if line.startswith((f"{name}{{", f"{name} ")):
            yield dict(re.findall(r'(\w+)="([^"]*)"', line)), float(line.rsplit(" ", 1)[1])


def builds(hub: LiveHub) -> dict[str, int]:
    """Return how many matchers forwarders built, by reason."""
    found = samples(hub, "eventhub_forward_builds_total")
    return {labels["reason"]: int(value) for labels, value in found}


def leases_taken(hub: LiveHub) -> int:
    """Return how often a forwarder took a lease."""
    [(epochs,)] = hub.sql("SELECT sum(epoch)::bigint FROM forwarding")
    return int(epochs)


def deliveries(hub: LiveHub, streams: Sequence[MatchedStream]) -> int:
    """Return the number of deliveries that were written for the streams."""
    ids = [stream.id for stream in streams]
    [(count,)] = hub.sql("SELECT count(*) FROM deliveries WHERE stream_id = ANY (%s)", ids)
    return int(count)


def wait_forwarded(hub: LiveHub, ids: Sequence[int]) -> None:
    """Wait until forwarders have the streams and will not exchange them: both send heartbeats from
    now on, a killed one no longer counts, and each holds its share (delivery/forward/leases.py).
    """
    [(begin,)] = hub.sql("SELECT clock_timestamp()")

    def is_settled() -> bool:
        counts = hub.sql(
            "SELECT count(*) FILTER (WHERE stream_id = ANY (%s)),"
            " count(*) FILTER (WHERE expires_at < clock_timestamp()),"
            " (SELECT count(*) FROM forwarders WHERE last_seen_at > %s),"
            " (SELECT count(*) FROM forwarders WHERE last_seen_at > clock_timestamp() - %s)"
            " FROM forwarding",
            *(list(ids), begin, LEASE),
        )
        held = [count for (count,) in hub.sql("SELECT count(*) FROM forwarding GROUP BY owner")]
        forwarders = len(hub.forwarders)
        share = -(-sum(held) // forwarders)
        is_shared = max(held, default=0) <= share + max(share // 10, 1)
        return is_shared and counts == [(len(ids), 0, forwarders, forwarders)]

    wait_equal(is_settled, True)
