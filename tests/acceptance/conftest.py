"""Fixtures of the acceptance tests."""

from collections.abc import Iterator

import pytest

from tests.acceptance.bad_inputs import World
from tests.hub_fixtures import hub, receiver, sink, without_workers, zone
from tests.live import live_hub

__all__ = ["hub", "receiver", "sink", "without_workers", "zone"]


@pytest.fixture(scope="package")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    """Start a hub of its own for the tests of bad input, in which nothing else runs."""
    with live_hub(tmp_path_factory.mktemp("untouched"), count=1) as running:
        yield World(running)


@pytest.fixture(scope="module")
def untouched(world: World) -> Iterator[None]:
    """Check that the module changes no table (but bad_inputs.NOT_DIGESTED)."""
    before = world.digest()
    yield
    assert world.digest() == before
