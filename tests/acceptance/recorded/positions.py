"""The position that an answer must have (EMC-09): the last event of the stream that the route is
about, read from the log when the answer is there. Nothing else is appended meanwhile.
"""

import re
from collections.abc import Iterator
from typing import Any, NamedTuple

from eventhub.access.grants import APPLICATIONS
from tests.acceptance.recorded.call import Call
from tests.live import Answer

SYSTEM = "system"
# Routes about the events of the stream in the path.
_OF_STREAM = re.compile(r"/v1/streams/([^/?]+)/(?:events|state|segments/[^/]+/raw)\b")
# ... and of the one in the query or the body; without one, they are about `system`.
_IN_QUERY = re.compile(r"/v1/registrations/[^/]+/explain\?.*\bstream=([^&]+)")
_OF_APPLICATIONS = re.compile(r"/v1/application(?:s|-groups)\b")  # about their stream
_IN_BODY = ("/v1/filters/dry-run", "/v1/filters/explain")
# The request is refused before the stream is looked up: these statuses always, those maybe.
_BEFORE_STREAM = frozenset({403, 405, 413})
_MAYBE_BEFORE_STREAM = frozenset({400, 415})
# The caller is not known: no valid credential, or a login without the proof that it sent this.
_CALLER_UNKNOWN = frozenset(
    {"unauthenticated", "invalid_credentials", "token_expired", "csrf_failed"}
)

_LOGINS = frozenset({"POST /v1/session", "POST /v1/session/setup"})


class Position(NamedTuple):
    """A position as headers give it; None: absent."""

    sequence: str | None
    segment: str | None


# The last events of `system` and of a stream, as all cursors that name them.
Heads = dict[str, list[Position]]


def fault_of(call: Call, answer: Answer, heads: Heads) -> str:
    """Describe what is wrong with the position of an answer; "" if nothing is."""
    headers = answer.headers
    found = Position(headers.get("eventhub-sequence"), headers.get("eventhub-segment"))
    expected = [*_expected(call, answer, heads)]
    return (
        ""
        if found in expected
        else f"{call.who} {call.line}: {answer.status} has {found}, not one of {expected}"
    )


def stream_of(line: str, body: Any) -> str:
    """Return the stream that a route is about."""
    found = _OF_STREAM.search(line) or _IN_QUERY.search(line)
    if found:
        return found[1]
    if line.partition("?")[0].endswith(_IN_BODY) and isinstance(body, dict):
        return str(body.get("stream", SYSTEM))
    return APPLICATIONS if _OF_APPLICATIONS.search(line) else SYSTEM


def _expected(call: Call, answer: Answer, heads: Heads) -> Iterator[Position]:
    if _caller_unknown(call, answer):
        yield Position(None, None)
        return
    name = stream_of(call.line, call.body)
    before = answer.status in _BEFORE_STREAM or name not in heads
    if not before:
        yield from heads[name]
    if before or answer.status in _MAYBE_BEFORE_STREAM or _of_registration(call, answer):
        yield from heads[SYSTEM]


def _of_registration(call: Call, answer: Answer) -> bool:
    """Return whether the registration may be unknown, whose stream is then not looked up."""
    return answer.status == 404 and _IN_QUERY.search(call.line) is not None


def _caller_unknown(call: Call, answer: Answer) -> bool:
    if call.who == "nobody" and "Cookie" not in call.headers:
        return not (call.line in _LOGINS and answer.status == 200)
    if call.line == "GET /v1/session":
        return False  # it refuses those who are known, but not by a login
    problem = answer.headers.get("content-type") == "application/problem+json" and answer.body
    return bool(problem) and answer.json["code"] in _CALLER_UNKNOWN
