"""Bad input at the routes of connectors."""

from collections.abc import Iterator
from typing import Any

from tests.acceptance.bad_inputs import Bad

CONNECTOR: dict[str, Any] = {
    "name": "shop",
    "stream": "orders",
    "kind": "outbox-polling",
    "url": "postgresql://reader:word@127.0.0.1:1/shop",
    "settings": {"table": "outbox"},
}


def bad_requests() -> Iterator[Bad]:
    """Yield what is wrong at the routes of connectors only."""
    for name, body, status, code, at in (
        ("a taken name", {"name": "taken"}, 409, "connector_exists", "name"),
        ("no kind", {"kind": "nothing"}, 400, "invalid_field", "kind"),
        ("no stream", {"stream": "none"}, 404, "unknown_stream", None),
        ("the hub's own", {"stream": "system"}, 403, "forbidden", "stream"),
        ("another zone's client", {"client": "nobody"}, 404, "not_found", "client"),
        ("no table", {"settings": {}}, 400, "missing_field", "settings.table"),
        ("a number", {"settings": {"table": 1}}, 400, "invalid_field", "settings.table"),
        ("unknown settings", {"settings": {"table": "t", "a": 1}}, 400, "unknown_field",
         "settings.a"),
        ("no URL", {"url": "shop"}, 400, "invalid_field", "url"),
        ("a socket", {"url": "postgresql://u@%2Ftmp/d"}, 400, "invalid_field", "url"),
        ("a file", {"url": "postgresql://u@h/d?passfile=/x"}, 400, "invalid_field", "url"),
        ("a long URL", {"url": "x" * 2049}, 400, "field_too_long", "url"),
        ("no map", {"mapping": []}, 400, "invalid_field", "mapping"),
        ("no origin", {"mapping": {"type": {}}}, 400, "invalid_field", "mapping.type"),
        ("no policy", {"on_refusal": "skip"}, 400, "invalid_field", "on_refusal"),
    ):  # fmt: skip
        place = {} if at is None else {"field": at}
        given = {**CONNECTOR, **body}
        yield Bad(name, "POST /v1/connectors", "/v1/connectors", status, code, place, given)
    path, route = "/v1/connectors/<connector>", "/v1/connectors/{connector}"
    unmapped: dict[str, Any] = {"mapping": {"type": {"body": "/none"}}, "row": {}}
    yield Bad("no event", f"POST {route}/test", f"{path}/test", 422, "unmapped_delivery",
              {"field": "type"}, unmapped)  # fmt: skip
    yield Bad("no map", f"PATCH {route}", path, 400, "unknown_field", {"field": "mapping.other"},
              {"mapping": {"other": {}}})  # fmt: skip
    yield Bad("no URL", f"PATCH {route}", path, 400, "invalid_field", {"field": "url"},
              {"url": "mysql://u@h/d"})  # fmt: skip
    for method in ("GET", "PATCH", "DELETE"):
        given = {"enabled": True} if method == "PATCH" else None
        yield Bad("no such connector", f"{method} {route}", "/v1/connectors/999999", 404,
                  "unknown_connector", {"field": "connector"}, given)  # fmt: skip
    yield Bad("no state", "GET /v1/connectors", "/v1/connectors?state=x", 400, "invalid_field",
              {"field": "state"})  # fmt: skip
