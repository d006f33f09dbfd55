"""Bad input of the emit route: credentials, path, headers and body."""

import json
from typing import Any

import pytest

from eventhub.base import limits
from tests.acceptance.bad_inputs import EMIT, EVENT, Bad, World

pytestmark = pytest.mark.usefixtures("untouched")
PATH = "/v1/streams/orders/events"
NDJSON = {"Content-Type": "application/x-ndjson"}
LINE = json.dumps(EVENT).encode()


def event(**fields: Any) -> dict[str, Any]:
    return {**EVENT, **fields}


def nested(depth: int) -> Any:
    return [] if depth == 0 else [nested(depth - 1)]


def bad(name: str, status: int, code: str, at: str = "", body: Any = EVENT, **more: Any) -> Bad:
    """Return a bad emit. `at`: `index field`, `index` or nothing."""
    index, _, field = at.partition(" ")
    place: dict[str, Any] = {"index": int(index)} if index else {}
    if field:
        place["field"] = field
    return Bad(name, EMIT, more.pop("path", PATH), status, code, place, body, **more)


def field(name: str, code: str, value: Any, *, where: str = "", status: int = 400) -> Bad:
    """Return a request of three events, the second of which has a bad field."""
    body = [EVENT, event(**{name: value}), EVENT]
    shown = repr(value)[:40]
    return bad(f"{name} {shown}", status, code, f"1 {where or name}", body)


WHO = (
    bad("no key", 401, "unauthenticated", key=""),
    bad("wrong key", 401, "invalid_credentials", key="wrong"),
    bad("no key at all", 401, "invalid_credentials", key="garbage"),
    bad("a long key", 401, "unauthenticated", key="long"),
    bad("revoked key", 401, "invalid_credentials", key="revoked"),
    bad("expired key", 401, "invalid_credentials", key="expired"),
    bad("expired token", 401, "token_expired", key="expired token"),
    bad("forged token", 401, "invalid_credentials", key="forged token"),
    bad("basic", 401, "unauthenticated", key="", headers={"Authorization": "Basic b3A6b3A="}),
    bad("empty bearer", 401, "unauthenticated", key="", headers={"Authorization": "Bearer "}),
    bad("key without grants", 403, "forbidden", key="nothing"),
    bad("key that listens", 403, "forbidden", key="listener"),
    bad("token that listens", 403, "forbidden", key="narrow token"),
    bad("another stream's key", 403, "forbidden", key="emitter", path="/v1/streams/secret/events"),
    bad("another zone's key", 404, "unknown_stream", key="other"),
    bad("another zone's stream", 404, "unknown_stream", path="/v1/streams/theirs/events"),
    bad("the hub's own stream", 403, "forbidden", path="/v1/streams/system/events"),
)
WHERE = (
    bad("unknown stream", 404, "unknown_stream", path="/v1/streams/nowhere/events"),
    bad("bad UTF-8", 400, "invalid_utf8", " path", path="/v1/streams/%ff%fe/events"),
    bad("NUL", 400, "invalid_utf8", " path", path="/v1/streams/a%00b/events"),
    bad("broken escape", 404, "unknown_stream", path="/v1/streams/%zz/events"),
    bad("escaped slash", 404, "not_found", path="/v1/streams/a%2Fb/events"),
    bad("SQL", 404, "unknown_stream", path="/v1/streams/';DROP%20TABLE%20events;--/events"),
    bad("line feed", 404, "unknown_stream", path="/v1/streams/a%0ab/events"),
    bad("long name", 404, "unknown_stream", path=f"/v1/streams/{'a' * 9_000}/events"),
    bad("parent folder", 404, "unknown_stream", path="/v1/streams/../events"),
    bad("slash behind", 404, "not_found", path=f"{PATH}/"),
    bad("no stream", 404, "not_found", path="/v1/streams//events"),
)
HOW = (
    *(bad(f"method {m}", 405, "method_not_allowed", method=m) for m in ("PUT", "PATCH", "DELETE")),
    *(bad(f"method {m}", 405, "method_not_allowed", method=m) for m in ("OPTIONS", "TRACE")),
    bad("method in lower case", 405, "method_not_allowed", method="PROPFIND"),
    bad("no content type", 415, "unsupported_media_type", headers={"Content-Type": ""}),
    bad("a form", 415, "unsupported_media_type", headers={"Content-Type": "text/plain"}),
    bad("protobuf", 415, "unsupported_media_type", headers={"Content-Type": "a/x-protobuf"}),
    bad("gzip", 415, "unsupported_media_type", headers={"Content-Encoding": "gzip"}),
    bad("announced", 413, "body_too_large", headers={"Content-Length": "9" * 11}, body=b""),
    bad("one byte too large", 413, "body_too_large", body=b" " * (limits.BODY_BYTES_MAX + 1)),
    bad("1,001 events", 413, "batch_too_large", body=[EVENT] * 1_001),
    bad("1,001 lines", 413, "batch_too_large", body=(LINE + b"\n") * 1_001, headers=NDJSON),
    bad("no events", 400, "empty_batch", body=[]),
    bad("no lines", 400, "empty_batch", body=b"\n \n", headers=NDJSON),
    bad("nothing", 400, "malformed_json", body=b""),
    bad("truncated", 400, "malformed_json", body=b'{"domain": "shop", "type": "ord'),
    bad("trailing comma", 400, "malformed_json", body=b'[{"domain": "a", "type": "b"},]'),
    bad("two values", 400, "malformed_json", body=LINE + LINE),
    bad("UTF-16", 400, "malformed_json", body=json.dumps(EVENT).encode("utf-16")),
    bad("garbage", 400, "malformed_json", body=b"\x00\x01\x02"),
    bad("NaN", 400, "malformed_json", body=b'{"domain": NaN, "type": "b"}'),
    bad("bad UTF-8 text", 400, "invalid_utf8", body=b'{"domain": "\xff\xfe", "type": "b"}'),
    bad("half a surrogate", 400, "invalid_utf8", body=b'{"domain": "\\ud800", "type": "b"}'),
    bad("a bad line", 400, "malformed_json", "1", LINE + b"\n{\n" + LINE, headers=NDJSON),
    bad("a bad field in a line", 400, "missing_field", "2 domain", LINE + b"\n" + LINE + b"\n{}",
        headers=NDJSON),
    bad("an array in a line", 400, "invalid_field", "0", b"[" + LINE + b"]", headers=NDJSON),
    bad("deep", 400, "too_deep", body=b'{"attributes": {"a": ' + b"[" * 100_000),
    bad("a number", 400, "invalid_field", body=b"17"),
    bad("a number in the array", 400, "invalid_field", "1", [EVENT, 17]),
    bad("null", 400, "invalid_field", body=b"null"),
    bad("a large event", 413, "event_too_large", "0", event(
        body_base64="A" * (limits.EVENT_BYTES_MAX // 3 * 4 + 4), content_type="a/b")),
)  # fmt: skip
WHAT = (
    bad("no domain", 400, "missing_field", "0 domain", [{"type": "a"}]),
    bad("no type", 400, "missing_field", "0 type", [{"domain": "a"}]),
    field("domain", "invalid_field", ""),
    field("domain", "invalid_field", 17),
    field("type", "invalid_field", None),
    field("type", "field_too_long", "x" * 2_000),
    field("audience", "invalid_field", "ops"),
    field("hop_limit", "unknown_field", 3),
    field("sequence", "unknown_field", 3),
    field("source", "unknown_field", "another client"),
    field("attributes", "invalid_field", []),
    field("attributes", "too_deep", {"a": nested(limits.JSON_DEPTH_MAX)}),
    field("attributes", "field_too_long", {"a": "x" * limits.ATTRIBUTES_BYTES_MAX}),
    field("attributes", "field_too_long", {f"n{n}": 1 for n in range(300)}),
    field("attributes", "field_too_long", {"a": {"b": [0] * limits.ATTRIBUTES_VALUES_MAX}}),
    field("attributes", "number_out_of_range", {"n": 1 << 64}),
    field("attributes", "number_out_of_range", {"n": -(1 << 63) - 1}),
    field("body", "number_out_of_range", [1 << 70]),
    field("body", "too_deep", nested(40)),
    field("id", "invalid_field", 17),
    field("id", "invalid_field", {"sequence": "1"}, where="id.sequence"),
    field("id", "missing_field", {}, where="id.sequence"),
    field("id", "invalid_field", {"sequence": 0}, where="id.sequence"),
    field("id", "number_out_of_range", {"sequence": 1 << 63}, where="id.sequence"),
    field("id", "number_out_of_range", {"sequence": 1 << 64}, where="id.sequence"),
    field("id", "unknown_field", {"sequence": 1, "client": "another"}, where="id.client"),
    field("id", "producer_window", {"sequence": 5}, where="id.sequence", status=409),
    field("priority", "invalid_field", 1_001),
    field("priority", "invalid_field", 1.5),
    field("mask", "invalid_mask", 0),
    field("mask", "invalid_mask", -1),
    field("mask", "invalid_mask", 1 << 64),
    field("mask", "invalid_mask", "0x10"),
    field("mask", "invalid_mask", "9" * 40),
    field("mask", "invalid_field", True),
    field("mask", "invalid_field", ["disk"]),
    field("channels", "unknown_channel", ["nobody"]),
    field("channels", "invalid_field", "disk"),
    field("channels", "invalid_field", [""], where="channels.0"),
    field("channels", "field_too_long", ["a"] * 65),
    field("time", "invalid_field", "yesterday"),
    field("time", "invalid_field", "2026-01-01T00:00:00"),
    field("expires_at", "invalid_field", "2026-13-45T00:00:00Z"),
    field("deliver_at", "invalid_field", "2001-01-01T00:00:00Z"),
    field("deliver_at", "invalid_field", "9999-01-01T00:00:00Z"),
    field("deliver_at", "invalid_field", "tomorrow"),
    field("delay_ms", "invalid_field", -1),
    bad("two delays", 400, "invalid_field", "0 delay_ms",
        event(deliver_at="2031-01-01T00:00:00Z", delay_ms=1)),
    bad("delayed, and another refused", 400, "missing_field", "1 domain",
        [event(delay_ms=60_000), {"type": "a"}]),
    field("application", "field_too_long", ["a"] * 65),
    field("application", "field_too_long", ["ok", "x" * 2_000], where="application.1"),
    field("environment", "invalid_field", {"a": 1}, where="environment[...]"),
    field("environment", "field_too_long", {f"n{n}": "x" * 1_000 for n in range(20)}),
    field("body_base64", "missing_field", "AA==", where="content_type"),
    bad("no base64", 400, "invalid_field", "0 body_base64",
        event(body_base64="?", content_type="a/b")),
    bad("two bodies", 400, "invalid_field", "0 body", event(body=1, body_base64="AA==")),
    bad("two masks", 400, "invalid_mask", "0 mask", event(channels=["disk"], mask=1)),
    bad("a type without a body", 400, "invalid_field", "0 content_type", event(content_type="a/b")),
    bad("JSON of another type", 400, "invalid_field", "0 content_type",
        event(body=1, content_type="text/plain")),
)  # fmt: skip
CASES = (*WHO, *WHERE, *HOW, *WHAT)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_bad_emit_is_refused_with_its_place(world: World, case: Bad) -> None:
    world.check(case)
