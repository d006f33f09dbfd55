"""Calls about sources and to their URLs."""

from tests.acceptance.recorded.call import Call, gets, sends

_NEW = {"name": "hook", "stream": "orders", "provider": "api-key", "secret": "open sesame"}
_KEYED = {**_NEW, "options": {"name": "X-Key"}}
_ONE = "/v1/sources/<source>"
_MAP = {"mapping": {"type": {"body": "/kind"}}, "body": '{"kind": "order.placed"}'}
CALLS = [
    Call("admin", "POST /v1/sources", _NEW),
    Call("admin", "POST /v1/sources", {**_KEYED, "mapping": {"type": {}}}),
    Call("admin", "POST /v1/sources", {**_KEYED, "provider": "nobody"}),
    Call("admin", "POST /v1/sources", _KEYED, keep={"<source>": "id", "<hook>": "path"}),
    Call("admin", "POST /v1/sources", _KEYED),
    Call("nobody", "POST <hook>", {"type": "order.placed"}),
    Call("nobody", "POST <hook>", {"type": "order.placed"}, {"X-Key": "open sesame"}),
    Call("nobody", "POST <hook>", b"{", {"X-Key": "open sesame"}),
    *gets("admin", "/v1/sources", _ONE, f"{_ONE}/samples"),
    Call("admin", f"GET {_ONE}/samples/1", measured=("host",)),
    *sends("admin", f"POST {_ONE}/test", _MAP, {"body": "{}", "mapping": {"key": {}}}),
    *sends("admin", f"POST {_ONE}/secrets", {"secret": "other"}, {"overlap_s": -1}),
    *sends("admin", f"POST {_ONE}/url", {"overlap_s": -1}, {}),
    *sends("admin", f"PATCH {_ONE}", {"enabled": False}, {"options": {}}, {"colour": "red"}),
    Call("nobody", "POST <hook>", {}),
]
ENDED = [*(Call("admin", f"DELETE {_ONE}") for _ in range(2))]
