"""Calls about sessions and session groups, and calls through sessions."""

from tests.acceptance.recorded.call import Call, gets, sends

_SESSIONS, _GROUPS = "/v1/sessions", "/v1/session-groups"
_READER = {"name": "reader", "kind": "consumer"}
_SUPPLIES = [{"domain": "shop", "type": "order.placed"}]
_EMIT = "POST /v1/streams/orders/events"
_EVENT = {"domain": "shop", "type": "order.placed"}
_SHARING = (
    *({"share_by": "a"}, {"sharing": "one", "quality": "best_effort"}),
    {"sharing": "one", "attempts_max": 0},
)
CALLS = [
    Call("admin", f"POST {_GROUPS}", {"name": "team"}, keep={"<sessiongroup>": "id"}),
    *sends("admin", f"POST {_GROUPS}", {}, {"name": "team"}),
    Call("admin", f"POST {_SESSIONS}", _READER, keep={"<session>": "id"}),
    *sends(
        *("admin", f"POST {_SESSIONS}", _READER, {"name": "writer", "kind": "supplier"}),
        {"name": "writer", "kind": "supplier", "supplies": _SUPPLIES},
        {"name": "boss", "kind": "admin", "window": 5},
    ),
    *sends(
        *("admin", f"PATCH {_SESSIONS}/<session>", {}, {"group": "team"}, {"kind": "admin"}),
        *({"suspended": True, "disconnected": True}, {"suspended": False}, {"order": "random"}),
    ),
    Call("admin", f"POST {_SESSIONS}/reader/pull", {}),
    Call("admin", f"PATCH {_SESSIONS}/<session>", {"disconnected": False}),
    *sends(
        *("admin", f"POST {_SESSIONS}/reader/pull", {}, {"max": 0, "wait_s": 61}),
        {"max": 0, "acknowledgements": [{"stream": "orders", "sequence": 1}]},
    ),
    *sends(
        *("admin", f"POST {_SESSIONS}/reader/acknowledgements", {}),
        {"streams": [{"stream": "orders", "sequence": 1}]},
    ),
    *gets("admin", f"{_SESSIONS}/nobody/events", f"{_SESSIONS}/writer/events"),
    *gets("admin", f"{_SESSIONS}/<session>", _SESSIONS, f"{_SESSIONS}?kind=supplier"),
    *gets("admin", f"{_SESSIONS}/<session>/positions", f"{_SESSIONS}/0/positions"),
    *gets("admin", f"{_SESSIONS}/<session>/claims", f"{_SESSIONS}/0/claims"),
    *gets("admin", f"{_GROUPS}/<sessiongroup>", _GROUPS, f"{_SESSIONS}?kind=x"),
    *gets("admin", f"{_GROUPS}/<sessiongroup>/positions", f"{_GROUPS}/<sessiongroup>/claims"),
    *sends("admin", f"POST {_GROUPS}", *({"name": "pool", **more} for more in _SHARING)),
    *gets("peer", f"{_SESSIONS}/<session>", f"{_GROUPS}/<sessiongroup>"),
    Call("admin", "POST /v1/registrations", {"streams": ["orders"], "session": "nobody"}),
    Call("admin", _EMIT, _EVENT, headers={"EventHub-Session": "reader"}),
    Call("admin", _EMIT, {**_EVENT, "type": "other"}, headers={"EventHub-Session": "writer"}),
    Call("admin", f"DELETE {_GROUPS}/<sessiongroup>"),
    Call("admin", f"POST {_GROUPS}", {"name": "spare"}, keep={"<spare>": "id"}),
    *(Call("admin", f"DELETE {_GROUPS}/<spare>") for _ in range(2)),
    Call(
        *("admin", "POST /v1/registrations", {"streams": ["orders"], "session": "reader"}),
        keep={"<ofreader>": "id"},
    ),
    *sends(
        *("admin", f"POST {_SESSIONS}/<session>/acknowledgements"),
        {"streams": [{"stream": "orders", "sequence": 0}]},
    ),
    Call("admin", "DELETE /v1/registrations/<ofreader>"),
]
