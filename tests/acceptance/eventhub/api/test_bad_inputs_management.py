"""Bad input at the management API: some that every route must refuse, made from the routes
themselves, and what is bad at one route only.
"""

import re
from collections.abc import Iterator
from typing import Any

import pytest

from delivery.listening.route_table import LISTEN_ROUTES
from delivery.mcp.operations import MCP_ROUTES
from delivery.sessions.pull_operations import PULL_ROUTES
from delivery.sessions.route_table import SESSION_ROUTES
from eventhub.base import limits
from eventhub.http.routes import HTTP_ROUTES
from registrations.bulk.operations import BULK_ROUTES
from registrations.explain.operations import EXPLAIN_ROUTES
from registrations.interest.operations import INTEREST_ROUTES
from registrations.sources.operations import SOURCE_ROUTES
from tests.acceptance import bad_connectors, bad_patterns, bad_sources, bad_timers
from tests.acceptance.bad_inputs import EMIT, Bad, World, routes

pytestmark = pytest.mark.usefixtures("untouched")
PARAMETERS = {
    "client": "tester",
    "application": "till",
    "application_group": "shop",
    "public_id": "<key>",
    "operator": "nobody",
    "channel": "disk",
    "stream": "orders",
    "name": "nowhere",
    "sequence": "1",
    "delivery": "1.1.1.1.0",
    "replay": "1",
    "registration": "<registration>",
    "timer": "1",
    "pattern": "<pattern>",
    "pattern_group": "<patterngroup>",
    "handle": "tick",
    "endpoint": "<endpoint>",
    "group": "<group>",
    "session": "<session>",
    "session_group": "<sessiongroup>",
    "secret": "1",
    "source": "<source>",
    "connector": "<connector>",
    "sample": "1",
    "key": "a/b",
    "domain": "shop",
    "type": "order.placed",
    "version": "1",
    "job": "audit",
    "run": "1",
    "path": "report.html",
}
UNKNOWN = {  # what no name can be is not there
    "public_id": "not_found",
    "operator": "not_found",
    "sequence": "unknown_event",
    "delivery": "unknown_delivery",
    "replay": "unknown_replay",
    "registration": "unknown_registration",
    "timer": "unknown_timer",
    "pattern": "unknown_pattern",
    "pattern_group": "unknown_pattern_group",
    "endpoint": "unknown_endpoint",
    "group": "unknown_group",
    "session": "unknown_session",
    "session_group": "unknown_session_group",
    "secret": "unknown_secret",
    "source": "unknown_source",
    "connector": "unknown_connector",
    "sample": "unknown_sample",
    "job": "unknown_job",
    "run": "unknown_run",
}
TEXTS = {"key", "domain", "type", "version", "path"}  # no names: nearly any text may stand there
# nobody is logged in yet
OPEN = {
    *("GET /v1/session", "POST /v1/session", "DELETE /v1/session"),
    "POST /v1/session/setup",
}
TAKES_BODY = ("POST", "PUT", "PATCH")
DELETE_STREAM = "DELETE /v1/streams/{stream}"
PUT_STATE = "PUT /v1/streams/{stream}/state/{key}"  # its body is an event
_ROUTES = (
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
HOT = {f"{route.method} {route.path}" for route in _ROUTES}
MANAGED = sorted(
    route for route in routes() - HOT if " /v1/" in route and route not in (EMIT, "GET /v1/ws")
)


def path_of(route: str) -> str:
    return re.sub(r"\{(\w+)\}", lambda found: PARAMETERS[found[1]], route.split()[1])


def caller(route: str) -> str:
    operators = any(
        part in route
        for part in (
            *("/v1/zones", "PUT /v1/storage", "PUT /v1/limits", "/v1/jobs", "/v1/members"),
            *("/v1/operators", "/v1/session/password"),
        )
    )
    return "operator" if operators else "admin"


def of_every_route() -> Iterator[Bad]:
    """Yield wrong callers, zones, queries, methods and, where a route takes one, bodies."""
    for route in MANAGED:
        path = path_of(route)
        yield Bad("wrong method", route, path, 405, "method_not_allowed", method="TRACE")
        yield Bad("query", route, f"{path}?a%00=1", 400, "unknown_field", {"field": "a\0"})
        if route not in OPEN:
            yield from _of_every_closed_route(route, path)
        if route.startswith(TAKES_BODY) and route != PUT_STATE:
            yield from _of_every_body(route, path)
        for name in sorted(set(re.findall(r"\{(\w+)\}", route)) - TEXTS):
            yield from _of_every_parameter(route, name)  # fmt: skip


def _of_every_closed_route(route: str, path: str) -> Iterator[Bad]:
    yield Bad("no key", route, path, 401, "unauthenticated", key="")
    for name in ("wrong", "garbage", "long", "revoked", "expired", "token", "expired token"):
        yield Bad(f"{name} key", route, path, 401, "invalid_credentials", key=name)
    if route not in ("GET /v1/zones", "POST /v1/zones"):
        yield Bad("another zone", route, f"{path}?zone=<other>", 404, "not_found",
                  {"field": "zone"})  # fmt: skip


def _of_every_body(route: str, path: str) -> Iterator[Bad]:
    def body(name: str, code: str, text: bytes, status: int = 400, **more: Any) -> Bad:
        at = more.pop("at", {})
        return Bad(name, route, path, status, code, at, text, key=caller(route), **more)

    yield body("truncated", "malformed_json", b'{"name": "x"')
    yield body("bad UTF-8", "invalid_utf8", b'{"name": "\xff"}')
    yield body("half a surrogate", "malformed_json", b'{"name": "\\ud800"}')
    yield body("deep", "too_deep", b'{"a": ' + b"[" * 1_000, at={"field": "a"})
    yield body("65 bits", "number_out_of_range", b'{"mask": 36893488147419103232}')
    yield body("NaN", "number_out_of_range", b'{"mask": NaN}')
    yield body("an array", "invalid_field", b"[]")
    yield body("unknown field", "unknown_field", b'{"admin": true}', at={"field": "admin"})
    yield body("field twice", "invalid_field", b'{"a": 1, "a": 2}', at={"field": "a"})
    headers = {"Content-Encoding": "gzip"}
    yield body("gzip", "unsupported_media_type", b"{}", 415, headers=headers)
    large = b'"' + b"x" * limits.MANAGE_BODY_BYTES_MAX + b'"'
    yield body("too large", "body_too_large", large, 413)
    for media in ("text/plain", "application/x-www-form-urlencoded", "multipart/form-data"):
        headers = {"Content-Type": media}
        yield body(media, "unsupported_media_type", b"name=x", 415, headers=headers)


def _of_every_parameter(route: str, name: str) -> Iterator[Bad]:
    for value in ("a%00b", "%ff", "a%20b", "-a", "a" * 201):
        kind = "field_too_long" if len(value) > 200 else "invalid_name"
        status, code = (400, kind)
        if name in UNKNOWN:
            status, code = (404, UNKNOWN[name])
        path = path_of(route.replace(f"{{{name}}}", value))
        at = {"field": name}
        yield Bad(f"{name} {value[:9]}", route, path, status, code, at, key=caller(route))


KEYS = "/v1/clients/tester/keys"
STREAM = "/v1/streams/orders"
GRANT = {"action": "emit", "streams": "orders"}


def bad(name: str, route: str, path: str, outcome: str, at: str = "", **more: Any) -> Bad:
    status, code = outcome.split()
    return Bad(name, route, path, int(status), code, {"field": at} if at else {}, **more)


def grants(name: str, code: str, at: str, items: Any, **more: Any) -> Bad:
    route = "POST /v1/clients/{client}/keys"
    return bad(name, route, KEYS, code, at, body={"grants": items}, **more)


OF_ONE_ROUTE = (
    bad("not an operator", "GET /v1/zones", "/v1/zones", "403 forbidden"),
    bad("not an operator", "POST /v1/zones", "/v1/zones", "403 forbidden", body={"name": "x"}),
    bad("taken", "POST /v1/zones", "/v1/zones", "409 conflict", "name", key="operator",
        body={"name": "default"}),
    bad("no CSRF token", "POST /v1/zones", "/v1/zones", "403 csrf_failed", key="operator",
        headers={"X-CSRFToken": "x" * 32}, body={"name": "x"}),
    bad("unknown zone", "GET /v1/clients", "/v1/clients?zone=nowhere", "404 not_found", "zone",
        key="operator"),
    bad("bad zone", "GET /v1/clients", "/v1/clients?zone=%00", "400 invalid_name", "zone",
        key="operator"),
    bad("no manager", "GET /v1/clients", "/v1/clients", "403 forbidden", key="listener"),
    bad("manager of one stream", "GET /v1/clients", "/v1/clients", "403 forbidden", key="manager"),
    bad("no number", "GET /v1/clients", "/v1/clients?limit=ten", "400 invalid_field", "limit"),
    bad("too many", "GET /v1/clients", "/v1/clients?limit=1001", "400 invalid_field", "limit"),
    bad("twice", "GET /v1/clients", "/v1/clients?limit=1&limit=2", "400 bad_request", "limit"),
    bad("bad page", "GET /v1/clients", "/v1/clients?after=%00", "400 invalid_name", "after"),
    bad("no name", "POST /v1/clients", "/v1/clients", "400 missing_field", "name", body={}),
    bad("taken", "POST /v1/clients", "/v1/clients", "409 conflict", "name",
        body={"name": "tester"}),
    bad("no text", "POST /v1/clients", "/v1/clients", "400 invalid_field", "name",
        body={"name": 1}),
    bad("no name", "POST /v1/clients", "/v1/clients", "400 invalid_name", "name",
        body={"name": "a b"}),
    bad("long", "POST /v1/clients", "/v1/clients", "400 field_too_long", "name",
        body={"name": "a" * 201}),
    bad("nobody", "GET /v1/clients/{client}", "/v1/clients/nobody", "404 not_found", "client"),
    bad("nobody", "GET /v1/clients/{client}/keys", "/v1/clients/nobody/keys", "404 not_found",
        "client"),
    grants("no list", "400 invalid_field", "grants", {"action": "emit"}),
    grants("no object", "400 invalid_field", "grants.1", [GRANT, "emit"]),
    grants("no streams", "400 missing_field", "grants.0.streams", [{"action": "emit"}]),
    grants("unknown", "400 unknown_field", "grants.0.zone", [{**GRANT, "zone": "other"}]),
    grants("bad action", "400 invalid_field", "grants.0.action", [{**GRANT, "action": "own"}]),
    grants("bad pattern", "400 invalid_field", "grants.0.streams", [{**GRANT, "streams": "a b"}]),
    grants("many", "400 field_too_long", "grants", [GRANT] * 101),
    grants("no more than one's own", "403 wider_grant", "grants.0", [GRANT], key="ending"),
    bad("longer than one's own", "POST /v1/clients/{client}/keys", KEYS, "403 wider_grant",
        "expires_at", key="ending", body={"grants": [], "expires_at": "2100-01-01T00:00:00Z"}),
    bad("past", "POST /v1/clients/{client}/keys", KEYS, "400 invalid_field", "expires_at",
        body={"grants": [], "expires_at": "2020-01-01T00:00:00Z"}),
    bad("no offset", "POST /v1/clients/{client}/keys", KEYS, "400 invalid_field", "expires_at",
        body={"grants": [], "expires_at": "2100-01-01T00:00:00"}),
    bad("another zone's", "GET /v1/keys/{public_id}", "/v1/keys/<theirs>", "404 not_found",
        "public_id"),
    bad("another zone's", "DELETE /v1/keys/{public_id}", "/v1/keys/<theirs>", "404 not_found",
        "public_id"),
    bad("revoked", "PATCH /v1/keys/{public_id}", "/v1/keys/<revoked>", "404 not_found",
        "public_id", body={"label": "x"}),
    bad("gives itself more", "PATCH /v1/keys/{public_id}", "/v1/keys/<admin>", "403 wider_grant",
        "grants.0", key="ending", body={"grants": [{"action": "emit", "streams": "*"}]}),
    bad("of one stream", "PATCH /v1/keys/{public_id}", "/v1/keys/<admin>", "403 forbidden",
        key="manager", body={"label": "x"}),
    bad("long life", "POST /v1/connection-tokens", "/v1/connection-tokens", "400 invalid_field",
        "lifetime_s", body={"lifetime_s": 10**9}),
    bad("no whole number", "POST /v1/connection-tokens", "/v1/connection-tokens",
        "400 invalid_field", "lifetime_s", body={"lifetime_s": 1.5}),
    bad("wider", "POST /v1/connection-tokens", "/v1/connection-tokens", "403 wider_grant",
        "grants.0", key="listener", body={"grants": [GRANT]}),
    bad("reader", "GET /v1/channels", "/v1/channels?limit=1", "400 unknown_field", "limit"),
    *(bad(f"mask {mask}", "PUT /v1/channels/{channel}", "/v1/channels/new", "400 not_power_of_two",
          "mask", body={"mask": mask}) for mask in (0, 3, -1, str(1 << 63), str((1 << 64) - 1))),
    *(bad(f"mask {mask}", "PUT /v1/channels/{channel}", "/v1/channels/new", "400 invalid_mask",
          "mask", body={"mask": mask}) for mask in (1.0, True, "0x1", "9" * 40)),
    bad("no mask", "PUT /v1/channels/{channel}", "/v1/channels/new", "400 missing_field", "mask",
        body={}),
    bad("moved", "PUT /v1/channels/{channel}", "/v1/channels/disk", "409 channel_conflict", "mask",
        body={"mask": 2}),
    bad("taken", "PUT /v1/channels/{channel}", "/v1/channels/new", "409 channel_conflict", "mask",
        body={"mask": 1}),
    bad("default", "PUT /v1/channels/{channel}", "/v1/channels/default", "409 channel_conflict",
        "name", body={"mask": 2}),
    bad("no login", "GET /v1/session", "/v1/session", "401 unauthenticated", key=""),
    bad("wrong password", "POST /v1/session", "/v1/session", "401 invalid_login", key="",
        body={"username": "operator", "password": "x"}),
    bad("NUL", "POST /v1/session", "/v1/session", "400 invalid_field", "username", key="",
        body={"username": "\0", "password": "x"}),
    bad("no password", "POST /v1/session", "/v1/session", "400 missing_field", "password", key="",
        body={"username": "operator"}),
    bad("bad page", "GET /v1/streams", "/v1/streams?limit=0", "400 invalid_field", "limit"),
    bad("unseen", "GET /v1/streams/{stream}", "/v1/streams/secret", "403 forbidden", key="emitter"),
    bad("unknown", "GET /v1/streams/{stream}", "/v1/streams/new", "404 unknown_stream"),
    bad("another zone's", "GET /v1/streams/{stream}", "/v1/streams/theirs", "404 unknown_stream"),
    bad("no manager", "PUT /v1/streams/{stream}", STREAM, "403 forbidden", key="emitter", body={}),
    bad("the hub's own", "PUT /v1/streams/{stream}", "/v1/streams/system", "403 forbidden",
        body={}),
    *(bad(f"policy {value!r}", "PUT /v1/streams/{stream}", STREAM, "400 invalid_field",
          "segment_events_max", body={"segment_events_max": value})
      for value in (0, -1, 1 << 62, "10", 1.5, None, [])),
    *(bad(f"policy {name}", "PUT /v1/streams/{stream}", STREAM, outcome, name,
          body={name: value})
      for name, value, outcome in (
          ("durability", "async", "409 durability_fixed"), ("keyed", True, "409 keyed_fixed"),
          ("restate", True, "400 invalid_field"), ("retain_events", 0, "400 invalid_field"),
          ("hold", "", "400 invalid_field"), ("on_lag", "wait", "400 invalid_field"))),
    *(bad(f"condition {text}", "PUT /v1/streams/{stream}", STREAM, "400 invalid_field", "If-Match",
          headers={"If-Match": text}, body={}) for text in ("*", "x", "1, 2", "9" * 19)),
    bad("changed", "PUT /v1/streams/{stream}", STREAM, "412 changed", headers={"If-Match": "0"},
        body={"hold": "x"}),
    bad("action", "PUT /v1/streams/{stream}", STREAM, "400 invalid_field", "EventHub-Action",
        headers={"EventHub-Action": "x" * 201}, body={}),
    *(bad(f"grace {grace}", DELETE_STREAM, f"{STREAM}?grace_s={grace}", "400 invalid_field",
          "grace_s") for grace in ("-1", "1.5", "x", "", "7776001", "9" * 30, "%00")),
    bad("grace twice", DELETE_STREAM, f"{STREAM}?grace_s=1&grace_s=1", "400 bad_request",
        "grace_s"),
    bad("changed", DELETE_STREAM, STREAM, "412 changed", headers={"If-Match": "1"}),
    *(bad(name, f"{method} /v1/streams/{{stream}}{after}", f"/v1/streams/{stream}{after}", outcome,
          key=key)
      for method, after in (("DELETE", ""), ("POST", "/restore"))
      for name, stream, outcome, key in (
          ("another zone's", "theirs", "404 unknown_stream", "admin"),
          ("the hub's own", "system", "403 forbidden", "admin"),
          ("no manager", "orders", "403 forbidden", "emitter"))),
    bad("no deletion", "POST /v1/streams/{stream}/restore", f"{STREAM}/restore",
        "409 not_deleting"),
    *(bad(name, f"{method} /v1/zones/{{name}}{after}", f"/v1/zones/{zone}{after}", outcome, at,
          key="operator")
      for method, after in (("DELETE", ""), ("POST", "/restore"))
      for name, zone, outcome, at in (
          ("default", "default", "403 forbidden", None),
          ("no zone", "nowhere", "404 not_found", "zone"))),
    bad("no zone", "GET /v1/zones/{name}", "/v1/zones/nowhere", "404 not_found", "name",
        key="operator"),
    bad("no deletion", "POST /v1/channels/{channel}/restore", "/v1/channels/disk/restore",
        "409 not_deleting"),
    bad("no deletion", "POST /v1/types/{domain}/{type}/restore", "/v1/types/shop/measured/restore",
        "409 not_deleting", "type"),
    bad("grace", "DELETE /v1/channels/{channel}", "/v1/channels/disk?grace_s=x",
        "400 invalid_field", "grace_s"),
    bad("grace", "DELETE /v1/types/{domain}/{type}", "/v1/types/shop/measured?grace_s=x",
        "400 invalid_field", "grace_s"),
    *(bad("default", f"{method} /v1/channels/{{channel}}{after}", f"/v1/channels/default{after}",
          "403 forbidden") for method, after in (("DELETE", ""), ("POST", "/restore"))),
    *(bad("no type", f"{method} /v1/types/{{domain}}/{{type}}{after}",
          f"/v1/types/shop/none{after}", "404 unknown_type", "type")
      for method, after in (("DELETE", ""), ("POST", "/restore"))),
    bad("not keyed", "GET /v1/streams/{stream}/state", f"{STREAM}/state", "409 not_keyed"),
    *(bad("not keyed", f"{method} /v1/streams/{{stream}}/state/{{key}}", f"{STREAM}/state/a",
          "409 not_keyed", body=body)
      for method, body in (("GET", None), ("PUT", {"domain": "d", "type": "t"}), ("DELETE", None))),
    *(bad("no such key", f"{method} /v1/streams/{{stream}}/state/{{key}}",
          "/v1/streams/kept/state/none", "404 unknown_key", "key")
      for method in ("GET", "DELETE")),
    bad("no event", PUT_STATE, f"{STREAM}/state/a", "400 missing_field", "domain", body={}),
    bad("no emitter", PUT_STATE, f"{STREAM}/state/a", "403 forbidden", key="listener",
        body={"domain": "d", "type": "t"}),
    bad("bad page", "GET /v1/streams/{stream}/state", f"{STREAM}/state?limit=0",
        "400 invalid_field", "limit"),
    bad("no operator", "PUT /v1/limits", "/v1/limits", "403 forbidden", body={}),
    bad("rate 0", "PUT /v1/limits", "/v1/limits", "400 invalid_field", "events_per_s",
        body={"events_per_s": 0}, key="operator"),
    bad("no such client", "PUT /v1/limits", "/v1/limits?client=nobody", "404 not_found", "client",
        body={}, key="operator"),
    bad("another client", "GET /v1/limits", "/v1/limits?client=them", "403 forbidden",
        key="listener"),
    bad("client no name", "GET /v1/limits", "/v1/limits?client=a%20b", "400 invalid_name",
        "client"),
    bad("no operator", "PUT /v1/storage", "/v1/storage", "403 forbidden",
        body={"quota_bytes": 1 << 40}),
    bad("no manager", "GET /v1/storage", "/v1/storage", "403 forbidden", key="manager"),
    bad("small", "PUT /v1/storage", "/v1/storage", "400 invalid_field", "quota_bytes",
        key="operator", body={"quota_bytes": 1}),
    bad("of nothing", "GET /v1/deliveries", "/v1/deliveries", "400 missing_field", "endpoint"),
    bad("of half an event", "GET /v1/deliveries", "/v1/deliveries?sequence=1",
        "400 missing_field", "stream"),
    bad("among one event's", "GET /v1/deliveries",
        "/v1/deliveries?stream=orders&sequence=1&status=500", "400 invalid_field", "status"),
    bad("no offset", "GET /v1/deliveries", "/v1/deliveries?endpoint=1&since=2026-11-21",
        "400 invalid_field", "since"),
    bad("no state", "GET /v1/dead-letters", "/v1/dead-letters?state=pending",
        "400 invalid_field", "state"),
    bad("bad page", "GET /v1/dead-letters", "/v1/dead-letters?after=1.2", "400 invalid_field",
        "after"),
    *(bad(name, "POST /v1/replays", "/v1/replays", outcome, at,
          body={"endpoint": 1, "streams": ["orders"], **body})
      for name, outcome, at, body in (
          ("no rate", "400 invalid_field", "rate", {"rate": 0}),
          ("no limit", "400 invalid_field", "limit", {"limit": 0}),
          ("no start", "400 invalid_field", "from", {"from": "now"}),
          ("no end", "400 invalid_field", "to", {"to": "oldest"}),
          ("no position", "400 invalid_cursor", "from", {"from": "x"}),
          ("no filter", "400 filter_syntax", "filter", {"language": "predicate", "filter": "(> n"}),
          ("both", "400 invalid_field", "registration", {"type": "a", "registration": 1}),
          ("half a version", "400 missing_field", "registration", {"version": 1}),
          ("no endpoint", "404 unknown_endpoint", "endpoint", {"endpoint": 999999}),
      )),
    bad("no states", "POST /v1/endpoints/{endpoint}/recover", "/v1/endpoints/<endpoint>/recover",
        "400 invalid_field", "states.0", body={"states": ["delivered"]}),
    bad("no status", "POST /v1/endpoints/{endpoint}/recover", "/v1/endpoints/<endpoint>/recover",
        "400 invalid_field", "status", body={"status": 7}),
    bad("no number", "GET /v1/deliveries", "/v1/deliveries?endpoint=x", "400 invalid_field",
        "endpoint"),
    bad("no state", "GET /v1/deliveries", "/v1/deliveries?endpoint=1&state=lost",
        "400 invalid_field", "state"),
    bad("bad page", "GET /v1/deliveries", "/v1/deliveries?endpoint=1&after=1.2",
        "400 invalid_field", "after"),
    bad("no such", "GET /v1/deliveries", "/v1/deliveries?endpoint=999999", "404 unknown_endpoint",
        "endpoint"),
    bad("no such", "GET /v1/deliveries", "/v1/deliveries?stream=nowhere&sequence=1",
        "404 unknown_stream"),
    bad("no such", "GET /v1/deliveries/{delivery}", "/v1/deliveries/999999.1.1.1.0",
        "404 unknown_delivery", "delivery"),
    *(bad(f"id {text[:9]}", "GET /v1/deliveries/{delivery}", f"/v1/deliveries/{text}",
          "404 unknown_delivery", "delivery")
      for text in ("1", "1.1.1.1", "1.1.1.1.1.1", "1.-1.1.1.0", f"{'9' * 19}.1.1.1.0")),
    bad("bad page", "GET /v1/streams/{stream}/segments", f"{STREAM}/segments?after=x",
        "400 invalid_field", "after"),
    bad("unseen", "GET /v1/streams/{stream}/segments/current",
        "/v1/streams/secret/segments/current", "403 forbidden", key="emitter"),
    *(bad(f"sequence {n}", "GET /v1/streams/{stream}/events/{sequence}", f"{STREAM}/events/{n}",
          "404 unknown_event") for n in (0, 9, 10**17)),
    *(bad(f"sequence {n}", "GET /v1/streams/{stream}/events/{sequence}", f"{STREAM}/events/{n}",
          "404 unknown_event", "sequence") for n in ("-1", "1.0", "9" * 30, "%D9%A1")),
    bad("dropped", "GET /v1/streams/{stream}/events/{sequence}", "/v1/streams/old/events/1",
        "410 gap"),
    bad("emitter", "GET /v1/streams/{stream}/events/{sequence}", f"{STREAM}/events/1",
        "403 forbidden", key="emitter"),
    bad("changes an event", "GET /v1/streams/{stream}/events/{sequence}", f"{STREAM}/events/1",
        "405 method_not_allowed", method="PUT", body={}),
    bad("removes an event", "GET /v1/streams/{stream}/events/{sequence}", f"{STREAM}/events/1",
        "405 method_not_allowed", method="DELETE"),
    bad("patches a stream", "GET /v1/streams/{stream}", STREAM, "405 method_not_allowed",
        method="PATCH"),
)  # fmt: skip
_OF_APPLICATIONS = (
    Bad("no such application", "GET /v1/applications/{application}", "/v1/applications/nobody",
        404, "unknown_application", {"field": "application"}),
    Bad("no such group", "GET /v1/application-groups/{application_group}",
        "/v1/application-groups/nobody", 404, "unknown_application_group",
        {"field": "application_group"}),
)  # fmt: skip
CASES = (
    *of_every_route(),
    *OF_ONE_ROUTE,
    *_OF_APPLICATIONS,
    *bad_timers.bad_requests(),
    *bad_patterns.bad_requests(),
    *bad_sources.bad_requests(),
    *bad_connectors.bad_requests(),
)


TESTED = sorted({*MANAGED, *(case.route for case in bad_sources.bad_requests())})
OF_ROUTE = {route: [case for case in CASES if case.route == route] for route in TESTED}


@pytest.mark.parametrize("route", TESTED)
def test_bad_management_requests_are_refused_with_their_place(world: World, route: str) -> None:
    """One test for all cases of a route, of which thousands are made from the routes."""
    world.check_each(OF_ROUTE[route])


def test_every_case_is_of_a_route_that_is_tested() -> None:
    assert sum(map(len, OF_ROUTE.values())) == len(CASES)
