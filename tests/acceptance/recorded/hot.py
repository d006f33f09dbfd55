"""Calls to the hot routes: emit, listen, segments, interest, dry runs, bulk and MCP."""

from typing import Any

from tests.acceptance.recorded.access import ACTION, LONG
from tests.acceptance.recorded.call import Call, gets, sends, sql
from tests.acceptance.recorded.streams import EVENT

_EVENTS = "/v1/streams/orders/events"
_LINES = {"Accept": "application/x-ndjson"}
_BULK = "POST /v1/registrations/bulk"
_SHAPE = {"domain": "shop", "type": "order.placed"}
_RUN: dict[str, Any] = {"stream": "orders", "type": "order.placed", "last": 3, "samples": 1}


def _numbered(number: int) -> dict[str, Any]:
    return {**EVENT, "id": {"incarnation": 7, "sequence": number}}


def _lines(*lines: bytes, query: str = "") -> Call:
    body = b"".join(line + b"\n" for line in lines)
    return Call("admin", f"{_BULK}{query}", body, {"Content-Type": "application/x-ndjson"})


EMITS = [
    Call("admin", f"POST {_EVENTS}", [_numbered(1), _numbered(2), EVENT]),
    Call("admin", f"POST {_EVENTS}", _numbered(1)),  # a repeat: the answer has the last sequence
    Call("admin", f"POST {_EVENTS}", [_numbered(2), EVENT]),
    Call("admin", f"POST {_EVENTS}", {**EVENT, "id": "once"}),
    Call("admin", f"POST {_EVENTS}", [EVENT, {**EVENT, "id": "once"}, {**EVENT, "id": "once"}]),
    *(
        Call("admin", f"POST {_EVENTS}", EVENT, {"Idempotency-Key": key})
        for key in ("k", "k", " ", LONG)
    ),
    *(
        Call("admin", "POST /v1/streams/fast/events", one)
        for one in ([EVENT, _numbered(1)], [EVENT], _numbered(1))
    ),
    *sends("admin", f"POST {_EVENTS}", b"[{]", b'{"domain": "\xff"}', [], [EVENT, {}]),
    *(
        Call("admin", f"POST {_EVENTS}", {**EVENT, **more})
        for more in ({"x": 1}, {"channels": ["none"]}, {"type": "measured", "attributes": {}})
    ),
    Call("admin", f"POST {_EVENTS}", b"x", {"Content-Type": "image/png"}),
    Call("admin", f"POST {_EVENTS}", b"{}", {"Content-Encoding": "gzip"}),
    Call("admin", f"POST {_EVENTS}", EVENT, {"If-Match": "1"}),
    Call("admin", "POST /v1/streams/nowhere/events", EVENT),
    Call("admin", "POST /v1/streams/system/events", EVENT),
    Call("listener", f"POST {_EVENTS}", EVENT),
    Call("emitter", "POST /v1/streams/secret/events", EVENT),
]
LISTENS = [
    *gets(
        "admin",
        f"{_EVENTS}?from=oldest&limit=2",
        _EVENTS,
        f"{_EVENTS}?from=oldest&limit=1&type=measured",
        f"{_EVENTS}?order=backward&limit=1",
        "/v1/streams/old/events?from=boot",
        "/v1/streams/fast/events?from=oldest",
        f"{_EVENTS}?from=yesterday",
        f"{_EVENTS}?from=00000000-0000-4000-8000-000000000000:1",
        f"{_EVENTS}?language=predicate&filter=(",
        f"{_EVENTS}?registrations=1000000",
        "/v1/streams/nowhere/events",
    ),
    Call("admin", f"GET {_EVENTS}?from=oldest&limit=1", headers=_LINES),
    Call("admin", f"GET {_EVENTS}?limit=1", headers={"Accept": "image/png"}),
    Call("admin", f"GET {_EVENTS}?order=backward&limit=1", headers={"Last-Event-ID": "x"}),
    Call("token", f"GET {_EVENTS}?from=oldest&limit=1"),
    Call("emitter", f"GET {_EVENTS}"),
    Call("listener", f"GET {_EVENTS}?order=backward&limit=1"),
    *gets(
        "admin",
        "/v1/streams/old/segments/<segment>/raw",
        "/v1/streams/old/segments/x/raw",
        "/v1/streams/nowhere/segments/<segment>/raw",
    ),
    Call("admin", "GET /v1/streams/old/segments/current", keep={"<open>": "uuid"}),
    Call("admin", "GET /v1/streams/old/segments/<open>/raw"),
    Call("emitter", "GET /v1/streams/old/segments/<segment>/raw"),
]
INTEREST = [
    # its producers may not suppress events yet, also where the calls before took a minute
    sql("UPDATE streams SET unquenched_at = now() WHERE name = 'orders'"),
    Call("admin", "GET /v1/streams/orders/closure", keep={"<tag>": "ETag"}),
    Call("admin", "GET /v1/streams/orders/closure", headers={"If-None-Match": "<tag>"}),
    *gets("admin", "/v1/streams/orders/closure?audience=ops", "/v1/streams/nowhere/closure"),
    *gets("admin", "/v1/streams/orders/closure?audience=", "/v1/streams/system/closure"),
    *gets("listener", "/v1/streams/orders/closure"),
    *gets("emitter", "/v1/streams/orders/closure"),
    *sends("emitter", "POST /v1/streams/orders/interest", {"shape": _SHAPE}, {}, {"shape": 1}),
    Call("emitter", "POST /v1/streams/secret/interest", {"shape": _SHAPE}),
    *gets(
        "admin",
        f"{_EVENTS}/1/matches",
        f"{_EVENTS}/1/matches?after=x",
        f"{_EVENTS}/99/matches",
        f"{_EVENTS}/x/matches",
        "/v1/streams/old/events/1/matches",
        "/v1/streams/nowhere/events/1/matches",
    ),
    *gets("emitter", f"{_EVENTS}/1/matches"),
]
RUNS = [
    *sends("admin", "POST /v1/filters/dry-run", _RUN, {**_RUN, "from": "boot"}),
    Call("admin", "POST /v1/filters/dry-run", _RUN, _LINES),
    *(
        Call("admin", "POST /v1/filters/dry-run", {**_RUN, **more})
        for more in (
            {"stream": "nowhere"},
            {"stream": "old", "from": "oldest"},
            {"from": "00000000-0000-4000-8000-000000000000:1"},
            {"channels": ["none"]},
            {"language": "predicate", "filter": "("},
            {"last": 0},
        )
    ),
    Call("listener", "POST /v1/filters/dry-run", {**_RUN, "stream": "secret"}),
]
BULK = [
    _lines(b'{"op": "create", "streams": ["orders"], "key": "bulk"}', b'{"op": "create"}'),
    _lines(b'{"op": "end", "key": "bulk"}', query="?ids=true"),
    _lines(b"[", b"", query="?ids=maybe"),
    _lines(b"", query="?client=nobody"),
    Call("admin", _BULK, b"", {"Content-Type": "application/x-ndjson", **ACTION}),
    Call("token", _BULK, b"", {"Content-Type": "application/x-ndjson"}),
]
_PING = {"jsonrpc": "2.0", "id": 1, "method": "ping"}
MCP = [
    *sends("admin", "POST /mcp", _PING, {**_PING, "method": "no"}, {**_PING, "id": None}, b"["),
    *sends("admin", "POST /mcp", {"jsonrpc": "2.0", "method": "notifications/initialized"}),
]
CALLS = [*EMITS, *LISTENS, *INTEREST, *RUNS, *BULK, *MCP]
