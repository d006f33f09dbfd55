"""A hub without Redis: features that work and features that are refused; each process logs them at
its start.
"""

import time
from collections.abc import Iterator

import pytest

from tests.live import LiveHub, live_hub
from tests.sink import Sink

EVENT = {"domain": "shop", "type": "order.placed", "attributes": {"n": 1}}


@pytest.fixture(scope="module")
def alone(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LiveHub]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("REDIS_URL", "")
        with live_hub(tmp_path_factory.mktemp("alone"), count=1) as hub:
            hub.start_callbacks()
            yield hub


async def test_emit_listen_and_callbacks_work(alone: LiveHub) -> None:
    zone = alone.new_zone()
    zone.create_stream("orders")
    with Sink().serving() as sink:
        endpoint = zone.endpoint(sink.url("/hook"))
        zone.register({"streams": ["orders"], "endpoint": endpoint["id"]})
        async with zone.client() as client:
            assert zone.emit("orders", EVENT).status in (200, 201)
            async for delivered in client.listen("orders", start="oldest"):
                assert delivered.event["attributes"] == {"n": 1}
                break
        [called] = sink.wait(1, "/hook")
        assert called.verified(endpoint["secret"])


def test_requests_that_need_redis_are_refused_with_the_reason(alone: LiveHub) -> None:
    zone = alone.new_zone()
    zone.create_stream("ticks", durability="transient")
    zone.emit("ticks", EVENT).refused(503, "transient_unavailable")
    alone.operate("POST", "/v1/jobs/audit/runs", {}).refused(503, "redis_off")
    zone.create_stream("orders", matching="index")
    path = "/v1/streams/orders/match-index"
    alone.call("POST", path, {}, key=zone.admin).refused(503, "redis_off")


def test_each_process_logs_refused_features_at_its_start(alone: LiveHub) -> None:
    for part in (alone.web[0], alone.forwarders[0], alone.workers[0]):
        until = time.monotonic() + 40
        while not (said := [line for line in part.log().splitlines() if "without_redis" in line]):
            assert time.monotonic() < until, part.name
            time.sleep(0.05)
        assert "emit, listen, registrations, callbacks" in said[0]
        assert "transient streams, jobs" in said[0]
