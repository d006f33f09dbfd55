"""Cases of patterns: what each gives its owner for some events, in a domain of its own; requests
about patterns.
"""

from typing import Any, NamedTuple

from tests.acceptance.eventhub.eventlog.test_retention import wait_for
from tests.live import LiveZone

SEQUENCE = "{v[2..4]: D::A} && {b: D::B}"
THREE = (
    "(event (time ?t1) (userid ?u1) (@domain 'D)) (event (time ?t2) (userid ?u2) (@domain 'D))"
    " (event (time ?t3) (userid ?u3) (@domain 'D))"
    " (test (< ?t1 ?t2 ?t3)) (test (eq ?u1 ?u2 ?u3))"
)
COUNTING = (
    "(on (and (= type 'error) (= @domain 'D)))"
    " (when (= (length (recent 10 (and (= type 'error) (= @domain 'D)))) 3)"
    ' (announce "D::three" (object \'errors 3)))'
)


class Case(NamedTuple):
    """A pattern, in which D is the domain of the case, the events, and what comes out: for a match
    the numbers of the events that each variable is bound to, for another output its type and its
    attributes. `events`: `A`, or `A(x=1,u=v)`; numbers count from 1.
    """

    requirement: str
    text: str
    events: str
    outputs: list[Any]
    language: str = "ready"


CASES = (
    Case("RDY-20", "{a: D::A} && {b: D::B}", "B A", [{"a": [2], "b": [1]}]),
    Case("RDY-20", "{a: D::A} && {b: D::B}", "A", []),
    Case("RDY-21", "{a: D::A} || {b: D::B}", "B", [{"b": [1]}]),
    Case("RDY-22", "{a: D::A}; {b: D::B}", "B A", []),
    Case("RDY-22", "{a: D::A}; {b: D::B}", "B A B", [{"a": [2], "b": [3]}]),
    Case("RDY-23", "{a: D::A} butnot {b: D::B}", "A", [{"a": [1]}]),
    Case("RDY-23", "{a: D::A} butnot {b: D::B}", "B A", []),
    Case(
        "RDY-24",
        "({a: D::A} && {b: D::B}); ({c: D::C} butnot {d: D::D})",
        "D A B C",
        [{"a": [2], "b": [3], "c": [4]}],
    ),
    Case("RDY-24", "({a: D::A} && {b: D::B}); ({c: D::C} butnot {d: D::D})", "A B D C", []),
    Case("RDY-26", "{v[2..4]: D::A}", "A A A", [{"v": [1, 2]}]),
    Case("RDY-27", SEQUENCE, "A A A B", [{"v": [1, 2, 3], "b": [4]}]),
    Case("RDY-27", SEQUENCE, "A A A A A A B", [{"v": [1, 2, 3, 4], "b": [7]}]),
    Case("RDY-27", SEQUENCE, "A B", []),
    Case("RDY-28", "({a: D::A} && {b: D::B}) where a.u == b.u", "A(u=1) B(u=2)", []),
    Case(
        "RDY-28",
        "({a: D::A} && {b: D::B}) where a.u == b.u",
        "A(u=1) B(u=1)",
        [{"a": [1], "b": [2]}],
    ),
    Case(
        "RDY-29",
        "{v[3..3]: D::A} where span(v.Priority) < 5",
        "A(Priority=2) A(Priority=4) A(Priority=6)",
        [{"v": [1, 2, 3]}],
    ),
    Case(
        "RDY-29",
        "{v[3..3]: D::A} where span(v.Priority) < 5",
        "A(Priority=1) A(Priority=4) A(Priority=6)",
        [],
    ),
    Case("RDY-30", "({a: D::A} do notify(a)); {b: D::B}", "A", [{"a": [1]}]),
    Case(
        "RDY-31",
        "{v[3..3]: D::Alarm} do assign s = D::summary{count = count(v), max = max(v.x)}, notify(s)",
        "Alarm(x=3) Alarm(x=8) Alarm(x=5)",
        [("summary", {"count": 3, "max": 8})],
    ),
    Case(
        "RDY-34",
        "{a: D::A} do increment n by a.x, announce(D::total, {n = counter(n)}) into 'out'",
        "A(x=2) A(x=3)",
        [("total", {"n": 2}), ("total", {"n": 5})],
    ),
    Case(
        "OIF-20",
        THREE,
        "E(time=1,userid=u) E(time=1,userid=u) E(time=2,userid=u)",
        [],
        "temporal",
    ),
    Case(
        "OIF-21",
        THREE,
        "E(time=1,userid=u) E(time=2,userid=v) E(time=3,userid=u) E(time=4,userid=u)",
        [{"$1": [1], "$2": [3], "$3": [4]}],
        "temporal",
    ),
    Case(
        "OIF-21",
        THREE,
        "E(time=3,userid=u) E(time=1,userid=u) E(time=4,userid=u)",
        [{"$1": [2], "$2": [1], "$3": [3]}],
        "temporal",
    ),
    Case(
        "OIF-21",
        THREE,
        "E(time=9:05:00,userid=u) E(time=12:40:18,userid=u) E(time=9:30:00,userid=u)"
        " E(time=13:00:00,userid=u)",
        [
            {"$1": [1], "$2": [3], "$3": [2]},
            {"$1": [1], "$2": [2], "$3": [4]},
            {"$1": [1], "$2": [3], "$3": [4]},
            {"$1": [3], "$2": [2], "$3": [4]},
        ],
        "temporal",
    ),
    Case(
        "OIF-23",
        COUNTING,
        "E(type=error) E(type=info) E(type=error) E(type=error)",
        [("three", {"errors": 3})],
        "agent",
    ),
)


def domain(number: int) -> str:
    return f"case{number}"


def events_of(case: Case, number: int) -> list[dict[str, Any]]:
    found = []
    for word in case.events.split():
        type, _, rest = word.partition("(")
        attributes: dict[str, Any] = {}
        for pair in filter(None, rest.rstrip(")").split(",")):
            name, value = pair.split("=")
            attributes[name] = int(value) if value.isdigit() else value
        found.append({"domain": domain(number), "type": type, "attributes": attributes})
    return found


def text_of(case: Case, number: int) -> str:
    own = domain(number)
    return case.text.replace("D::", f"{own}::").replace("'D)", f"'{own})")


def post(zone: LiveZone, path: str, body: Any) -> Any:
    answer = zone.hub.call("POST", path, body, key=zone.admin)
    assert answer.status == 201, answer
    return answer.json


def outputs_in(zone: LiveZone, stream: str) -> list[dict[str, Any]]:
    """Return the events of a stream that its owner sees."""
    page = zone.hub.call(
        "GET", f"/v1/streams/{stream}/events?from=oldest&limit=1000", key=zone.admin
    )
    assert page.status == 200, page
    found: list[dict[str, Any]] = [one["event"] for one in page.json["events"]]
    return found


def run_to_end(zone: LiveZone, into: str, stream: str = "in") -> list[dict[str, Any]]:
    """Emit a last event, and return the outputs up to the match of it."""
    zone.emit(stream, {"domain": "test", "type": "last"})
    wait_for(
        lambda: any(one["attributes"].get("name") == "last" for one in outputs_in(zone, into)),
        "the last match",
    )
    return outputs_in(zone, into)
