"""A running hub for acceptance tests: two web processes on a database of their own, reached only
through the public API. tests/README.md shows how to use it.

All but `LiveZone.client` is synchronous, so that plain and async tests can use it.
"""

import http.client
import itertools
import json
import os
import secrets
import subprocess
import threading
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import quote

import psycopg
import pytest
from eventhub_client.remote import HubClient

from tests.databases import copied_once, migrated_template, new_database
from tests.forked import QUICK_PASSWORDS, manage
from tests.live_processes import LiveProcess, Processes

CALL_TIMEOUT_S = 60.0
ANNOUNCED_TIMEOUT_S = 60.0
OPERATOR = "operator"
_KAFKA = [each for each in os.environ.get("EVENTHUB_TEST_KAFKA", "").split(",") if each]
_PASSWORD = secrets.token_urlsafe(12)


class Answer(NamedTuple):
    """The answer to a request. `headers` have lower-case names."""

    status: int
    headers: dict[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.body)

    def refused(self, status: int, code: str) -> dict[str, Any]:
        """Return the problem document of a refusal, after checking status, code and form."""
        assert self.headers.get("content-type") == "application/problem+json", self
        problem: dict[str, Any] = self.json
        assert (self.status, problem["status"], problem["code"]) == (status, status, code), problem
        assert problem["detail"]
        assert isinstance(problem["position"], dict)
        return problem


class LiveHub:
    """A running hub. `url` and `ws_url` are those of the first web process; `web` has all of them.

    Forwarders and workers start when the fixture `sink` is first used.
    """

    def __init__(self, env: dict[str, str], processes: Processes) -> None:
        self.env = env  # of all its processes
        self.database_url = env["DATABASE_URL"]
        self._processes = processes
        self.web = processes.web
        self.forwarders = processes.forwarders
        self.workers = processes.workers
        self.password = env["DJANGO_SUPERUSER_PASSWORD"]  # of the operator
        self._operator: dict[str, str] = {}
        self._numbers = itertools.count(1)
        self._database: psycopg.Connection[tuple[Any, ...]] | None = None
        self._rests = False

    def rest(self) -> None:
        """Stop all processes until `wake`, while no test needs them. Fail if a test had stopped a
        web process, which is to start it again.
        """
        if self._rests:
            return
        stopped = [process.name for process in self.web if not process.is_ready()]
        self._processes.stop()
        self._rests = True
        assert not stopped, f"left stopped: {stopped}"

    def wake(self) -> None:
        """Start the web processes of a hub that rests."""
        if not self._rests:
            return
        self._rests = False
        self._processes.start_web()
        self.until_announced(*self.web)

    @property
    def url(self) -> str:
        return self.web[0].url

    @property
    def ws_url(self) -> str:
        return self.web[0].ws_url

    def call(
        self, method: str, path: str, body: Any = None, *, key: str = "", **more: Any
    ) -> Answer:
        """Send one request, by default to the first web process; see `call` of this module."""
        headers = dict(more.pop("headers", {}))
        if key:
            headers["Authorization"] = f"Bearer {key}"
        return call(more.pop("url", self.url), method, path, body, headers=headers)

    def operate(self, method: str, path: str, body: Any = None) -> Answer:
        """Send one request as the operator, who may do everything; `?zone=` names the zone."""
        return self.call(method, path, body, headers=self.operator())

    def operator(self) -> dict[str, str]:
        """Return the headers of the operator's session: cookies, and the token that writes need."""
        if not self._operator:
            self._operator = self._log_in()
        return self._operator

    def start_callbacks(self) -> None:
        """Start the forwarders and workers that do not run."""
        started = [one for one in (*self.forwarders, *self.workers) if not one.running]
        for process in started:
            process.start()
        self.until_announced(*started)

    def until_announced(self, *started: LiveProcess) -> None:
        """Wait until `system` has the event that these processes joined, so that none comes amid
        those of a test.
        """
        until_s = time.monotonic() + ANNOUNCED_TIMEOUT_S
        while not {process.pid for process in started} <= self._announced():
            assert time.monotonic() < until_s, "some process did not join the hub"
            time.sleep(0.05)

    def _announced(self) -> set[int]:
        return {pid for (pid,) in self.sql("SELECT pid FROM members WHERE joined_at IS NOT NULL")}

    def manage(self, *words: str) -> str:
        """Run `manage.py WORDS` on the hub's database; return its output."""
        return _manage(self.env, *words)

    def refuse(self, *words: str) -> str:
        """Run `manage.py WORDS`, which must fail; return its standard error."""
        done = _run_manage(self.env, *words)
        assert done.returncode == 1, done.stdout + done.stderr
        return done.stderr

    def new_zone(self) -> "LiveZone":
        """Create a zone for one test, with a key that may do everything in it."""
        return LiveZone(self, f"zone-{next(self._numbers)}")

    def sql(self, query: str, *args: Any) -> list[tuple[Any, ...]]:
        """Run a query on the hub's database, committed; return its rows. `%s` is an argument. The
        main thread keeps its connection: some tests ask twenty times a second.
        """
        if threading.current_thread() is not threading.main_thread():
            with self._connect() as connection:
                return _rows(connection, query, args)
        kept = self._database
        if kept is not None and not kept.closed:
            try:
                return _rows(kept, query, args)
            except psycopg.OperationalError:
                if not kept.closed:
                    raise
        self._database = self._connect()  # the first one, or the server has ended the last one
        return _rows(self._database, query, args)

    def close(self) -> None:
        """Close the connection of `sql`."""
        if self._database is not None:
            self._database.close()

    def _connect(self) -> psycopg.Connection[tuple[Any, ...]]:
        return psycopg.connect(self.database_url, autocommit=True, prepare_threshold=None)

    def _log_in(self) -> dict[str, str]:
        body = {"username": OPERATOR, "password": self.password}
        answer = self.call("POST", "/v1/session", body)
        assert answer.status == 200, answer
        token = answer.json["csrf_token"]
        cookies = [part.split(";", 1)[0] for part in answer.headers["set-cookie"].split("\n")]
        return {"Cookie": "; ".join(cookies), "X-CSRFToken": token, "Referer": self.url}


# those that serve the whole run, by the name of their fixture
LIVE_HUBS: pytest.StashKey[dict[str, LiveHub]] = pytest.StashKey()


class LiveZone:
    """A zone with the client `tester`. A new zone has no streams or channels but `system`."""

    def __init__(self, hub: LiveHub, name: str) -> None:
        self.hub = hub
        self.name = name
        assert hub.operate("POST", "/v1/zones", {"name": name}).status == 201
        self._clients: set[str] = set()
        self.admin = self.key("emit:*", "listen:*", "manage:*")

    def key(self, *grants: str, client: str = "tester", **terms: Any) -> str:
        """Create a key and return its text: `zone.key("emit:orders.*", "listen:*")`. `terms`:
        `label`, `expires_at`.
        """
        if client not in self._clients:
            self._create("POST", "/v1/clients", {"name": client})
            self._clients.add(client)
        pairs = [grant.split(":", 1) for grant in grants]
        body = {"grants": [{"action": a, "streams": s} for a, s in pairs], **terms}
        text: str = self._create("POST", f"/v1/clients/{client}/keys", body).json["key"]
        return text

    def revoke(self, key: str) -> None:
        """Revoke a key; effective within a second in every process."""
        path = f"/v1/keys/{key.split('_')[1]}"
        assert self.hub.operate("DELETE", f"{path}?zone={self.name}").status == 204

    def token(self, key: str = "", **body: Any) -> str:
        """Create a connection token for a key, by default the admin's."""
        answer = self.hub.call("POST", "/v1/connection-tokens", body, key=key or self.admin)
        assert answer.status == 201, answer
        text: str = answer.json["token"]
        return text

    def operator_token(self, **body: Any) -> str:
        """Create a connection token for this zone as the operator."""
        return str(self._create("POST", "/v1/connection-tokens", body).json["token"])

    def client(self, *grants: str, key: str = "", name: str = "tester", web: int = 0) -> HubClient:
        """Return a client of the hub, `async with zone.client() as client:`, by default with the
        admin's key; `web` chooses the process.
        """
        if grants:
            key = self.key(*grants, client=name)
        return HubClient(self.hub.web[web].url, key or self.admin)

    def create_stream(self, name: str, **policy: Any) -> str:
        """Create a stream in this zone; return its name."""
        answer = self.hub.call("PUT", f"/v1/streams/{name}", policy, key=self.admin)
        assert answer.status == 201, answer
        return name

    def define_channel(self, name: str, bit: int) -> str:
        answer = self.hub.call(
            "PUT", f"/v1/channels/{name}", {"mask": str(1 << bit)}, key=self.admin
        )
        assert answer.status == 201, answer
        return name

    def emit(self, stream: str, events: Any, *, key: str = "", **more: Any) -> Answer:
        """Send a POST to the emit route; the answer may be a refusal."""
        path = f"/v1/streams/{quote(stream, safe='')}/events"
        return self.hub.call("POST", path, events, key=key or self.admin, **more)

    def register(self, *registrations: dict[str, Any], key: str = "") -> list[dict[str, Any]]:
        """Create registrations of the key's client, all or none."""
        answer = self.hub.call(
            "POST", "/v1/registrations", list(registrations), key=key or self.admin
        )
        assert answer.status == 201, answer
        items: list[dict[str, Any]] = answer.json["items"]
        return items

    def endpoint(self, url: str, *, key: str = "", **more: Any) -> dict[str, Any]:
        """Create an endpoint of the key's client; return it with its secret."""
        body = {"url": url, **more}
        answer = self.hub.call("POST", "/v1/endpoints", body, key=key or self.admin)
        assert answer.status == 201, answer
        created: dict[str, Any] = answer.json
        return created

    def _create(self, method: str, path: str, body: Any) -> Answer:
        answer = self.hub.operate(method, f"{path}?zone={self.name}", body)
        assert answer.status == 201, answer
        return answer


def call(
    url: str,
    method: str,
    path: str,
    body: Any = None,
    *,
    headers: dict[str, str],
) -> Answer:
    """Send one request on a new connection. `body`: bytes as they are, anything else as JSON."""
    sent = {"Content-Type": "application/json", **headers}
    data = body if isinstance(body, bytes) or body is None else json.dumps(body).encode()
    connection = http.client.HTTPConnection(url.removeprefix("http://"), timeout=CALL_TIMEOUT_S)
    try:
        connection.request(method, path, data, sent)
        response = connection.getresponse()
        found: dict[str, str] = {}
        for name, value in response.getheaders():
            found[name.lower()] = "\n".join(filter(None, (found.get(name.lower()), value)))
        return Answer(response.status, found, response.read())
    finally:
        connection.close()


@contextmanager
def live_hub(folder: Path, count: int = 2) -> Iterator[LiveHub]:
    """Make a migrated database on the server of DATABASE_URL, and start the web processes. `count`:
    of web processes, of forwarders and of workers.
    """
    with new_database("live", copied_once(migrated_template(), _make_operator)) as url:
        env = _environment(url, folder)
        processes = Processes.of(env, folder, count)
        try:
            _manage(env, "boot", "-v", "0")
            processes.start_web()
            hub = LiveHub(env, processes)
            with closing(hub):
                hub.until_announced(*processes.web)
                yield hub
        finally:
            processes.stop()


def _rows(
    connection: psycopg.Connection[tuple[Any, ...]], query: str, args: tuple[Any, ...]
) -> list[tuple[Any, ...]]:
    cursor = connection.execute(query.encode(), args)
    return cursor.fetchall() if cursor.description else []


def make_operator(env: dict[str, str]) -> None:
    """Create the operator, with the password of the environment."""
    operator = ("--username", OPERATOR, "--email", "o@example.org")
    _manage(env, "createsuperuser", "--skip-checks", "--no-input", *operator)


def _make_operator(database_url: str) -> None:
    make_operator({**os.environ, "DATABASE_URL": database_url, "DATABASE_DIRECT_URL": database_url,
                   "DJANGO_SUPERUSER_PASSWORD": _PASSWORD, QUICK_PASSWORDS: "1"})  # fmt: skip


def _environment(database_url: str, folder: Path) -> dict[str, str]:
    metrics = folder / "metrics"
    metrics.mkdir()
    return {
        **os.environ,
        "DATABASE_URL": database_url,
        "DATABASE_DIRECT_URL": database_url,
        "EVENTHUB_SECRET_KEY": secrets.token_urlsafe(32),
        "EVENTHUB_DATA": str(folder),
        "EVENTHUB_ARCHIVE_URL": str(folder / "archive"),
        "EVENTHUB_LOG_LEVEL": "info",
        "EVENTHUB_CALLBACK_ALLOW": ",".join(("127.0.0.1", *_KAFKA)),
        "PROMETHEUS_MULTIPROC_DIR": str(metrics),
        "DJANGO_SUPERUSER_PASSWORD": _PASSWORD,
        QUICK_PASSWORDS: "1",
    }


def _manage(env: dict[str, str], *words: str) -> str:
    done = _run_manage(env, *words)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def _run_manage(env: dict[str, str], *words: str) -> "subprocess.CompletedProcess[str]":
    return manage(env, *words)
