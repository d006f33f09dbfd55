"""Fixtures for all tests. PostgreSQL and Redis come from tests/embedded.py."""

from collections.abc import Iterator

import pytest

from tests.live import LiveHub, LiveZone, live_hub
from tests.sink import Sink, thanks


@pytest.fixture(scope="session")
def hub(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LiveHub]:
    """A running hub for the whole run, started when the first test asks for it."""
    with live_hub(tmp_path_factory.mktemp("hub")) as running:
        yield running
        for process in running.web:  # a test that stops one starts it again
            assert process.is_ready(), f"{process.name} was left stopped"


@pytest.fixture(scope="session")
def _receiver() -> Iterator[Sink]:
    with Sink().serving() as sink:
        yield sink


@pytest.fixture
def sink(hub: LiveHub, _receiver: Sink) -> Sink:
    """A receiver of callbacks, empty, with all the hub's forwarders and workers running.

    Give each test's endpoints paths of their own: deliveries of an earlier test may still come.
    """
    hub.start_callbacks()
    _receiver.called.clear()
    _receiver.answer = thanks
    return _receiver


@pytest.fixture
def zone(hub: LiveHub) -> LiveZone:
    """A zone of its own, so that tests do not meet."""
    return hub.new_zone()
