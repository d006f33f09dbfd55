"""Checks of the readers of a process, a quarter of them at a time."""

from collections import deque

import pytest

from delivery.listening.frames import Frame
from delivery.listening.reader_monitor import ReaderMonitor
from delivery.listening.single_reader import SingleReader
from delivery.listening.socket_places import SocketPlaces
from eventhub.access.authorizer import Authorizer
from eventhub.access.principal import Principal
from eventhub.base.clock import SystemClock
from eventhub.eventlog.log import Log
from tests.integration.eventlog_world import log_database

database = pytest.fixture(scope="module")(log_database)


class Silent:
    """A connection that takes everything."""

    def abandon(self, frame: Frame) -> None:
        raise AssertionError(frame)

    def unsent_bytes(self) -> int:
        return 0


@pytest.mark.parametrize("before", range(8, 12))
async def test_a_reader_is_checked_in_its_turn_while_others_come_and_go(
    database: str, before: int
) -> None:
    """With one that went, and one that came, before each check, half of the readers were never
    checked: neither were they slow, nor did their credentials expire.
    """
    expired = Principal(1, "k", 1, "shop", 1, "main", (), expires_at_us=1)
    async with Log.open(database_url=database) as log:
        authorizer = Authorizer(log, secret="of this process", clock=SystemClock())
        monitor = ReaderMonitor(authorizer, SocketPlaces(log.pool))

        def added() -> SingleReader:
            reader = SingleReader(authorizer, SystemClock(), "", expired)
            reader.waiting = True
            monitor.add(reader, Silent())
            return reader

        others = deque(added() for _ in range(before))
        stays = added()
        monitor._check_some()  # all, since rights can no longer be confirmed
        checked = 0
        for _ in range(8):
            monitor.remove(others.popleft())
            others.append(added())
            stays.waker.clear()
            monitor._check_some()
            checked += stays.waker.is_set()
        assert checked == 2
