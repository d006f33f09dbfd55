"""Fixtures of the tests of callbacks: a migrated database for each test."""

from collections.abc import Iterator

import pytest

from tests.integration.callbacks_world import CallbacksWorld, callbacks_world


@pytest.fixture
def world() -> Iterator[CallbacksWorld]:
    with callbacks_world() as made:
        yield made
