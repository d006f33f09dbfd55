"""Fixtures of the acceptance tests."""

from collections.abc import Iterator

import pytest

from tests.acceptance.bad_inputs import World
from tests.live import live_hub


@pytest.fixture(scope="session")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    """What bad input is tried on: a hub of its own, in which nothing else goes on."""
    with live_hub(tmp_path_factory.mktemp("untouched")) as hub:
        yield World(hub)


@pytest.fixture(scope="module")
def untouched(world: World) -> Iterator[None]:
    """Whatever the module tries, all tables stay as they are (but bad_inputs.NOT_DIGESTED)."""
    before = world.digest()
    yield
    assert world.digest() == before
