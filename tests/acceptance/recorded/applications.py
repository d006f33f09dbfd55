"""Calls about the states of applications and their groups, and about the audit trail."""

from tests.acceptance.recorded.call import Call, gets, sends

_TILL = "/v1/applications/till"
_TILLS = "/v1/application-groups/tills"
CALLS = [
    *sends("admin", f"PUT {_TILL}", {}, {"state": "sleepy"}, {"state": "online"}),
    *sends("admin", f"PUT {_TILL}", {"state": "degraded", "reason": "slow"}, {"state": "online"}),
    *sends("admin", f"PUT {_TILL}/monitor", {"timeout_s": 0}, {"timeout_s": 3_600}),
    Call("admin", f"POST {_TILL}/heartbeat", {}),
    *sends("admin", f"PUT {_TILLS}", {"applications": ["nobody"]}, {"applications": ["till"]}),
    *gets("admin", _TILL, "/v1/applications", "/v1/applications?state=x"),
    *gets("admin", _TILLS, "/v1/application-groups"),
    *(Call("admin", f"DELETE {_TILL}/monitor") for _ in range(2)),
    *(Call("admin", f"DELETE {path}") for path in (_TILLS, _TILLS, _TILL, _TILL)),
    Call("admin", f"POST {_TILL}/heartbeat", {}),
    Call("admin", "GET /v1/audit?limit=1", keep={"<act>": "items.0.sequence"}),
    *gets("admin", "/v1/audit/<act>", "/v1/audit/999999", "/v1/audit?kind=x"),
]
