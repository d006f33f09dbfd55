"""A database that was away for a while and is back: the first management call is answered.

The story: the pool of connections slept longer and longer between its attempts, and callers were
notified for as long again that the database was away. And each process logged several lines a
second.
"""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

import psycopg
import pytest
from psycopg import sql
from psycopg.conninfo import conninfo_to_dict, make_conninfo

from tests.live import Answer, LiveHub, live_hub
from tests.live_processes import WebProcess

AWAY_CALLS = 4  # one after the other; each waits for a connection until it is refused
LINES_MAX = 45  # of both web processes meanwhile: half are of the calls, the rest of what is away
LEAVE = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = %s"


@contextmanager
def away(hub: LiveHub) -> Iterator[None]:
    """Refuse all connections to the hub's database."""
    name = conninfo_to_dict(hub.database_url)["dbname"]
    allow = sql.SQL("ALTER DATABASE {} ALLOW_CONNECTIONS {}")
    admin_url = make_conninfo(hub.database_url, dbname="postgres")
    with psycopg.connect(admin_url, autocommit=True) as admin:
        admin.execute(allow.format(sql.Identifier(str(name)), sql.SQL("false")))
        try:
            admin.execute(LEAVE, [name])
            yield
        finally:
            admin.execute(allow.format(sql.Identifier(str(name)), sql.SQL("true")))


@pytest.fixture
def hub(tmp_path: Path) -> Iterator[LiveHub]:
    """Yield a hub of its own: one whose database was away refuses requests for a moment longer."""
    with live_hub(tmp_path) as hub:
        yield hub


def test_the_first_management_call_after_the_database_is_back_is_answered(hub: LiveHub) -> None:
    zone = hub.new_zone()
    zone.create_stream("orders")

    def ask(web: WebProcess) -> Answer:
        return hub.call("GET", "/v1/streams/orders", key=zone.admin, url=web.url)

    before = [len(web.log().splitlines()) for web in hub.web]
    with away(hub), ThreadPoolExecutor() as pool:
        for _ in range(AWAY_CALLS):
            for answer in pool.map(ask, hub.web):
                answer.refused(503, "database_unavailable")
        for web, begun in zip(hub.web, before, strict=True):
            said = web.log().splitlines()[begun:]
            assert len(said) <= LINES_MAX, "\n".join(said)
    for web in hub.web:
        answer = ask(web)
        assert answer.status == 200, answer.body
        web.wait_ready()
