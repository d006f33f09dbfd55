"""The base of the tests of bad input: a case, the hub that it is sent to, every route, and a digest
of all stored rows.
"""

import hashlib
import re
import time
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime, timedelta
from typing import Any, NamedTuple, get_args

from django.urls import URLPattern, get_resolver

from delivery.listening import messages
from delivery.listening.route_table import LISTEN_ROUTES
from delivery.mcp.operations import MCP_ROUTES
from delivery.sessions.pull_operations import PULL_ROUTES
from delivery.sessions.route_table import SESSION_ROUTES
from eventhub.http.routes import HTTP_ROUTES
from registrations.bulk.operations import BULK_ROUTES
from registrations.explain.operations import EXPLAIN_ROUTES
from registrations.interest.operations import INTEREST_ROUTES
from registrations.sources.operations import SOURCE_ROUTES
from tests.live import Answer, LiveHub, LiveZone

EVENT = {"domain": "shop", "type": "order.placed"}
DECLARED: dict[str, Any] = {"domain": "shop", "type": "measured", "attributes": {"n": 1}}
# Written on purpose: refused logins are counted, and listeners that started before they were
# refused are recorded. Open sockets are counted, and so are requests to sources. There are no other
# leases and heartbeats.
NOT_DIGESTED = frozenset(
    {
        *("listeners", "login_attempts", "members", "socket_counts", "web_processes"),
        *("source_counts", "source_samples"),
    }
)
NOT_DIGESTED_COLUMN = "watchers"  # of heads: the processes that follow a stream
_METHODS = ("get", "post", "put", "patch", "delete")
TOKEN_S = 3_600  # longer than the tests of a module take
EMIT = "POST /v1/streams/{stream}/events"


class Bad(NamedTuple):
    """One bad request and its whole answer: status, code, position.

    `route` is one of `routes()`; `path` may hold the marks of `World.fill`. `key` names one of the
    world's keys, or is `operator`. `body`: bytes as they are, None for none, anything else as JSON.
    """

    name: str
    route: str
    path: str
    status: int
    code: str
    at: dict[str, Any] = {}  # noqa: RUF012 - never changed
    body: Any = None
    key: str = "admin"
    headers: dict[str, str] = {}  # noqa: RUF012 - never changed
    method: str = ""  # when it is not the route's


class World:
    """A zone with something of everything in it, another zone, and keys of every kind."""

    def __init__(self, hub: LiveHub) -> None:
        self.hub = hub
        self.zone = hub.new_zone()
        self.other = hub.new_zone()
        zone = self.zone
        for name in ("orders", "secret", "old"):
            zone.create_stream(name, **({"segment_events_max": 1} if name == "old" else {}))
        zone.create_stream("kept", keyed=True)
        zone.define_channel("disk", 0)
        self.other.create_stream("theirs")
        self.keys = self._keys(zone)
        self._fill(zone)
        self._interest(zone)
        self._declare(zone)
        self._settle()

    def _keys(self, zone: LiveZone) -> dict[str, str]:
        soon = (datetime.now(UTC) + timedelta(seconds=1)).isoformat()
        keys = {
            "admin": zone.admin,
            "emitter": zone.key("emit:orders"),
            "listener": zone.key("listen:orders"),
            "manager": zone.key("manage:orders"),
            "ending": zone.key("manage:*", expires_at="2099-01-01T00:00:00Z"),
            "nothing": zone.key(),
            "elsewhere": zone.key("manage:*", "listen:*", allowed_addresses=["192.0.2.1"]),
            "other": self.other.admin,
            "revoked": zone.key("emit:*", "manage:*"),
            "expired": zone.key("emit:*", "manage:*", expires_at=soon),
            "token": zone.token(lifetime_s=TOKEN_S),
            "expired token": zone.token(lifetime_s=1),
            "narrow token": zone.token(
                lifetime_s=TOKEN_S, grants=[{"action": "listen", "streams": "orders"}]
            ),
            "forged token": zone.token()[:-6] + "AAAAAA",
            "wrong": "ehk_aaaaaaaaaaaa_" + "A" * 43,
            "garbage": "open sesame",
            "long": "x" * 5_000,
            "": "",
        }
        zone.revoke(keys["revoked"])
        return keys

    def _fill(self, zone: LiveZone) -> None:
        first = zone.emit("orders", {**EVENT, "id": {"sequence": 1_000_000}})
        assert first.status == 200, first
        for _ in range(3):
            assert zone.emit("old", EVENT).status == 200
        zone.hub.sql(
            "UPDATE segments SET tier = 'dropped' WHERE first < 3 AND stream_id ="
            " (SELECT s.id FROM streams s JOIN zones z ON z.id = s.zone_id"
            " WHERE z.name = %s AND s.name = 'old')",
            zone.name,
        )
        page = zone.hub.call("GET", "/v1/streams/old/segments", key=zone.admin).json
        self.segments = [item["uuid"] for item in page["items"]]
        [opened] = zone.hub.call("GET", "/v1/streams/orders/segments", key=zone.admin).json["items"]
        self.open_segment = str(opened["uuid"])

    def _declare(self, zone: LiveZone) -> None:
        """Declare a type whose events have a number, and create a stream of declared types
        alone.
        """
        zone.create_stream("strict", undeclared="refuse")
        schema = {"required": ["n"], "properties": {"n": {"type": "integer"}}}
        path = "/v1/types/shop/measured"
        answer = zone.hub.call("PUT", path, {"schema": schema}, key=zone.admin)
        assert answer.status == 201, answer

    def _interest(self, zone: LiveZone) -> None:
        """Create registrations and endpoints: of the zone's admin, of another client, of another
        zone.
        """
        body = {"streams": ["orders"], "attributes": {"never": True}}
        self.marks: dict[str, str] = {}
        them = zone.key("listen:*", client="them")
        for kind, owner, key in (
            ("", zone, zone.admin),
            ("their", zone, them),
            ("far", self.other, self.other.admin),
        ):
            streams = ["theirs"] if owner is self.other else ["orders"]
            endpoint = owner.endpoint("https://hooks.example/", key=key)["id"]
            [made] = owner.register({**body, "streams": streams, "endpoint": endpoint}, key=key)
            self.marks[f"<{kind}registration>"] = str(made["id"])
            self.marks[f"<{kind}endpoint>"] = str(endpoint)
        bound = zone.endpoint("https://hooks.example/", headers={"X-Team": "orders"})["id"]
        page = zone.hub.call("GET", f"/v1/endpoints/{bound}/secrets", key=zone.admin).json
        self.marks |= {"<bound>": str(bound), "<secret>": str(page["items"][0]["id"])}
        for kind, key, name in (("", zone.admin, "used"), ("their", them, "theirs")):
            made = zone.hub.call("POST", "/v1/registration-groups", {"name": name}, key=key).json
            self.marks[f"<{kind}group>"] = str(made["id"])
            zone.register({**body, "streams": ["orders"], "group": name, "key": "taken"}, key=key)

        self._sessions(zone, them)
        self._timers(zone)
        self._sources(zone)
        self._connector(zone)
        self._patterns(zone)

    def _sessions(self, zone: LiveZone, them: str) -> None:
        """Create sessions of each kind, and session groups: of the admin and of another client."""
        supplies = [{"domain": "shop", "type": "order.placed"}]
        team, theirs = {"name": "team"}, {"name": "theirs"}
        for mark, kind, key, body in (
            ("<sessiongroup>", "session-groups", zone.admin, team),
            ("<theirsessiongroup>", "session-groups", them, theirs),
            ("<session>", "sessions", zone.admin, {"kind": "consumer", "group": "team"}),
            ("<supplier>", "sessions", zone.admin, {"kind": "supplier", "supplies": supplies}),
            ("<adminsession>", "sessions", zone.admin, {"kind": "admin"}),
            ("<suspended>", "sessions", zone.admin,
             {"kind": "supplier", "supplies": supplies, "suspended": True}),
            ("<theirsession>", "sessions", them, {"kind": "consumer"}),
        ):  # fmt: skip
            body = {"name": mark.strip("<>"), **body}
            made = zone.hub.call("POST", f"/v1/{kind}", body, key=key)
            assert made.status == 201, made
            self.marks[mark] = str(made.json["id"])

    def _patterns(self, zone: LiveZone) -> None:
        """Create two pattern groups, and a pattern in the first one."""
        body = {"group": "taken", "name": "taken", "language": "ready", "text": "{A}"}
        for mark, path, new in (
            ("<patterngroup>", "/v1/pattern-groups", {"name": "taken", "streams": ["orders"]}),
            ("<othergroup>", "/v1/pattern-groups", {"name": "other", "streams": ["orders"]}),
            ("<pattern>", "/v1/patterns", body),
        ):
            made = zone.hub.call("POST", path, new, key=zone.admin)
            assert made.status == 201, made
            self.marks[mark] = str(made.json["id"])

    def _sources(self, zone: LiveZone) -> None:
        """Create a source, and one that is disabled, with the tokens of their URLs."""
        for mark, name, enabled in (("source", "taken", True), ("disabledsource", "off", False)):
            body = {"name": name, "stream": "orders", "provider": "github", "enabled": enabled}
            made = zone.hub.call("POST", "/v1/sources", body, key=zone.admin)
            assert made.status == 201, made
            self.marks[f"<{mark}>"] = str(made.json["id"])
            self.marks[f"<{mark}token>"] = made.json["path"].rpartition("/")[2]

    def _connector(self, zone: LiveZone) -> None:
        """Create a connector, which no process runs."""
        url, settings = "postgresql://reader:word@127.0.0.1:1/shop", {"table": "outbox"}
        body = {"name": "taken", "stream": "orders", "kind": "outbox-polling", "url": url}
        made = zone.hub.call(
            "POST", "/v1/connectors", {**body, "settings": settings}, key=zone.admin
        )
        assert made.status == 201, made
        self.marks["<connector>"] = str(made.json["id"])

    def _timers(self, zone: LiveZone) -> None:
        """Create two suspended timers; the second one is past its end."""
        for mark, handle in (("<timer>", "taken"), ("<endedtimer>", "ended")):
            body = {"stream": "orders", "handle": handle, "every_s": 60, "suspended": True}
            made = zone.hub.call("POST", "/v1/timers", body, key=zone.admin)
            assert made.status == 201, made
            self.marks[mark] = str(made.json["id"])
        zone.hub.sql(
            "UPDATE timers SET start = start - interval '1 day', next_at = next_at - interval"
            " '1 day', \"end\" = now() - interval '1 hour' WHERE id = %s",
            self.marks["<endedtimer>"],
        )

    def _settle(self) -> None:
        """Wait until everything that is to expire has expired, and the maintainer has created its
        partition.
        """
        until = time.monotonic() + 60
        while self.hub.sql("SELECT count(*) FROM event_partitions") < [(2,)]:
            assert time.monotonic() < until
            time.sleep(0.05)
        while self.zone.emit("strict", [{**DECLARED, "version": "2"}, EVENT]).json["position"] != {
            "index": 0,
            "field": "version",
        }:
            assert time.monotonic() < until
            time.sleep(0.05)
        while self.hub.call("GET", "/v1/streams", key=self.keys["expired"]).status != 401:
            assert time.monotonic() < until
            time.sleep(0.05)
        while self.zone.emit("orders", [], key=self.keys["expired token"]).status != 401:
            assert time.monotonic() < until
            time.sleep(0.05)

    def fill(self, path: str) -> str:
        """Return a path with its marks replaced."""
        marks = {
            "<key>": self.keys["listener"].split("_")[1],
            "<admin>": self.keys["admin"].split("_")[1],
            "<theirs>": self.keys["other"].split("_")[1],
            "<revoked>": self.keys["revoked"].split("_")[1],
            "<other>": self.other.name,
            "<keytext>": self.keys["admin"],
            "<dropped>": self.segments[0],
            "<held>": self.segments[2],
            "<open>": self.open_segment,
            **self.marks,
        }
        return re.sub("<[a-z]+>", lambda found: marks[found[0]], path)

    def send(self, bad: Bad) -> Answer:
        method = bad.method or bad.route.split()[0]
        path, headers = self.fill(bad.path), dict(bad.headers)
        if bad.key.startswith("operator"):
            headers = {**self.hub.operator(), **headers}
        key = self.keys.get(bad.key, "")
        return self.hub.call(method, path, bad.body, key=key, headers=headers)

    def check(self, bad: Bad) -> None:
        """Check the whole contract of a refusal."""
        answer = self.send(bad)
        problem = answer.refused(bad.status, bad.code)
        assert problem["position"] == bad.at, problem
        assert problem["type"] == f"/docs/errors#{bad.code}"
        assert len(answer.body) < 2_000
        assert (answer.status == 401) == ("www-authenticate" in answer.headers)
        assert answer.status != 405 or "allow" in answer.headers
        assert (answer.status == 426) == (answer.headers.get("upgrade") == "websocket")

    def check_each(self, cases: Iterable[Bad]) -> None:
        """Check several refusals; a failure names all that are not as they should be."""
        wrong: dict[str, str] = {}
        for bad in cases:
            try:
                self.check(bad)
            except AssertionError as error:
                wrong[bad.name] = str(error)
        assert wrong == {}

    def digest(self) -> dict[str, str]:
        """Return a digest of all rows of each table but NOT_DIGESTED and NOT_DIGESTED_COLUMN."""
        found: dict[str, str] = {}
        for (table,) in self.hub.sql(
            "SELECT relname FROM pg_class WHERE relkind IN ('r', 'p') AND NOT relispartition"
            " AND relnamespace = 'public'::regnamespace ORDER BY 1"
        ):
            if table not in NOT_DIGESTED:
                row = f"to_jsonb(t) - '{NOT_DIGESTED_COLUMN}'" if table == "heads" else "t"
                rows = self.hub.sql(f'SELECT ({row})::text FROM "{table}" t ORDER BY 1')
                found[table] = hashlib.sha256(repr(rows).encode()).hexdigest()
        return found


HOT_ROUTES = (
    *HTTP_ROUTES,
    *BULK_ROUTES,
    *INTEREST_ROUTES,
    *LISTEN_ROUTES,
    *MCP_ROUTES,
    *SESSION_ROUTES,
    *PULL_ROUTES,
    *SOURCE_ROUTES,
    *EXPLAIN_ROUTES,
)


def routes() -> frozenset[str]:
    """Return every route as `METHOD /path/{parameter}`: the table of the hot routes, Django's
    routes, and the messages of the websocket. The back office has its own tests.
    """
    found = {f"{route.method} {route.path}" for route in HOT_ROUTES}
    found.update(
        route
        for route in _django_routes(get_resolver().url_patterns, "/")
        if not route.split()[1].startswith(("/admin/", "/static/admin/"))
    )
    found.add("GET /v1/ws")
    ops = (message.__struct_config__.tag for message in get_args(messages.Incoming))
    found.update(f"WS {op}" for op in ops)
    return frozenset(found)


def _django_routes(patterns: Any, prefix: str) -> Iterator[str]:
    for pattern in patterns:
        path = prefix + re.sub(r"<(?:str|path|key|name):(\w+)>", r"{\1}", str(pattern.pattern))
        if not isinstance(pattern, URLPattern):
            yield from _django_routes(pattern.url_patterns, path)
            continue
        view = getattr(pattern.callback, "cls", None)
        actions = getattr(pattern.callback, "actions", None)
        methods = ["get"] if view is None else actions or [m for m in _METHODS if hasattr(view, m)]
        yield from (f"{method.upper()} {path}" for method in methods if method in _METHODS)
