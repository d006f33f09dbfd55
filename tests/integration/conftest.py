"""Fixtures of the tests of callbacks: a migrated database, copied for each test."""

from collections.abc import Iterator

import pytest

from tests.integration.callbacks_world import (
    CallbacksWorld,
    callbacks_world,
    template_database,
)


@pytest.fixture(scope="session")
def callbacks_template() -> Iterator[str]:
    with template_database() as name:
        yield name


@pytest.fixture
def world(callbacks_template: str) -> Iterator[CallbacksWorld]:
    with callbacks_world(callbacks_template) as made:
        yield made
