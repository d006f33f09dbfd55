"""Bad input of the listen routes over HTTP: events and raw segments."""

from typing import Any

import pytest

from tests.acceptance.bad_inputs import Bad, World

pytestmark = pytest.mark.usefixtures("untouched")
LISTEN = "GET /v1/streams/{stream}/events"
RAW = "GET /v1/streams/{stream}/segments/{segment}/raw"
NOWHERE = "00000000-0000-4000-8000-00000000dead"
SSE = {"Accept": "text/event-stream"}
PATH = "/v1/streams/orders/events"


def query(name: str, text: str, code: str, field: str = "", **more: Any) -> Bad:
    """Return a listen to `orders` with a query; most are 400."""
    at = {"field": field} if field else {}
    return Bad(name, LISTEN, f"{PATH}?{text}", more.pop("status", 400), code, at, **more)


QUERIES = (
    query("unknown parameter", "colour=red", "unknown_field", "colour"),
    query("token by another name", "token=x", "unknown_field", "token"),
    query("parameter twice", "mask=1&mask=2", "invalid_field", "mask"),
    query("too many parameters", "&".join(f"a{n}=1" for n in range(40)), "invalid_field", "query"),
    query("query that is no UTF-8", "domain=%ff", "invalid_utf8", "query"),
    query("NUL in the query", "domain=%00", "invalid_field", "domain"),
    query("no start", "from=yesterday", "invalid_cursor", "from"),
    query("empty start", "from=", "invalid_cursor", "from"),
    query("cursor without a number", f"from={NOWHERE}", "invalid_cursor", "from"),
    query("cursor beyond 63 bits", f"from={NOWHERE}:{2**63}", "invalid_cursor", "from"),
    query("time without an offset", "from=2026-01-01T00:00:00", "invalid_cursor", "from"),
    query("no cursor of an EventSource", "", "invalid_cursor", "from",
          headers={**SSE, "Last-Event-ID": "x"}),
    query("cursor of nowhere", f"from={NOWHERE}:1", "segment_mismatch", status=409),
    query("cursor of nowhere, to wait", f"from={NOWHERE}:1&timeout=60", "segment_mismatch",
          status=409),
    query("cursor of nowhere, backward", f"from={NOWHERE}:1&order=backward", "segment_mismatch",
          status=409),
    query("cursor of nowhere, as events", f"from={NOWHERE}:1", "segment_mismatch", status=409,
          headers=SSE),
    query("empty mask", "mask=", "invalid_mask", "mask"),
    query("mask of nothing", "mask=0", "invalid_mask", "mask"),
    query("mask beyond 64 bits", f"mask={2**64}", "invalid_mask", "mask"),
    query("mask and channels", "mask=1&channels=disk", "invalid_mask", "mask"),
    query("empty channel", "channels=disk,", "invalid_mask", "channels"),
    query("unknown channel", "channels=disk,tape", "unknown_channel", "mask"),
    query("empty domain", "domain=", "invalid_field", "domain"),
    query("long domain", "domain=" + "a" * 1_100, "field_too_long", "domain"),
    query("attributes that are no JSON", "attributes={", "malformed_json", "attributes"),
    query("attributes that are a list", "attributes=[]", "invalid_field", "attributes"),
    query("nested attributes", 'attributes={"a":{}}', "invalid_field", "attributes.a"),
    query("body", "body=x", "unknown_field", "body"),
    query("unknown language", "language=sql&filter=x", "unknown_language", "language"),
    query("filter without its language", "filter=x", "invalid_field", "language"),
    query("language without a filter", "language=ready", "missing_field", "filter"),
    query("filter that is none", "language=ready&filter=|", "filter_syntax", "filter"),
    query("filter of another language", "language=ready&filter=(exists+a)", "filter_syntax",
          "filter"),
    query("filter that is no JSON", "language=eventbridge&filter={", "malformed_json", "filter"),
    query("filter of a body", 'language=eventbridge&filter={"body":["x"]}', "body_not_filterable",
          "filter.body"),
    query("filter of a large number", f"language=eventbridge&filter={{\"time\":[{2**64}]}}",
          "number_out_of_range", "filter"),
    query("filter too large", "language=predicate&filter=" + "(" * 100, "filter_too_large",
          "filter", status=422),
    query("filter and pairs", "language=predicate&filter=true&type=x", "invalid_field", "type"),
    query("filter and registrations", "language=predicate&filter=true&registrations=1",
          "invalid_field", "registrations"),
    query("filter backward", "language=predicate&filter=(&order=backward", "filter_syntax",
          "filter"),
    query("registrations of nothing", "registrations=", "invalid_field", "registrations"),
    query("registrations and pairs", "registrations=1&type=x", "invalid_field", "registrations"),
    query("unknown registration", "registrations=999999999", "unknown_registration",
          "registrations", status=404),
    query("registrations backward", "registrations=1&order=backward", "invalid_field",
          "registrations"),
    query("timeout too long", "timeout=61", "invalid_field", "timeout"),
    query("negative timeout", "timeout=-1", "invalid_field", "timeout"),
    query("timeout that is no number", "timeout=nan", "invalid_field", "timeout"),
    query("timeout backward", "timeout=1&order=backward", "invalid_field", "timeout"),
    query("timeout of events", "timeout=1", "invalid_field", "timeout", headers=SSE),
    query("limit of nothing", "limit=0", "invalid_field", "limit"),
    query("limit too high", "limit=1001", "invalid_field", "limit"),
    query("limit that is no number", "limit=ten", "invalid_field", "limit"),
    query("no order", "order=sideways", "invalid_field", "order"),
    query("events backward", "order=backward", "invalid_field", "order", headers=SSE),
    query("state of a page", "state=always", "invalid_field", "state"),
    query("no state", "state=sometimes", "invalid_field", "state", headers=SSE),
    query("picture", "", "not_acceptable", "accept", status=406, headers={"Accept": "image/png"}),
    query("nothing acceptable", "", "not_acceptable", "accept", status=406,
          headers={"Accept": "application/json;q=0"}),
    query("no key", "", "unauthenticated", status=401, key=""),
    query("wrong key", "", "invalid_credentials", status=401, key="wrong"),
    query("revoked key", "", "invalid_credentials", status=401, key="revoked"),
    query("expired token", "", "token_expired", status=401, key="expired token"),
    query("key in the URL", "access_token=<keytext>", "invalid_credentials", status=401, key=""),
    query("a token and a key", "access_token=x", "invalid_field", "Authorization"),
    query("two tokens", "access_token=x&access_token=y", "invalid_field", "Authorization", key=""),
    query("no token in the URL", "access_token=x", "invalid_credentials", status=401, key=""),
    query("no grant", "", "forbidden", status=403, key="emitter"),
    query("another zone's stream", "", "unknown_stream", status=404, key="other"),
)  # fmt: skip
CASES = (
    *QUERIES,
    Bad("unknown stream", LISTEN, "/v1/streams/none/events", 404, "unknown_stream"),
    Bad("path that is no UTF-8", LISTEN, "/v1/streams/%ff/events", 400, "invalid_utf8",
        {"field": "path"}),
    Bad("gone", LISTEN, "/v1/streams/old/events?from=<dropped>:0", 410, "gap"),
    Bad("gone backward", LISTEN, "/v1/streams/old/events?from=<dropped>:0&order=backward", 410,
        "gap"),
    Bad("another method", LISTEN, PATH, 405, "method_not_allowed", method="DELETE"),
    Bad("no key", RAW, f"/v1/streams/orders/segments/{NOWHERE}/raw", 401, "unauthenticated",
        key=""),
    Bad("no grant", RAW, f"/v1/streams/orders/segments/{NOWHERE}/raw", 403, "forbidden",
        key="manager"),
    Bad("unknown stream", RAW, f"/v1/streams/none/segments/{NOWHERE}/raw", 404, "unknown_stream"),
    Bad("unknown segment", RAW, f"/v1/streams/orders/segments/{NOWHERE}/raw", 404,
        "unknown_segment", {"field": "segment"}),
    Bad("segment that is no UUID", RAW, "/v1/streams/orders/segments/x/raw", 404,
        "unknown_segment", {"field": "segment"}),
    Bad("segment still written", RAW, "/v1/streams/orders/segments/<open>/raw", 409,
        "segment_open", {"field": "segment"}),
    Bad("segment that is gone", RAW, "/v1/streams/old/segments/<dropped>/raw", 410, "gap",
        {"field": "segment"}),
    Bad("everybody's segments", RAW, f"/v1/streams/system/segments/{NOWHERE}/raw", 403,
        "forbidden"),
    Bad("picture", RAW, "/v1/streams/old/segments/<held>/raw", 406, "not_acceptable",
        {"field": "accept"}, headers={"Accept": "image/png"}),
    Bad("another method", RAW, f"/v1/streams/orders/segments/{NOWHERE}/raw", 405,
        "method_not_allowed", method="PUT"),
)  # fmt: skip


@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case.route} {case.name}")
def test_bad_request_of_a_listen_route(world: World, case: Bad) -> None:
    world.check(case)
