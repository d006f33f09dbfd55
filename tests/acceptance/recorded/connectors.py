"""Calls about connectors; no process runs them."""

from tests.acceptance.recorded.call import Call, gets, sends

_NEW = {
    "name": "shop",
    "stream": "orders",
    "kind": "outbox-polling",
    "url": "postgresql://reader:word@db.example/shop",
    "settings": {"table": "outbox"},
}
_ONE = "/v1/connectors/<connector>"
_ROW = {"row": {"id": 1, "type": "placed"}}
CALLS = [
    Call("admin", "POST /v1/connectors", _NEW, keep={"<connector>": "id"}),
    Call("admin", "POST /v1/connectors", _NEW),
    Call("admin", "POST /v1/connectors", {**_NEW, "settings": {"order": "id"}}),
    Call("admin", "POST /v1/connectors", {**_NEW, "url": "postgresql:///shop"}),
    *gets("admin", "/v1/connectors", _ONE),
    *sends("admin", f"POST {_ONE}/test", _ROW, {**_ROW, "mapping": {"type": {"body": "/none"}}}),
    *sends("admin", f"PATCH {_ONE}", {"enabled": False}, {"on_refusal": "skip"}),
]
ENDED = [*(Call("admin", f"DELETE {_ONE}") for _ in range(2))]
