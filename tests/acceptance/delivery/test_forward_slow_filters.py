"""One event with a long list, and filters with many tests of it, do not stop the stream's
callbacks.
"""

from eventhub.base import limits
from tests.acceptance.wire import session
from tests.live import LiveZone
from tests.sink import Sink

FILTERS = 12
TESTS = 300
LIST = limits.ATTRIBUTES_VALUES_MAX - 1  # one less, for its own name


def hostile(number: int) -> str:
    """Return filters that share no test, so that all are evaluated."""
    first = 100_000 + number * TESTS
    return f"(not (or {' '.join(f'(> tags {first + n})' for n in range(TESTS))}))"


async def test_a_long_list_and_many_thresholds_do_not_stop_callbacks(
    zone: LiveZone, sink: Sink
) -> None:
    """Each of two forwarders blocked its loop for longer than its lease, and the other one started
    again: the event was never passed.
    """
    zone.create_stream("orders")
    endpoint = zone.endpoint(sink.url(f"/{zone.name}"))["id"]
    zone.register({"streams": ["orders"], "endpoint": endpoint, "type": "plain"})
    quiet = zone.endpoint(sink.url(f"/{zone.name}/quiet"))["id"]
    template = {"streams": ["orders"], "endpoint": quiet, "language": "predicate"}
    made = zone.register(*({**template, "filter": hostile(number)} for number in range(FILTERS)))
    plain = {"domain": "d", "type": "plain"}
    assert zone.emit("orders", [plain]).status == 200
    sink.wait(1, f"/{zone.name}")
    leases = epochs(zone)
    async with session(zone.hub, zone.admin) as reader:
        await reader.listen("orders", registrations=[one["id"] for one in made])
        expensive = {"domain": "d", "type": "expensive", "attributes": {"tags": ["1"] * LIST}}
        assert zone.emit("orders", [expensive, plain]).status == 200
        called = sink.wait(2, f"/{zone.name}")
        assert [one.json["event"]["type"] for one in called] == ["plain", "plain"]
        assert epochs(zone) == leases, "no other forwarder had to take the stream"
        [event] = [one for one in await reader.events(2) if one["event"]["type"] == "expensive"]
        assert event["registrations"] == [one["id"] for one in made]
    longer = {**expensive, "attributes": {"tags": ["1"] * (LIST + 1)}}
    refused = zone.emit("orders", [longer])
    assert refused.refused(400, "field_too_long")["values_max"] == limits.ATTRIBUTES_VALUES_MAX


def epochs(zone: LiveZone) -> list[tuple[int]]:
    """Return how often a forwarder took the stream."""
    query = (
        "SELECT f.epoch FROM forwarding f JOIN streams s ON s.id = f.stream_id"
        " JOIN zones z ON z.id = s.zone_id WHERE z.name = %s AND s.name = 'orders'"
    )
    return zone.hub.sql(query, zone.name)
