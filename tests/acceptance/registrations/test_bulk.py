"""The bulk route: independent lines, answered while they are stored, and safe to repeat."""

import http.client
import json
from collections.abc import Iterable, Iterator
from typing import Any

from tests.live import LiveHub, LiveZone

PATH = "/v1/registrations/bulk"


class Bulk:
    """One request whose lines are sent, and whose answer is read, step by step."""

    def __init__(self, zone: LiveZone, *, key: str = "", query: str = "") -> None:
        self._connection = http.client.HTTPConnection(
            zone.hub.url.removeprefix("http://"), timeout=30
        )
        self._connection.putrequest("POST", f"{PATH}{query}")
        self._connection.putheader("Authorization", f"Bearer {key or zone.admin}")
        self._connection.putheader("Content-Type", "application/x-ndjson")
        self._connection.putheader("Transfer-Encoding", "chunked")
        self._connection.endheaders()
        self._response: http.client.HTTPResponse | None = None

    def send(self, *lines: dict[str, Any] | bytes) -> None:
        texts = [one if isinstance(one, bytes) else json.dumps(one).encode() for one in lines]
        data = b"".join(text + b"\n" for text in texts)
        self._connection.send(b"%x\r\n%b\r\n" % (len(data), data))

    def end(self) -> None:
        self._connection.send(b"0\r\n\r\n")

    def hear(self) -> dict[str, Any]:
        """Return the next line of the answer."""
        if self._response is None:
            self._response = self._connection.getresponse()
        assert self._response.status == 200, self._response.read()
        found: dict[str, Any] = json.loads(self._response.readline())
        return found

    def rest(self) -> list[dict[str, Any]]:
        self.end()
        found = [self.hear()]
        while not {"done", "error"} & found[-1].keys() or "line" in found[-1]:
            found.append(self.hear())
        return found

    def drop(self) -> None:
        self._connection.close()


def sent(zone: LiveZone, lines: Iterable[dict[str, Any]], query: str = "") -> list[dict[str, Any]]:
    """Return the whole answer to all of the lines."""
    body = b"".join(json.dumps(line).encode() + b"\n" for line in lines)
    answer = zone.hub.call("POST", f"{PATH}{query}", body, key=zone.admin,
                           headers={"Content-Type": "application/x-ndjson"})  # fmt: skip
    assert answer.status == 200, answer
    return [json.loads(line) for line in answer.body.splitlines()]


def listed(zone: LiveZone) -> dict[str, Any]:
    """Return the zone's registrations by key."""
    page = zone.hub.call("GET", "/v1/registrations?limit=1000", key=zone.admin).json
    return {item["key"]: item for item in page["items"]}


def creates(count: int) -> Iterator[dict[str, Any]]:
    for n in range(count):
        yield {"op": "create", "key": f"k{n}", "streams": ["orders"], "attributes": {"n": n}}


def test_lines_are_stored_and_answered_while_more_are_sent(hub: LiveHub, zone: LiveZone) -> None:
    zone.create_stream("orders")
    zone.create_stream("hidden")
    hub.call("POST", "/v1/registration-groups", {"name": "g"}, key=zone.admin)
    bulk = Bulk(zone, query="?ids=true")
    bulk.send(*creates(2), {"op": "create", "key": "bad", "streams": ["nowhere"]})
    refused, progress = bulk.hear(), bulk.hear()
    assert (refused["line"], refused["error"]["code"]) == (3, "unknown_stream")
    assert refused["error"]["position"] == {"field": "streams.0"}
    assert (progress["through"], progress["created"], progress["refused"]) == (3, 2, 1)
    assert [line for line, _ in progress["ids"]] == [1, 2]
    assert {item["id"] for item in listed(zone).values()} == {id for _, id in progress["ids"]}

    bulk.send(
        {"op": "change", "key": "k0", "attributes": {"n": "other"}, "group": "g"},
        {"op": "change", "key": "k0", "suspended": True},  # after the one before it
        {"op": "end", "id": progress["ids"][1][1]},
        b"",
        b"[1]",
        {"op": "mend"},
        {"op": "change", "key": "nobody", "suspended": True},
        {"op": "create", "key": "k0", "streams": ["orders"]},
        {"op": "create", "streams": ["orders"], "callback": "https://new.example/"},
        b'{"op": "end", "key": "' + b"x" * (1 << 20) + b'"}',
        {"op": "end", "key": "k0", "suspended": True},
        {"op": "create", "streams": ["orders"], "language": "predicate", "filter": "(= a"},
    )
    lines = bulk.rest()
    codes = {one["line"]: one["error"]["code"] for one in lines if "line" in one}
    assert codes == {8: "invalid_field", 9: "invalid_field", 10: "unknown_registration",
                     11: "key_taken", 12: "unknown_endpoint", 13: "body_too_large",
                     14: "unknown_field", 15: "filter_syntax"}  # fmt: skip
    assert lines[-1] == {"done": True, "through": 15, "created": 2, "changed": 2, "ended": 1,
                        "repeated": 0, "refused": 9}  # fmt: skip
    found = listed(zone)
    assert list(found) == ["k0"]
    shown = found["k0"]
    assert (shown["attributes"], shown["group"], shown["suspended"]) == ({"n": "other"}, "g", True)
    assert shown["version"] == 3
    sequences = [one["sequence"] for one in lines if one.get("sequence")]
    assert sequences == sorted(set(sequences))
    assert sequences[0] < shown["changed"] <= sequences[-1]


def test_a_creation_is_announced_like_a_single_one(hub: LiveHub, zone: LiveZone) -> None:
    zone.create_stream("orders")
    zone.create_stream("bills")
    hub.call("POST", "/v1/registration-groups", {"name": "g"}, key=zone.admin)
    all_of_it = {"streams": ["orders", "bills"], "key": "k", "suspended": True, "group": "g"}
    bodies: list[dict[str, Any]] = [all_of_it, {"streams": ["bills"]}]
    made = hub.call("POST", "/v1/registrations", bodies, key=zone.admin)
    first, last = map(int, made.headers["eventhub-caused"].split("-"))
    alone = [announced_at(zone, sequence) for sequence in range(first, last + 1)]
    sent(zone, [{"op": "end", "key": "k"}])

    creates = [{"op": "create", **one} for one in bodies]
    [progress, _] = sent(zone, creates, "?ids=true")
    last = progress["sequence"]
    bulk = [announced_at(zone, sequence) for sequence in range(last - 1, last + 1)]
    assert [one["registration"] for one in bulk] == [id for _, id in progress["ids"]]
    own = ("registration", "barrier", "by")
    assert [without(one, *own) for one in bulk] == [without(one, *own) for one in alone]
    assert bulk[0]["barrier"] == bulk[1]["barrier"] > alone[0]["barrier"]


def announced_at(zone: LiveZone, sequence: int) -> dict[str, Any]:
    """Return the attributes of a creation in `system`."""
    path = f"/v1/streams/system/events/{sequence}"
    event: dict[str, Any] = zone.hub.call("GET", path, key=zone.admin).json
    assert event["type"] == "registration.created"
    attributes: dict[str, Any] = event["attributes"]
    return attributes


def without(found: dict[str, Any], *names: str) -> dict[str, Any]:
    return {name: value for name, value in found.items() if name not in names}


def test_a_repeated_request_after_a_disconnect_creates_nothing_twice(
    hub: LiveHub, zone: LiveZone
) -> None:
    zone.create_stream("orders")
    lines = list(creates(2_500))
    bulk = Bulk(zone)
    bulk.send(*lines[:1_700])
    through = bulk.hear()["through"]
    assert through == 1_000
    bulk.drop()
    again = sent(zone, lines[through:])
    assert again[-1]["through"] == 1_500
    assert again[-1]["created"] + again[-1]["repeated"] == 1_500
    whole = sent(zone, [*lines, *({"op": "end", "key": line["key"]} for line in lines[:10])])
    assert (whole[-1]["repeated"], whole[-1]["ended"]) == (2_500, 10)
    ends = [{"op": "end", "key": f"k{n}"} for n in range(2_500)]
    assert sent(zone, ends)[-1]["ended"] == 2_490
    assert sent(zone, ends)[-1]["repeated"] == 2_500
    assert listed(zone) == {}
    owners = "registration_owners o JOIN clients c ON c.id = o.client_id"
    of_zone = (
        f"SELECT o.registrations FROM {owners} JOIN zones z ON z.id = c.zone_id WHERE z.name = %s"
    )
    assert hub.sql(of_zone, zone.name) == [(0,)]


def test_lines_that_arrive_together_are_stored_together(zone: LiveZone) -> None:
    """Each batch is one transaction. What this makes in time, `make bench ARGS=churn` measures."""
    zone.create_stream("orders")
    count = 1_500
    changes = ({"op": "change", "key": f"k{n}", "attributes": {"n": -n - 1}} for n in range(count))
    for lines, counted in ((creates(count), "created"), (changes, "changed")):
        *batches, last = sent(zone, lines)
        assert last.get(counted) == count, last
        assert len(batches) <= count // 100, batches


def test_an_unauthorized_caller_is_refused_before_a_line_is_read(
    hub: LiveHub, zone: LiveZone
) -> None:
    zone.create_stream("orders")
    headers = {"Content-Type": "application/x-ndjson"}

    def ask(query: str = "", key: str = zone.admin, **more: str) -> Any:
        return hub.call("POST", PATH + query, b"{}\n", key=key, headers={**headers, **more})

    ask(key="").refused(401, "unauthenticated")
    ask(key=zone.token()).refused(401, "invalid_credentials")
    ask("?x=1").refused(400, "unknown_field")
    ask("?ids=yes").refused(400, "invalid_field")
    ask("?client=nobody").refused(404, "not_found")
    ask(**{"Content-Type": "application/json"}).refused(415, "unsupported_media_type")
    own = zone.key("listen:orders", client="shop")
    ask("?client=tester", key=own).refused(403, "forbidden")
    hub.call("GET", PATH, key=zone.admin).refused(405, "method_not_allowed")
    theirs = [{"op": "create", "key": "k", "streams": ["orders"]}]
    assert sent(zone, theirs, "?client=shop")[-1]["created"] == 1
    body = json.dumps({"op": "end", "key": "k"}).encode()
    lines = hub.call("POST", PATH, body, key=own, headers=headers).body.splitlines()
    assert json.loads(lines[-1])["ended"] == 1
