"""A hub without Redis: what works, and what is refused; each part says so when it starts."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.live import LiveHub, live_hub
from tests.sink import Sink, receiving

EVENT = {"domain": "shop", "type": "order.placed"}


@pytest.fixture(scope="module")
def alone(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LiveHub]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("REDIS_URL", "")
        with live_hub(tmp_path_factory.mktemp("alone")) as hub:
            hub.start_callbacks()
            yield hub


def test_emit_listen_and_callbacks_work(alone: LiveHub) -> None:
    zone = alone.new_zone()
    zone.create_stream("orders")
    with receiving() as sink:
        endpoint = zone.endpoint(sink.url("/hook"))
        zone.register({"streams": ["orders"], "endpoint": endpoint["id"], "filter": {}})
        assert zone.emit("orders", EVENT).status in (200, 201)
        [called] = sink.wait(1, "/hook")
        assert called.verified(endpoint["secret"])
