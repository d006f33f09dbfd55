"""Fixtures of the acceptance tests."""

from collections.abc import Iterator

import pytest

from tests.acceptance.bad_inputs import World
from tests.live import LIVE_HUBS, live_hub


@pytest.fixture(scope="session")
def world(tmp_path_factory: pytest.TempPathFactory, pytestconfig: pytest.Config) -> Iterator[World]:
    """Start a hub of its own for the tests of bad input, in which nothing else runs."""
    with live_hub(tmp_path_factory.mktemp("untouched"), count=1) as hub:
        pytestconfig.stash.setdefault(LIVE_HUBS, {})["world"] = hub
        yield World(hub)


@pytest.fixture(scope="module")
def untouched(world: World) -> Iterator[None]:
    """Check that the module changes no table (but bad_inputs.NOT_DIGESTED)."""
    before = world.digest()
    yield
    assert world.digest() == before
