"""The running hub of the tests of one folder, and what they need with it.

The folder's `conftest.py` imports these fixtures, so that the hub ends with the folder's last test:
one that nobody uses takes a twentieth of a core.
"""

from collections.abc import Iterator

import pytest

from tests.live import LiveHub, LiveZone, live_hub
from tests.sink import Sink, thanks

__all__ = ["hub", "receiver", "sink", "without_workers", "zone"]


@pytest.fixture(scope="package")
def hub(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LiveHub]:
    """Yield a running hub for all tests of the folder, started on first use."""
    with live_hub(tmp_path_factory.mktemp("hub")) as running:
        yield running
        for process in running.web:  # a test that stops one starts it again
            assert process.is_ready(), f"{process.name} was left stopped"


@pytest.fixture(scope="package")
def receiver() -> Iterator[Sink]:
    """Yield a receiver of callbacks. Tests use `sink`."""
    with Sink().serving() as sink:
        yield sink


@pytest.fixture
def sink(hub: LiveHub, receiver: Sink) -> Sink:
    """Return a receiver of callbacks, empty, with all the hub's forwarders and workers running."""
    hub.start_callbacks()
    receiver.called.clear()
    receiver.answer = thanks
    return receiver


@pytest.fixture
def without_workers(hub: LiveHub) -> None:
    """Stop the workers: jobs stay queued until `hub.start_callbacks()`, or the test runs them."""
    for process in hub.workers:
        process.stop()


@pytest.fixture
def zone(hub: LiveHub) -> LiveZone:
    """Return a zone of the test's own, so that tests do not meet."""
    return hub.new_zone()
