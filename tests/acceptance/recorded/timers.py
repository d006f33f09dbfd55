"""Calls about timers and delayed events."""

from tests.acceptance.recorded.call import Call, gets, sends

_NEW = {"stream": "orders", "handle": "tick", "cron": "0 8 * * *", "timezone": "Europe/Berlin"}
_EVENT = {"domain": "shop", "type": "reminder", "attributes": {"order": 7}}
_LATER = {"stream": "orders", "handle": "later", "at": "2031-01-01T00:00:00Z", "event": _EVENT}
_TIMER = "/v1/timers/<timer>"
_BY_HANDLE = "/v1/registrations/<registration>/timers/tick"
CALLS = [
    Call("admin", "POST /v1/timers", {"stream": "orders", "handle": "tick"}),
    Call("admin", "POST /v1/timers", {**_NEW, "every_s": 1}),
    Call("admin", "POST /v1/timers", {**_NEW, "cron": "hourly"}),
    Call("admin", "POST /v1/timers", {**_NEW, "timezone": "Nowhere"}),
    Call("admin", "POST /v1/timers", {**_NEW, "stream": "none"}),
    Call("admin", "POST /v1/timers", _NEW, keep={"<timer>": "id"}),
    *sends("admin", "POST /v1/timers", _NEW, _LATER, {**_LATER, "event": {}}),
    *gets("admin", _TIMER, "/v1/timers", "/v1/timers?handle=later", "/v1/timers?suspended=x"),
    *gets("admin", "/v1/timers?delayed=true", "/v1/timers?delayed=false", "/v1/timers?delayed=x"),
    *sends("admin", f"PATCH {_TIMER}", {"suspended": 1}, {"suspended": True}, {"suspended": False}),
    *(Call("admin", f"DELETE {_TIMER}") for _ in range(2)),
    Call("admin", "POST /v1/timers", {**_NEW, "registration": "<registration>"}),
    *gets("admin", _BY_HANDLE, _BY_HANDLE.replace("tick", "tock")),
    *sends("admin", f"PATCH {_BY_HANDLE}", {"suspended": 1}, {"suspended": True}),
    *(Call("admin", f"DELETE {_BY_HANDLE}") for _ in range(2)),
]
