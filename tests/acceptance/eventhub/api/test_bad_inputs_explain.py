"""Bad input of the routes that read the log (dry runs, registrations that an event matched) and of
those that explain. Common refusals of all routes are tested with the management API.
"""

from typing import Any

import pytest

from eventhub.base import limits
from tests.acceptance.bad_inputs import Bad, World

pytestmark = pytest.mark.usefixtures("untouched")
DRY_RUN = "POST /v1/filters/dry-run"
EXPLAIN = "POST /v1/filters/explain"
ONE = "GET /v1/registrations/{registration}/explain"
MATCHES = "GET /v1/streams/{stream}/events/{sequence}/matches"
NOWHERE = "00000000-0000-4000-8000-00000000dead"


def bad(name: str, route: str, path: str, outcome: str, at: str = "", **more: Any) -> Bad:
    status, code = outcome.split()
    return Bad(name, route, path, int(status), code, {"field": at} if at else {}, **more)


def run(name: str, outcome: str, at: str, *, key: str = "admin", **fields: Any) -> Bad:
    body = {"stream": "orders", **fields}
    return bad(name, DRY_RUN, "/v1/filters/dry-run", outcome, at, body=body, key=key)


def raw(name: str, outcome: str, at: str, body: Any, **more: Any) -> Bad:
    return bad(name, DRY_RUN, "/v1/filters/dry-run", outcome, at, body=body, **more)


def explain(name: str, outcome: str, at: str, **fields: Any) -> Bad:
    return bad(name, EXPLAIN, "/v1/filters/explain", outcome, at, body=fields)


def one(name: str, outcome: str, at: str, query: str, whose: str = "<registration>") -> Bad:
    return bad(name, ONE, f"/v1/registrations/{whose}/explain{query}", outcome, at)


def of_event(name: str, outcome: str, at: str, path: str, *, key: str = "admin") -> Bad:
    return bad(name, MATCHES, f"/v1/streams/{path}/matches", outcome, at, key=key)


RUNS = (
    raw("no JSON", "400 malformed_json", "", b"{"),
    raw("an array", "400 invalid_field", "", []),
    raw("deep", "400 too_deep", "a", b'{"a": ' + b"[" * 100_000),
    raw("too large", "413 body_too_large", "", b" " * (limits.MANAGE_BODY_BYTES_MAX + 1)),
    raw("a form", "415 unsupported_media_type", "", b"a=1", headers={"Content-Type": "text/plain"}),
    raw("no key", "401 unauthenticated", "", {}, key=""),
    raw("revoked key", "401 invalid_credentials", "", {}, key="revoked"),
    raw("expired token", "401 token_expired", "", {}, key="expired token"),
    raw("no stream", "400 missing_field", "stream", {"type": "a"}),
    run("stream a number", "400 invalid_field", "stream", stream=7),
    run("stream no name", "400 invalid_name", "stream", stream="a b"),
    run("no such stream", "404 unknown_stream", "", stream="nowhere"),
    run("another zone's stream", "404 unknown_stream", "", stream="theirs"),
    run("no grant", "403 forbidden", "", stream="secret", key="listener"),
    run("an emitter", "403 forbidden", "", key="emitter"),
    run("unknown field", "400 unknown_field", "surprise", surprise=1),
    run("unknown language", "400 unknown_language", "language", language="sql", filter="x"),
    run("a filter that is none", "400 filter_syntax", "filter", language="ready", filter="|"),
    run("a filter too large", "422 filter_too_large", "filter", language="predicate",
        filter=f"(= a '{'x' * 20_000})"),
    run("nested pair", "400 invalid_field", "attributes.a", attributes={"a": []}),
    run("last a text", "400 invalid_field", "last", last="10"),
    run("last true", "400 invalid_field", "last", last=True),
    run("last too many", "400 invalid_field", "last", last=limits.DRY_RUN_EVENTS_MAX + 1),
    run("samples too many", "400 invalid_field", "samples", samples=11),
    run("last and from", "400 invalid_field", "last", last=5, **{"from": "oldest"}),
    run("to alone", "400 missing_field", "from", to="2026-01-01T00:00:00Z"),
    run("from a number", "400 invalid_field", "from", **{"from": 5}),
    run("no start", "400 invalid_cursor", "from", **{"from": "yesterday"}),
    run("no end", "400 invalid_cursor", "to", **{"from": "oldest", "to": "tomorrow"}),
    run("to a word", "400 invalid_field", "to", **{"from": "oldest", "to": "now"}),
    run("cursor of nowhere", "409 segment_mismatch", "", **{"from": f"{NOWHERE}:1"}),
    run("mask of nothing", "400 invalid_mask", "mask", mask=0),
    run("mask a list", "400 invalid_mask", "mask", mask=[1]),
    run("channels empty", "400 invalid_mask", "channels", channels=[]),
    run("unknown channel", "400 unknown_channel", "channels", channels=["tape"]),
)  # fmt: skip
EXPLAINED = (
    explain("no event", "400 missing_field", "stream", type="a"),
    explain("no sequence", "400 missing_field", "sequence", stream="orders"),
    explain("sequence a text", "400 invalid_field", "sequence", stream="orders", sequence="1"),
    explain("no such event", "404 unknown_event", "", stream="orders", sequence=10**15),
    explain("dropped", "410 gap", "", stream="old", sequence=1),
    explain("both", "400 invalid_field", "event", stream="orders", event={}),
    explain("event a list", "400 invalid_field", "event", event=[]),
    explain("event without a type", "400 missing_field", "event.type", event={"domain": "d"}),
    explain("event with what is unknown", "400 unknown_field", "event.colour",
            event={"domain": "d", "type": "t", "colour": 1}),
    explain("unknown channel", "400 unknown_channel", "channels", channels=["tape"],
            stream="orders", sequence=1),
    explain("mask of nothing", "400 invalid_mask", "mask", mask="0"),
    explain("body", "400 unknown_field", "body", body={"a": 1}),
    explain("a bad pattern", "400 invalid_field", "filter.detail.a", language="eventbridge",
            filter={"detail": {"a": "b"}}),
    one("no stream", "400 missing_field", "stream", "?sequence=1"),
    one("no sequence", "400 missing_field", "sequence", "?stream=orders"),
    one("stream no name", "400 invalid_name", "stream", "?stream=%00&sequence=1"),
    one("sequence a word", "404 unknown_event", "sequence", "?stream=orders&sequence=one"),
    one("no such event", "404 unknown_event", "", f"?stream=orders&sequence={10**15}"),
    one("a stream it does not name", "400 invalid_field", "stream", "?stream=old&sequence=3"),
    one("another zone's", "404 unknown_registration", "registration",
        "?stream=orders&sequence=1", "<farregistration>"),
)  # fmt: skip
OF_EVENTS = (
    of_event("no such event", "404 unknown_event", "", "orders/events/999999"),
    of_event("zero", "404 unknown_event", "", "orders/events/0"),
    of_event("a word", "404 unknown_event", "", "orders/events/one"),
    of_event("a long number", "404 unknown_event", "", f"orders/events/{'9' * 30}"),
    of_event("dropped", "410 gap", "", "old/events/1"),
    of_event("no such stream", "404 unknown_stream", "", "nowhere/events/1"),
    of_event("no UTF-8", "400 invalid_utf8", "path", "%ff/events/1"),
    of_event("no grant", "403 forbidden", "", "secret/events/1", key="listener"),
    of_event("no key", "401 unauthenticated", "", "orders/events/1", key=""),
    *(bad(f"query {query}", MATCHES, f"/v1/streams/orders/events/1/matches?{query}", outcome, at)
      for query, outcome, at in (("after=x", "400 invalid_field", "after"),
                                 ("before=1", "400 unknown_field", "before"))),
)  # fmt: skip
CASES = (*RUNS, *EXPLAINED, *OF_EVENTS)


@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case.route} {case.name}")
def test_bad_request_to_understand_is_refused_with_its_place(world: World, case: Bad) -> None:
    world.check(case)
