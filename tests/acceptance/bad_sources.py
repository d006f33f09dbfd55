"""Bad input at the routes of sources and at their URLs."""

from collections.abc import Iterator
from typing import Any

from tests.acceptance.bad_inputs import Bad

_SOURCE = {"name": "hook", "stream": "orders", "provider": "github"}
_HOOK = "POST /v1/webhooks/{token}"


def bad_requests() -> Iterator[Bad]:
    """Yield what is wrong at the routes of sources only."""
    for name, body, status, code, at in (
        ("a taken name", {"name": "taken"}, 409, "source_exists", "name"),
        ("no provider", {"provider": "nobody"}, 400, "invalid_field", "provider"),
        ("no stream", {"stream": "none"}, 404, "unknown_stream", None),
        ("the hub's own", {"stream": "system"}, 403, "forbidden", "stream"),
        ("another zone's client", {"client": "nobody"}, 404, "not_found", "client"),
        ("no options", {"provider": "hmac"}, 400, "missing_field", "options.header"),
        ("unknown options", {"options": {"a": 1}}, 400, "unknown_field", "options.a"),
        ("no header", {"provider": "hmac", "options": {"header": "a b"}}, 400, "invalid_field",
         "options.header"),
        ("a long secret", {"secret": "x" * 513}, 400, "field_too_long", "secret"),
        ("no secret", {"provider": "basic", "secret": "x"}, 400, "invalid_field", "secret"),
        ("no map", {"mapping": []}, 400, "invalid_field", "mapping"),
        ("no origin", {"mapping": {"type": {}}}, 400, "invalid_field", "mapping.type"),
        ("no pointer", {"mapping": {"type": {"body": "a"}}}, 400, "invalid_field",
         "mapping.type.body"),
    ):  # fmt: skip
        place = {} if at is None else {"field": at}
        given = {**_SOURCE, **body}
        yield Bad(name, "POST /v1/sources", "/v1/sources", status, code, place, given)
    yield from _of_one()
    yield Bad("no such token", _HOOK, "/v1/webhooks/none", 404, "unknown_source", body={}, key="")
    yield Bad("a disabled source", _HOOK, "/v1/webhooks/<disabledsourcetoken>", 409,
              "source_disabled", body={}, key="")  # fmt: skip
    yield Bad("no signature", _HOOK, "/v1/webhooks/<sourcetoken>", 401, "unverified_delivery",
              body={}, key="")  # fmt: skip
    yield Bad("gzip", _HOOK, "/v1/webhooks/<sourcetoken>", 415, "unsupported_media_type", body={},
              key="", headers={"Content-Encoding": "gzip"})  # fmt: skip
    yield Bad("wrong method", _HOOK, "/v1/webhooks/<sourcetoken>", 405, "method_not_allowed",
              method="GET")  # fmt: skip


def _of_one() -> Iterator[Bad]:
    path, test = "/v1/sources/<source>", "/v1/sources/{source}/test"
    unmapped: dict[str, Any] = {"mapping": {"type": {"body": "/none"}}, "body": "{}"}
    for name, body, status, code, at in (
        ("no event", unmapped, 422, "unmapped_delivery", "type"),
        ("no such sample", {"sample": 999999}, 404, "unknown_sample", "sample"),
        ("two requests", {"sample": 1, "body": ""}, 400, "invalid_field", "sample"),
        ("no header", {"headers": {"a": 1}}, 400, "invalid_field", "headers"),
        ("no JSON", {"body": "{"}, 400, "malformed_json", "body"),
    ):
        yield Bad(name, f"POST {test}", f"{path}/test", status, code, {"field": at}, body)
    for kind in ("url", "secrets"):
        route = f"POST /v1/sources/{{source}}/{kind}"
        yield Bad("long", route, f"{path}/{kind}", 400, "invalid_field", {"field": "overlap_s"},
                  {"overlap_s": 10**9})  # fmt: skip
    yield Bad("no map", "PATCH /v1/sources/{source}", path, 400, "unknown_field",
              {"field": "mapping.other"}, {"mapping": {"other": {}}})  # fmt: skip
    for method in ("GET", "PATCH", "DELETE"):
        given = {"enabled": True} if method == "PATCH" else None
        yield Bad("no such source", f"{method} /v1/sources/{{source}}", "/v1/sources/999999", 404,
                  "unknown_source", {"field": "source"}, given)  # fmt: skip
    yield Bad("no provider", "GET /v1/sources", "/v1/sources?provider=x", 400, "invalid_field",
              {"field": "provider"})  # fmt: skip
