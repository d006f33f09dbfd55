"""The hub on which the calls are made: two zones, keys of all kinds, and the marks so far."""

import json
import re
from collections.abc import Iterable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any
from urllib.parse import quote

import psycopg

from tests.acceptance.documented import undocumented
from tests.acceptance.recorded.call import Call
from tests.acceptance.recorded.placeholders import Placeholders
from tests.acceptance.recorded.positions import Heads, Position, fault_of, stream_of
from tests.live import Answer, LiveHub

_MARK = re.compile(r"<[a-z0-9_]+>")
_HEADERS_LEFT_OUT = {
    *("connection", "content-length", "date", "server", "transfer-encoding", "x-request-id"),
}
_USUAL_HEADERS = {  # of every answer; recorded where they are others, or missing
    "cross-origin-opener-policy": "same-origin",
    "referrer-policy": "same-origin",
    "x-content-type-options": "nosniff",
    "vary": "Authorization, Cookie",
    "x-frame-options": "DENY",
}
_SENT_CHARS_MAX = 100
# Of `system` and one stream. The last event is in its own segment, and at the end before the first
# of a new one.
_HEADS = (
    "SELECT s.name, h.sequence::text, g.uuid::text FROM streams s"
    " LEFT JOIN heads h ON h.stream_id = s.id LEFT JOIN zones z ON z.id = s.zone_id"
    " LEFT JOIN segments g ON g.stream_id = s.id"
    " AND h.sequence BETWEEN g.first - 1 AND COALESCE(g.last, h.sequence)"
    " WHERE z.name = %s AND s.name = %s OR s.id = 1"
)


class Stage:
    """Makes calls and records their answers. `keys`: the credential of each caller."""

    def __init__(self, hub: LiveHub) -> None:
        self.hub = hub
        zone, other = hub.new_zone(), hub.new_zone()
        soon = "2099-01-01T00:00:00Z"
        self.keys = {
            "nobody": "",
            "admin": zone.admin,
            "emitter": zone.key("emit:orders"),
            "listener": zone.key("listen:orders"),
            "manager": zone.key("manage:orders"),
            "powerless": zone.key(),
            "ending": zone.key("manage:*", expires_at=soon),
            "peer": zone.key("emit:*", "listen:*", client="peer"),
            "stranger": other.admin,
            "revoked": zone.key("manage:*", client="gone"),
            "expired": zone.key("manage:*", client="gone", expires_at=soon),
            "token": zone.token(),
            "wrong": "ehk_aaaaaaaaaaaa_" + "A" * 43,
            "garbage": "open sesame",
        }
        zone.revoke(self.keys["revoked"])
        expire = "UPDATE api_keys SET expires_at = now() - interval '1 hour' WHERE public_id = %s"
        hub.sql(expire, _public_id(self.keys["expired"]))
        self.marks: dict[str, Any] = {
            "<zone>": zone.name,
            "<other>": other.name,
            "<password>": hub.password,
            "<adminkey>": _public_id(zone.admin),
            "<farkey>": _public_id(other.admin),
            "<revokedkey>": _public_id(self.keys["revoked"]),
        }
        self.undocumented: list[str] = []  # in the answers so far
        self.misplaced: list[str] = []  # answers without the position that they must have
        self._zones = {"stranger": other.name, "operator": "default"}
        self._placeholders = Placeholders(self.keys.values())
        self._log = psycopg.connect(hub.database_url, autocommit=True)

    def close(self) -> None:
        self._log.close()

    def record(self, calls: Iterable[Call]) -> Iterator[dict[str, Any]]:
        """Make the calls one after the other, and give the record of each."""
        number = 0
        for call in calls:
            if call.who == "sql":
                self.hub.sql(str(self._filled(call.line)).replace("%", "%%"))
            elif call.who == "file":
                self._write(call)
            else:
                number += 1
                answer = self._checked(call)
                self.undocumented += undocumented(call.line, answer)
                kept = self._keep(call, answer)
                found = self._placeholders.replaced(shown(answer), call.measured)
                yield {"number": number, **_sent(call), **found, **kept}

    def _send(self, call: Call) -> Answer:
        method, path = call.line.split(" ", 1)
        headers, key = dict(call.headers), ""
        if call.who == "operator":
            headers = {**self.hub.operator(), **headers}
        else:
            key = self.keys[call.who]
        filled = {name: str(self._filled(value)) for name, value in headers.items()}
        path, body = str(self._filled(path)), self._filled(call.body)
        return self.hub.call(method, quote(path, safe="/?&=%:,"), body, key=key, headers=filled)

    def _checked(self, call: Call) -> Answer:
        """Send a call and check the position in its answer."""
        asked = call._replace(line=str(self._filled(call.line)), body=self._filled(call.body))
        zone = self._zones.get(call.who, str(self.marks["<zone>"]))
        if "zone=" in asked.line:
            zone = asked.line.rpartition("zone=")[2].partition("&")[0]
        about = stream_of(asked.line, asked.body)
        in_between = "/bulk" in call.line  # it answers while it changes
        before = self._heads(zone, about) if in_between else None
        answer = self._send(call)
        if fault := fault_of(asked, answer, before or self._heads(zone, about)):
            self.misplaced.append(fault)
        return answer

    def _heads(self, zone: str, about: str) -> Heads:
        """Return the last events of `system`, and of the stream of a name."""
        found: Heads = {}
        for name, *position in self._log.execute(_HEADS, (zone, about)).fetchall():
            found.setdefault(name, []).append(Position(*position))
        for name in (name for name, [head, *_] in found.items() if head.segment is None):
            shown = self.hub.call("GET", f"/v1/streams/{name}", key=self.keys["admin"]).json
            found[name] = [Position(str(shown["last"]), shown["segment"]["uuid"])]  # transient
        return found

    def _filled(self, value: Any) -> Any:
        """Return a value with its marks replaced; a text that is only a mark becomes the mark's
        value.
        """
        if isinstance(value, dict):
            return {name: self._filled(one) for name, one in value.items()}
        if isinstance(value, list):
            return [self._filled(one) for one in value]
        if not isinstance(value, str):
            return value
        if value in self.marks:
            return self.marks[value]
        return _MARK.sub(lambda found: str(self.marks.get(found[0], found[0])), value)

    def _keep(self, call: Call, answer: Answer) -> dict[str, Any]:
        """Set the call's marks. The places that its answer does not have are recorded."""
        missing = []
        for mark, place in call.keep.items():
            found = _cookies(answer) if place == "Set-Cookie" else answer.headers.get(place.lower())
            self.marks[mark] = found or _at(answer, place)
            if self.marks[mark] is None:
                missing.append(place)
        return {"missing": missing} if missing else {}

    def _write(self, call: Call) -> None:
        path = Path(self.hub.env["EVENTHUB_DATA"]) / str(self._filled(call.line))
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(call.body)


def shown(answer: Answer) -> dict[str, Any]:
    """Return the status, headers and body of an answer, as they came."""
    given: dict[str, str | None] = {**dict.fromkeys(_USUAL_HEADERS), **answer.headers}
    headers = {
        name: value
        for name, value in sorted(given.items())
        if name not in _HEADERS_LEFT_OUT and value != _USUAL_HEADERS.get(name, "")
    }
    body: Any = answer.body.decode("utf-8", "backslashreplace")
    if answer.headers.get("content-type") == "application/x-protobuf":
        body = "<bytes>"  # numbers in them differ in length
    with suppress(ValueError):
        if answer.headers.get("content-type") == "application/x-ndjson":
            body = [json.loads(line) for line in answer.body.splitlines()]
        else:
            body = answer.json if body else ""
    return {"status": answer.status, "headers": headers, "body": body}


def _public_id(key: str) -> str:
    return key.split("_")[1]


def _cookies(answer: Answer) -> str:
    """Return the cookies that an answer sets, as a request sends them."""
    given = answer.headers.get("set-cookie", "").splitlines()
    return "; ".join(cookie.partition(";")[0] for cookie in given)


def _at(answer: Answer, place: str) -> Any:
    """Return the value at a path into the body; None if it has none."""
    try:
        body = answer.json
        for step in place.split("."):
            body = body[int(step)] if isinstance(body, list) else body[step]
    except (ValueError, LookupError):
        return None
    return body


def _sent(call: Call) -> dict[str, Any]:
    """Return the request with its marks, for readers of a recording."""
    found: dict[str, Any] = {"who": call.who, "line": call.line}
    if call.headers:
        found["with"] = call.headers
    if call.body is not None:
        found["sent"] = cut(call.body)
    return found


def cut(value: Any) -> Any:
    """Return the request body with long texts and lists cut short."""
    if isinstance(value, bytes):
        return cut(value.decode("utf-8", "backslashreplace"))
    if isinstance(value, dict):
        return {name: cut(one) for name, one in value.items()}
    if isinstance(value, list):
        shown = [cut(one) for one in value[:3]]
        return shown if len(value) < 4 else [*shown, f"... {len(value)} items"]
    if isinstance(value, str) and len(value) > _SENT_CHARS_MAX:
        return f"{value[:20]}... {len(value)} characters"
    return value
