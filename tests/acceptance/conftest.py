"""Fixtures of the acceptance tests."""

from collections.abc import Iterator

import pytest

from tests.acceptance.bad_inputs import World
from tests.live import LiveHub


@pytest.fixture(scope="session")
def world(hub: LiveHub) -> World:
    """What bad input is tried on."""
    return World(hub)


@pytest.fixture(scope="module")
def untouched(world: World) -> Iterator[None]:
    """Whatever the module tries, all tables stay as they are (but bad_inputs.NOT_DIGESTED)."""
    before = world.digest()
    yield
    assert world.digest() == before
