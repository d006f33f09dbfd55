"""Fixtures for all tests. PostgreSQL and Redis come from tests/embedded.py."""

import gc
from collections.abc import Iterator
from zlib import crc32

import hypothesis
import pytest
from django.db import connections

from tests.databases import migrated_template
from tests.embedded import TOGETHER, group_of
from tests.live import LIVE_HUBS, LiveHub, LiveZone, live_hub
from tests.sink import Sink, nothing, thanks

# how fast inputs are drawn, and a case runs, depends on what else the machine does
hypothesis.settings.register_profile(
    "eventhub", deadline=None, suppress_health_check=[hypothesis.HealthCheck.too_slow]
)
hypothesis.settings.load_profile("eventhub")


# fixtures of the whole run whose hubs rest after the last test that uses them: an idle hub takes a
# twentieth of a core
HUBS = ("hub", "world")
_done_with: pytest.StashKey[list[str]] = pytest.StashKey()


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mix the files: those of one folder burden the machine in the same way, and several processes
    would run them at once. Those that share a running hub come first. Of these and of the others,
    those with slow tests come in the first half; short ones come last, so that all processes end
    together.
    """
    marked = {_group(item) for item in items if item.get_closest_marker("slow")}
    slow = marked.union(TOGETHER)
    sharing = {_group(item) for item in items if _uses(item)}

    def place(item: pytest.Item) -> tuple[bool, bool, int, str]:
        file, group = _file(item), _group(item)
        short = file.startswith(("tests/unit/", "tests/tidy/")) and group not in slow
        return short, group not in sharing, crc32(group.encode()) >> (group in slow), file

    items.sort(key=place)
    last = {name: at for at, item in enumerate(items) for name in _uses(item)}
    for at, item in enumerate(items):
        item.stash[_done_with] = [name for name in HUBS if at > last.get(name, at)]
        for kind in ("spark", "browser"):
            if item.nodeid.startswith(f"tests/{kind}/"):
                item.add_marker(kind)


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    """Start or stop the hubs of the whole run, before fixtures that use them are set up."""
    running = item.config.stash.get(LIVE_HUBS, {})
    for name, hub in running.items():
        if name in _uses(item):
            hub.wake()
        elif name in item.stash[_done_with]:
            hub.rest()


def _uses(item: pytest.Item) -> list[str]:
    """Return the hubs of the whole run that a test uses."""
    used: list[str] = getattr(item, "fixturenames", [])
    return [name for name in HUBS if name in used]


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


@pytest.fixture(scope="session")
def hub(tmp_path_factory: pytest.TempPathFactory, pytestconfig: pytest.Config) -> Iterator[LiveHub]:
    """Yield a running hub for the whole run, started on first use."""
    with live_hub(tmp_path_factory.mktemp("hub")) as running:
        pytestconfig.stash.setdefault(LIVE_HUBS, {})["hub"] = running
        yield running
        running.rest()


@pytest.fixture(scope="session")
def _receiver() -> Iterator[Sink]:
    with Sink().serving() as sink:
        yield sink


@pytest.fixture
def sink(hub: LiveHub, _receiver: Sink) -> Sink:
    """Return a receiver of callbacks, empty, with all the hub's forwarders and workers running."""
    hub.start_callbacks()
    _receiver.called.clear()
    _receiver.answer, _receiver.body = thanks, nothing
    return _receiver


@pytest.fixture
def without_workers(hub: LiveHub) -> None:
    """Stop the workers: jobs stay queued until `hub.start_callbacks()`, or the test runs them."""
    for process in hub.workers:
        process.stop()


@pytest.fixture
def zone(hub: LiveHub) -> LiveZone:
    """Return a zone of the test's own, so that tests do not meet."""
    return hub.new_zone()
