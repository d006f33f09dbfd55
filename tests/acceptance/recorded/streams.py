"""Calls about streams, their segments, events and states, types, storage and the hub's start."""

from typing import Any

from tests.acceptance.recorded.access import ACTION, LONG, NAMES
from tests.acceptance.recorded.call import NEW, Call, gets, if_match, sends, sql

EVENT: dict[str, Any] = {"domain": "shop", "type": "order.placed", "attributes": {"n": 1}}
FULL = {
    **EVENT,
    "attributes": {"country": "NO", "total": 12.5, "lines": [{"sku": "a"}], "ok": True, "x": None},
    "channels": ["disk"],
    "id": {"sequence": 7, "incarnation": 2, "timestamp": 3},
    "name": "order 17",
    "version": "1",
    "body": {"note": "caf\u00e9 \u2603"},
    "content_type": "application/json",
    "node": "n1",
    "application": ["till"],
    "environment": {"stage": "test"},
    "priority": 5,
    "expires_at": "2097-01-01T00:00:00Z",
    "time": "2001-02-03T04:05:06.789Z",
    "bundle": "b",
    "bundle_number": 1,
    "depends": ["a"],
    "correlation": "c",
    "cause": "d",
    "traceparent": "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
    "destinations": ["tester", "peer"],
    "security_level": "high",
    "summary": "one order",
    "time_constraint_ms": 100,
    "merge_scheme": "m",
    "order": "none",
}
POLICY: dict[str, Any] = {
    "durability": "async",
    "segment_events_max": 1_000,
    "segment_bytes_max": 1_000_000,
    "segment_age_s_max": 3_600,
    "keyed": True,
    "restate": True,
    "retain_events": 100_000,
    "retain_bytes": 1_000_000_000,
    "retain_age_s": 8_640_000,
    "on_lag": "drop",
    "hold": "case 17",
    "archive": True,
    "undeclared": "accept",
    "matching": "counting",
    "quench": False,
    "filterable_data": True,
}
CHANGES: dict[str, Any] = {
    **POLICY,
    "segment_events_max": 2_000,
    "segment_age_s_max": None,
    "restate": False,
    "retain_events": None,
    "retain_bytes": None,
    "retain_age_s": None,
    "on_lag": "keep",
    "hold": None,
    "archive": False,
    "matching": "auto",
    "undeclared": "refuse",
}
_STREAM_ID = (
    "(SELECT s.id FROM streams s JOIN zones z ON z.id = s.zone_id WHERE z.name = '<zone>'"
    " AND s.name = '{}')"
)


def stream_id(name: str) -> str:
    """Return an expression of SQL."""
    return _STREAM_ID.format(name)


STREAMS = [
    Call("admin", "PUT /v1/streams/orders", {}, keep={"<orders>": "changed"}),
    Call("admin", "PUT /v1/streams/secret", None, NEW),
    Call("admin", "PUT /v1/streams/old", {"segment_events_max": 1}),
    Call("admin", "PUT /v1/streams/full", POLICY, ACTION, {"<full>": "ETag"}),
    Call("operator", "PUT /v1/streams/kept?zone=<zone>", {"keyed": True}),
    Call("admin", "PUT /v1/streams/fast", {"durability": "transient", "retain_events": 100}),
    Call("admin", "PUT /v1/streams/slow", {"durability": "transient", "archive": True}),
    Call("admin", "PUT /v1/streams/strict", {"undeclared": "refuse"}),
    Call("admin", "PUT /v1/streams/indexed", {"matching": "index"}),
    Call("stranger", "PUT /v1/streams/theirs", {}),
    Call("admin", "PUT /v1/streams/full", POLICY),
    Call("admin", "PUT /v1/streams/full", {"quench": True}),
    Call("admin", "PUT /v1/streams/orders", {"quench": True}),
    Call("admin", "PUT /v1/streams/full", {}, NEW),
    *(Call("admin", "PUT /v1/streams/full", {name: value}) for name, value in CHANGES.items()),
    Call("admin", "PUT /v1/streams/full", {"durability": "sync"}),
    Call("admin", "PUT /v1/streams/full", {"keyed": False}),
    Call("admin", "PUT /v1/streams/fast", {"durability": "sync"}),
    Call("admin", "PUT /v1/streams/fast", {"matching": "scan", "quench": True}),
    Call("admin", "PUT /v1/streams/fast", {"hold": "x"}),
    Call("admin", "PUT /v1/streams/orders", {"restate": True}),
    Call("admin", "PUT /v1/streams/orders", {"hold": "x"}, if_match("0")),
    Call("admin", "PUT /v1/streams/orders", {"hold": "caf\u00e9"}, if_match('"<orders>"')),
    Call("admin", "PUT /v1/streams/orders", {"hold": None}, if_match('"<orders>"')),
    Call("admin", "PUT /v1/streams/orders", {"hold": None}, ACTION),
    Call("admin", "PUT /v1/streams/new", {}, if_match("1")),
    *(
        Call("admin", "PUT /v1/streams/orders", {}, {name: text})
        for name in ("If-Match", "If-None-Match")
        for text in ("x", "1, 2", '"1', "9" * 19, "")
    ),
    Call("admin", "PUT /v1/streams/system", {}),
    Call("operator", "PUT /v1/streams/system", {"retain_age_s": 100}),
    *(Call("admin", f"PUT /v1/streams/{name}", {}) for name in ("a%20b", "%C3%A9", LONG)),
    Call("manager", "PUT /v1/streams/orders", {}),
    Call("manager", "PUT /v1/streams/secret", {}),
    *(
        Call(who, f"GET /v1/streams/{name}")
        for who in ("admin", "emitter", "stranger")
        for name in ("orders", "secret", "fast", "system", "nowhere", "theirs")
    ),
    *gets("admin", "/v1/streams/full", "/v1/streams/a%20b", f"/v1/streams/{LONG}"),
    *gets(
        "admin",
        "/v1/streams",
        "/v1/streams?limit=1",
        "/v1/streams?limit=2&after=full",
        "/v1/streams?limit=2&after=strict",
        "/v1/streams?after=zzz",
        "/v1/streams?limit=0",
        "/v1/streams?after=a%20b",
        "/v1/streams?name=x",
    ),
    *gets("emitter", "/v1/streams"),
    *gets("powerless", "/v1/streams"),
    *gets("operator", "/v1/streams", "/v1/streams?zone=<zone>"),
]
EVENTS = [
    Call("admin", "POST /v1/streams/orders/events", [EVENT, FULL]),
    Call(
        "admin",
        "POST /v1/streams/orders/events",
        {**EVENT, "body_base64": "AAE=", "content_type": "a/b"},
    ),
    Call("admin", "POST /v1/streams/fast/events", [EVENT] * 2),
    *sends("admin", "POST /v1/streams/old/events", *[EVENT] * 4),
    sql(
        "UPDATE segments SET tier = 'dropped', removed_at = '2001-02-03T04:05:06Z',"
        f" removal_reason = 'age' WHERE first = 1 AND stream_id = {stream_id('old')}"
    ),
    sql(
        "UPDATE segments SET archive_path = 'zone/old/2.parquet' WHERE first = 2 AND stream_id = "
        + stream_id("old")
    ),
    *(
        Call("admin", f"GET /v1/streams/orders/events/{sequence}")
        for sequence in ("1", "2", "3", "0", "4", "-1", "1.0", "9" * 19, "x", "01")
    ),
    *(
        Call("admin", "GET /v1/streams/orders/events/2", headers={"Accept": accept})
        for accept in (
            "application/json",
            "application/cloudevents+json",
            "application/xml",
            "text/xml",
            "text/x-oif",
            "image/png",
            "*/*",
        )
    ),
    Call("admin", "GET /v1/streams/orders/events/1", headers={"Accept": "application/xml"}),
    *gets("listener", "/v1/streams/orders/events/1", "/v1/streams/orders/events/2"),
    *gets("emitter", "/v1/streams/orders/events/1"),
    *gets("peer", "/v1/streams/orders/events/2"),
    *gets("stranger", "/v1/streams/orders/events/1"),
    *gets("operator", "/v1/streams/orders/events/2?zone=<zone>"),
    *gets(
        "admin",
        "/v1/streams/old/events/1",
        "/v1/streams/old/events/2",
        "/v1/streams/fast/events/1",
        "/v1/streams/fast/events/9",
        "/v1/streams/nowhere/events/1",
        "/v1/streams/system/events/19",
    ),
    Call("admin", "PUT /v1/streams/orders/events/1", {}),
    Call("admin", "PUT /v1/streams/orders/events", {}),
    Call("admin", "DELETE /v1/streams/orders/events"),
    *gets(
        "admin",
        "/v1/streams/old/segments",
        "/v1/streams/old/segments?limit=1",
        "/v1/streams/fast/segments",
        "/v1/streams/orders/segments",
        "/v1/streams/kept/segments",
        "/v1/streams/nowhere/segments",
        "/v1/streams/old/segments?limit=0",
        "/v1/streams/old/segments?after=x",
        "/v1/streams/old/segments?after=1",
        "/v1/streams/old/segments?after=9.9",
        "/v1/streams/orders/segments/current",
        "/v1/streams/fast/segments/current",
        "/v1/streams/nowhere/segments/current",
    ),
    Call(
        "admin",
        "GET /v1/streams/old/segments?limit=2",
        keep={"<next>": "next", "<segment>": "items.1.uuid"},
    ),
    Call("admin", "GET /v1/streams/old/segments?limit=2&after=<next>", keep={"<next>": "next"}),
    Call("admin", "GET /v1/streams/old/segments?limit=2&after=<next>"),
    *gets("listener", "/v1/streams/orders/segments", "/v1/streams/old/segments"),
    *gets("operator", "/v1/streams/old/segments?zone=<zone>"),
    # its events have process ids, which take up to three bytes
    Call("operator", "GET /v1/streams/system/segments", measured=("bytes",)),
    *gets("emitter", "/v1/streams/secret/segments/current", "/v1/streams/old"),
]
_KEY = "/v1/streams/kept/state"
STATES = [
    Call("admin", f"GET {_KEY}"),
    Call("admin", f"PUT {_KEY}/a", EVENT, keep={"<state>": "ETag"}),
    Call("admin", f"PUT {_KEY}/a/b", {**EVENT, "key": "a/b"}, {**NEW, **ACTION}),
    Call("operator", f"PUT {_KEY}/%C3%A9%0A%20x?zone=<zone>", EVENT),
    Call("emitter", "PUT /v1/streams/orders/state/a", EVENT),
    Call("peer", f"PUT {_KEY}/peer", {**EVENT, "attributes": {}}),
    Call("admin", f"PUT {_KEY}/a", EVENT),
    Call("admin", f"PUT {_KEY}/a", EVENT, NEW),
    Call("admin", f"PUT {_KEY}/a", EVENT, if_match("<state>")),
    Call("admin", f"PUT {_KEY}/none", EVENT, if_match("1")),
    Call("admin", f"PUT {_KEY}/a", EVENT, if_match("*")),
    Call("admin", f"PUT {_KEY}/a", EVENT, {"If-None-Match": '"1"'}),
    Call("admin", f"PUT {_KEY}/a", {**EVENT, "key": "b"}),
    Call("admin", f"PUT {_KEY}/a", [EVENT, EVENT]),
    Call("admin", f"PUT {_KEY}/a", [EVENT]),
    Call("admin", f"PUT {_KEY}/a", {**EVENT, "tombstone": True}),
    *sends("admin", f"PUT {_KEY}/a", {}, [], b"{", b'"x"', b"", {**EVENT, "colour": 1}),
    *sends("admin", f"PUT {_KEY}/a", {**EVENT, "channels": ["none"]}, {**EVENT, "mask": 0}),
    Call("admin", f"PUT {_KEY}/a", EVENT, {"Content-Type": "text/plain"}),
    Call("admin", f"PUT {_KEY}/{'k' * 1_025}", EVENT),
    Call("admin", f"PUT {_KEY}/a%00b", EVENT),
    Call("listener", f"PUT {_KEY}/a", EVENT),
    Call("admin", "PUT /v1/streams/system/state/a", EVENT),
    *gets(
        "admin",
        f"{_KEY}/a",
        f"{_KEY}/a/b",
        f"{_KEY}/%C3%A9%0A%20x",
        f"{_KEY}/none",
        "/v1/streams/orders/state",
        "/v1/streams/orders/state/a",
        "/v1/streams/nowhere/state",
        "/v1/streams/nowhere/state/a",
        f"{_KEY}?limit=0",
        f"{_KEY}?after=x",
        f"{_KEY}?after=%00",
        _KEY,
    ),
    Call("admin", f"GET {_KEY}?limit=1", keep={"<next>": "next"}),
    Call("admin", f"GET {_KEY}?limit=2&after=<next>", keep={"<next>": "next"}),
    Call("admin", f"GET {_KEY}?limit=2&after=<next>"),
    *gets("peer", _KEY, f"{_KEY}/a"),
    *gets("emitter", _KEY, f"{_KEY}/a"),
    *gets("operator", f"{_KEY}?zone=<zone>", f"{_KEY}/a?zone=<zone>"),
    Call("admin", f"DELETE {_KEY}/a", headers=if_match("1")),
    Call("admin", f"DELETE {_KEY}/a", headers=if_match("x")),
    Call("listener", f"DELETE {_KEY}/a"),
    Call("admin", f"DELETE {_KEY}/a/b", headers=ACTION),
    Call("admin", f"DELETE {_KEY}/a/b"),
    Call("admin", f"DELETE {_KEY}/a/b", headers=if_match("1")),
    Call("admin", "DELETE /v1/streams/orders/state/a"),
    Call("admin", f"GET {_KEY}/a/b"),
]
_SCHEMA = {"required": ["n"], "properties": {"n": {"type": "integer", "readOnly": True}}}
_WIDER = {"properties": {"n": {"type": "integer"}, "more": {"type": "string"}}}
TYPES = [
    Call("admin", "PUT /v1/types/shop/measured", {"schema": _SCHEMA}, keep={"<type>": "ETag"}),
    Call("admin", "PUT /v1/types/shop/measured", {"schema": _SCHEMA}),
    Call("admin", "PUT /v1/types/shop/measured", {"schema": _WIDER}, if_match("1")),
    Call("admin", "PUT /v1/types/shop/measured", {"schema": _WIDER}, if_match("x")),
    Call("admin", "PUT /v1/types/shop/measured", {"schema": _WIDER}, NEW),
    Call("admin", "PUT /v1/types/shop/measured", {"schema": _WIDER}, if_match("<type>")),
    Call("admin", "PUT /v1/types/shop/measured", {"schema": {"required": ["x"]}}),
    Call(
        "admin",
        "PUT /v1/types/shop/weighed",
        {
            "schema": {"properties": {"kg": {"type": "number"}}},
            "header": {"required": ["summary"]},
            "parent": "measured",
            "evolution": "none",
        },
        {**NEW, **ACTION},
    ),
    Call("admin", "PUT /v1/types/shop/weighed", {"schema": {}, "evolution": "none"}),
    Call("operator", "PUT /v1/types/caf%C3%A9/a%2Fb%20c?zone=<zone>", {"schema": {}}),
    Call("admin", "PUT /v1/types/shop/other", {"schema": {}, "parent": "nothing"}),
    Call("admin", "PUT /v1/types/shop/other", {"schema": {}, "parent": "other"}),
    Call("admin", "PUT /v1/types/shop/other", {"schema": {}}, if_match("1")),
    *(
        Call("admin", "PUT /v1/types/shop/other", {"schema": schema})
        for schema in (
            {"mininum": 1},
            {"minLength": -1},
            {"$ref": "http://127.0.0.1:1/x"},
            {"not": {"pattern": "(?=a)"}},
            {"description": "x" * 16_384},
        )
    ),
    Call("admin", "PUT /v1/types/shop/other", {"schema": {}, "header": {"required": ["body"]}}),
    *(Call("admin", f"PUT /v1/types/shop/{name}", {"schema": {}}) for name in (LONG, "%20a", ".")),
    Call("manager", "PUT /v1/types/shop/other", {"schema": {}}),
    *gets(
        "admin",
        "/v1/types/shop/measured",
        "/v1/types/shop/measured/1",
        "/v1/types/shop/measured/2",
        "/v1/types/shop/measured/3",
        "/v1/types/shop/measured/x",
        "/v1/types/shop/measured/0",
        "/v1/types/shop/weighed",
        "/v1/types/caf%C3%A9/a%2Fb%20c",
        "/v1/types/shop/none",
        "/v1/types/none/none/1",
        f"/v1/types/{LONG}/x",
        "/v1/types",
        "/v1/types?limit=0",
        "/v1/types?after=x",
        "/v1/types?after=999999",
    ),
    Call("admin", "GET /v1/types?limit=1", keep={"<next>": "next"}),
    Call("admin", "GET /v1/types?limit=1&after=<next>", keep={"<next>": "next"}),
    Call("admin", "GET /v1/types?limit=2&after=<next>"),
    *gets("powerless", "/v1/types", "/v1/types/shop/weighed/2"),
    *gets("operator", "/v1/types?zone=<zone>", "/v1/types/shop/measured?zone=<zone>"),
    *gets("stranger", "/v1/types", "/v1/types/shop/measured"),
    # From here on the hub's processes know the types.
    Call(
        "admin", "PUT /v1/streams/kept/state/typed", {**EVENT, "type": "measured", "version": "x"}
    ),
]
HUB = [
    *gets("admin", "/v1/storage", "/v1/boot", "/v1/overview", "/v1/languages"),
    *gets("operator", "/v1/storage?zone=<zone>", "/v1/boot", "/v1/overview?zone=<zone>"),
    *gets("operator", "/v1/storage?zone=none", "/v1/overview", "/v1/languages"),
    *gets("listener", "/v1/storage", "/v1/boot", "/v1/overview", "/v1/languages"),
    *gets("operator", "/v1/members", "/v1/monitoring?zone=<zone>"),
    *gets("admin", "/v1/members", "/v1/monitoring"),
    *gets("stranger", "/v1/presence", "/v1/presence?limit=0"),
    *sends("admin", "PATCH /v1/monitoring", {"traces": False}, {"presence": 1}, {"calls": True}),
    Call("operator", "PUT /v1/storage", {"quota_bytes": 1 << 40}, ACTION),
    Call("operator", "PUT /v1/storage?zone=<zone>", {"quota_bytes": 1 << 40}),
    Call("operator", "PUT /v1/storage", {"quota_bytes": (1 << 25) - 1}),
    Call("operator", "PUT /v1/storage", {"quota_bytes": (1 << 50) + 1}),
    *sends("operator", "PUT /v1/storage", {}, None, {"quota_bytes": None}, {"quota": 1}),
    Call("admin", "PUT /v1/storage", {"quota_bytes": 1 << 40}),
    Call("operator", "PUT /v1/storage", {"quota_bytes": None}, if_match("1")),
]
DELETIONS = [
    *(
        Call("operator", f"{method} /v1/zones/{path}")
        for name in ("default", "nowhere")
        for method, path in (("GET", name), ("DELETE", name), ("POST", f"{name}/restore"))
    ),
    Call("operator", "DELETE /v1/zones/<zone>?grace_s=600", None, ACTION),
    Call("operator", "GET /v1/zones/<zone>"),
    Call("admin", "POST /v1/clients", {"name": "late"}),
    Call("admin", "PUT /v1/streams/late", {}),
    Call("operator", "POST /v1/zones/<zone>/restore"),
    Call("admin", "DELETE /v1/zones/<zone>"),
    Call("admin", "DELETE /v1/types/shop/measured"),  # weighed is its subtype
    Call("admin", "DELETE /v1/types/shop/weighed?grace_s=600", None, ACTION),
    Call("admin", "DELETE /v1/types/shop/weighed"),
    Call("admin", "PUT /v1/types/shop/weighed", {"schema": {}}),
    Call("admin", "POST /v1/types/shop/weighed/restore"),
    Call("admin", "POST /v1/types/shop/weighed/restore"),
    Call("admin", "DELETE /v1/types/shop/none"),
    Call("admin", "DELETE /v1/channels/cpu?grace_s=600", None, ACTION),
    Call("admin", "GET /v1/channels"),
    Call("admin", "POST /v1/channels/cpu/restore"),
    Call("admin", "POST /v1/channels/cpu/restore"),
    *(Call("admin", f"DELETE /v1/channels/{name}") for name in ("default", "none")),
    Call("admin", "DELETE /v1/streams/orders?grace_s=600", None, if_match("1")),
    Call("admin", "DELETE /v1/streams/orders?grace_s=600", None, ACTION),
    Call("admin", "DELETE /v1/streams/orders"),
    Call("admin", "POST /v1/streams/orders/events", EVENT),
    Call("admin", "PUT /v1/streams/orders", {"retain_events": 7}),
    Call("admin", "POST /v1/registrations", {"streams": ["orders"]}),
    Call("admin", "POST /v1/streams/orders/restore"),
    Call("admin", "POST /v1/streams/orders/restore"),
    Call("admin", "DELETE /v1/streams/system"),
    *(
        Call(caller, f"{method} /v1/streams/{path}")
        for caller, path in (("manager", "orders"), ("stranger", "orders"), ("admin", "nowhere"))
        for method, path in (("DELETE", path), ("POST", f"{path}/restore"))
    ),
]
NAMED = [Call("admin", f"GET /v1/streams/{name}/segments") for name in NAMES[:2]]
CALLS = [*STREAMS, *EVENTS, *NAMED, *STATES, *TYPES, *DELETIONS, *HUB]
