"""Fixtures for all tests. PostgreSQL and Redis come from tests/embedded.py."""

import gc
import re
from pathlib import Path
from zlib import crc32

import hypothesis
import pytest
from django.db import connections

from tests.databases import migrated_template
from tests.embedded import TOGETHER, group_of

# what files have whose tests need forwarders or workers
CALLBACKS = re.compile(r"\bsink: Sink\b|\bwithout_workers\b|\.start_callbacks\(")
# how fast inputs are drawn depends on what else the machine does
hypothesis.settings.register_profile(
    "eventhub", suppress_health_check=[hypothesis.HealthCheck.too_slow]
)
hypothesis.settings.load_profile("eventhub")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mix the files: those of one folder burden the machine in the same way, and several processes
    would run them at once. Only those of the running hub come first and together, because it takes
    processor time as long as it runs: first those that need only its web processes. Of the others,
    those with slow tests come in the first half, and short ones last, so that all processes end
    together.
    """
    slow = {_group(item) for item in items if item.get_closest_marker("slow")}.union(TOGETHER)
    calling = {group_of(file) for file in {_file(item) for item in items} if _calls_back(file)}

    def place(item: pytest.Item) -> tuple[int, int, str]:
        file, group = _file(item), _group(item)
        number = crc32(group.encode()) >> (group in slow)
        if file.startswith("tests/acceptance/"):
            return (group in calling) + 2 * (group in TOGETHER), number, file
        short = file.startswith(("tests/unit/", "tests/tidy/")) and group not in slow
        return 5 if short else 4, number, file

    items.sort(key=place)
    for item in items:
        for kind in ("spark", "browser"):
            if item.nodeid.startswith(f"tests/{kind}/"):
                item.add_marker(kind)


def _calls_back(file: str) -> bool:
    return CALLBACKS.search(Path(file).read_text()) is not None


def _file(item: pytest.Item) -> str:
    return item.nodeid.partition("::")[0]


def _group(item: pytest.Item) -> str:
    return group_of(_file(item))


def pytest_collection_finish() -> None:
    """Exclude the loaded modules from garbage collection, as a web process does."""
    gc.freeze()


@pytest.fixture(scope="session")
def django_db_modify_db_settings() -> None:
    """Make the database of pytest-django a copy of the migrated template, too. A test is one
    transaction, which may be idle for as long as the test computes.
    """
    settings = connections["default"].settings_dict
    settings["TEST"]["TEMPLATE"] = migrated_template()
    settings["OPTIONS"]["options"] += " -c idle_in_transaction_session_timeout=0"
