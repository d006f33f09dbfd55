"""The cost budget of a client's filters on a stream holds for every way to register: create,
change, resume, in bulk, concurrently; and so does the budget of one socket's filters.
"""

import json
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from eventhub.base import limits
from tests.acceptance.wire import session
from tests.live import Answer, LiveZone

MOST = limits.FILTERS_TRIED_MAX
QUARTER = MOST // 4
CODE = "filters_too_costly"


def expensive(number: int, cost: int = QUARTER) -> dict[str, Any]:
    """Return a filter of the given cost; each number gives a different filter."""
    parts = "*".join("ab"[n % 2] for n in range(cost - 1))
    return {"language": "predicate", "filter": f'(wildcard note "*{parts}*{number}*")'}


def interest(number: int, **more: Any) -> dict[str, Any]:
    return {"streams": ["orders"], **expensive(number), **more}


def call(zone: LiveZone, method: str, path: str, body: Any = None, web: int = 0) -> Answer:
    url = zone.hub.web[web].url
    return zone.hub.call(method, f"/v1/registrations{path}", body, key=zone.admin, url=url)


def bulk(zone: LiveZone, *lines: dict[str, Any]) -> tuple[list[dict[str, Any]], dict[str, Any]]:
    """Return the refused lines and the last line of the answer."""
    body = b"".join(json.dumps(line).encode() + b"\n" for line in lines)
    headers = {"Content-Type": "application/x-ndjson"}
    path = "/v1/registrations/bulk"
    answer = zone.hub.call("POST", path, body, key=zone.admin, headers=headers)
    assert answer.status == 200, answer
    *reported, done = [json.loads(line) for line in answer.body.splitlines()]
    return [one for one in reported if "error" in one], done


def full(zone: LiveZone) -> list[int]:
    """Use up the client's budget on `orders` with four filters; return their ids."""
    for stream in ("orders", "others"):
        zone.create_stream(stream)
    created = zone.register(*(interest(n) for n in range(4)))
    assert [one["cost"]["every_event_cost"] for one in created] == [QUARTER] * 4
    return [one["id"] for one in created]


def test_a_filter_above_the_budget_is_refused_with_the_used_budget_and_advice(
    zone: LiveZone,
) -> None:
    full(zone)
    cheap = {"language": "predicate", "filter": '(and (prefix note "a") (wildcard note "*b*"))'}
    items = [interest(1, **cheap), interest(5, filter='(wildcard note "*b*")')]
    refused = call(zone, "POST", "", items).refused(409, CODE)
    assert refused["position"] == {"index": 1, "field": "filter"}
    reported = {"cost": 1, "used": MOST, "cost_max": MOST, "stream": "orders"}
    assert reported.items() <= refused.items()
    assert "Add an attribute's value, prefix or" in refused["detail"]
    several = call(zone, "POST", "", interest(5, streams=["others", "orders"]))
    several.refused(409, CODE)
    [found] = zone.register(items[0])
    assert found["cost"]["every_event_cost"] == 0, "a cheap filter never counts"
    zone.register(interest(5, streams=["others"]))
    other = zone.key("listen:*", client="another")
    zone.register(interest(5), key=other)


def test_the_filters_of_one_request_are_bounded_together(zone: LiveZone) -> None:
    zone.create_stream("orders")
    refused = call(zone, "POST", "", [interest(n) for n in range(5)]).refused(409, CODE)
    assert refused["position"]["index"] == 4
    assert call(zone, "GET", "").json["items"] == []


def test_a_change_is_bounded_by_the_cost_that_it_adds(zone: LiveZone) -> None:
    first, *_ = full(zone)
    [elsewhere] = zone.register(interest(5, streams=["others"]))
    [cheap] = zone.register({"streams": ["orders"], "domain": "shop"})
    call(zone, "PATCH", f"/{elsewhere['id']}", {"streams": ["orders"]}).refused(409, CODE)
    call(zone, "PATCH", f"/{cheap['id']}", expensive(5)).refused(409, CODE)
    call(zone, "PATCH", f"/{first}", expensive(0, QUARTER + 1)).refused(409, CODE)
    assert call(zone, "PATCH", f"/{first}", expensive(6)).status == 200, "as much as before"
    assert call(zone, "PATCH", f"/{first}", expensive(0, QUARTER - 1)).status == 200
    assert call(zone, "PATCH", f"/{cheap['id']}", expensive(5, 1)).status == 200, (
        "the rest of the budget"
    )
    call(zone, "PATCH", f"/{cheap['id']}", expensive(5, 2)).refused(409, CODE)


def test_a_suspended_filter_counts_from_its_resumption_on(zone: LiveZone) -> None:
    first, *_ = full(zone)
    [asleep] = zone.register(interest(5, suspended=True))
    path = f"/{asleep['id']}"
    call(zone, "PATCH", path, {"suspended": False}).refused(409, CODE)
    assert call(zone, "PATCH", f"/{first}", {"suspended": True}).status == 200
    assert call(zone, "PATCH", path, {"suspended": False}).status == 200
    call(zone, "PATCH", f"/{first}", {"suspended": False}).refused(409, CODE)
    assert call(zone, "DELETE", path).status == 204
    assert call(zone, "PATCH", f"/{first}", {"suspended": False}).status == 200


def test_the_matching_strategy_of_the_stream_decides_which_filters_count(zone: LiveZone) -> None:
    """A range is found by an index; without one it is tried for every event."""
    ranged = {"language": "predicate", "filter": "(> load 5)", "streams": ["orders", "others"]}
    zone.create_stream("orders")
    zone.create_stream("others", matching="access")
    zone.register(ranged)
    for stream in ("orders", "others"):
        zone.register(*(interest(n, streams=[stream]) for n in range(3)))
    assert call(zone, "POST", "", interest(3)).status == 201
    refused = call(zone, "POST", "", interest(3, streams=["others"])).refused(409, CODE)
    assert (refused["used"], refused["stream"]) == (3 * QUARTER + 1, "others")


def test_a_deleted_client_leaves_no_rows(zone: LiveZone) -> None:
    full(zone)
    rows = "SELECT count(*) FROM expensive_filters d JOIN clients c ON c.id = d.client_id"
    rows += " JOIN zones z ON z.id = c.zone_id WHERE z.name = %s"
    assert zone.hub.sql(rows, zone.name) == [(4,)]
    assert zone.hub.operate("DELETE", f"/v1/clients/tester?zone={zone.name}").status == 204
    assert zone.hub.sql(rows, zone.name) == [(0,)]


def test_a_bulk_line_uses_the_budget_that_earlier_lines_left(
    zone: LiveZone,
) -> None:
    first, second, *_ = full(zone)
    [cheap] = zone.register({"streams": ["orders"], "domain": "shop"})
    refused, done = bulk(
        zone,
        {"op": "create", **interest(5)},
        {"op": "change", "id": cheap["id"], **expensive(6)},
        {"op": "end", "id": first},
        {"op": "create", **interest(7)},
        {"op": "change", "id": second, **expensive(1, QUARTER - 9)},
        {"op": "change", "id": cheap["id"], **expensive(8, 10)},
        {"op": "create", "streams": ["orders"], **expensive(9, 9)},
        {"op": "create", "streams": ["orders"], "attributes": {"a": 1}},
    )
    assert [(one["line"], one["error"]["code"]) for one in refused] == [(1, CODE), (2, CODE),
                                                                        (6, CODE)]  # fmt: skip
    assert refused[2]["error"]["used"] == MOST - 9
    assert (done["created"], done["changed"], done["ended"]) == (3, 1, 1)
    call(zone, "POST", "", interest(10, **expensive(10, 1))).refused(409, CODE)


def test_concurrent_registrations_do_not_exceed_the_budget(zone: LiveZone) -> None:
    """Created, changed and resumed in two processes; without a lock each saw budget for itself."""
    zone.create_stream("orders")
    cheap = [one["id"] for one in zone.register(*([{"streams": ["orders"], "domain": "d"}] * 6))]
    asleep = [one["id"] for one in zone.register(*(interest(n, suspended=True) for n in range(6)))]
    jobs = [("POST", "", interest(10 + n)) for n in range(6)]
    jobs += [("PATCH", f"/{id}", expensive(20 + n)) for n, id in enumerate(cheap)]
    jobs += [("PATCH", f"/{id}", {"suspended": False}) for id in asleep]
    with ThreadPoolExecutor(len(jobs)) as pool:
        answers = [pool.submit(call, zone, *job, at % 2) for at, job in enumerate(jobs)]
        found = sorted(one.result().status for one in answers)
    assert found.count(409) == len(jobs) - 4, found
    assert set(found) <= {200, 201, 409}
    items = call(zone, "GET", "?limit=1000").json["items"]
    live = [one["cost"]["every_event_cost"] for one in items if not one["suspended"]]
    assert sum(live) == MOST


async def test_the_filters_of_one_socket_are_bounded_together(zone: LiveZone) -> None:
    zone.create_stream("orders")
    async with session(zone.hub, zone.admin) as reader:
        for n in range(4):
            await reader.listen("orders", name=f"l{n}", **expensive(n))
        refused = await reader.ask("orders", name="more", **expensive(5, 1))
        assert (refused["op"], refused["code"], refused["listener"]) == ("error", CODE, "more")
        assert (refused["used"], refused["cost_max"]) == (MOST, MOST)
        await reader.listen("orders", name="plain", attributes={"a": 1})
        await reader.say("stop", listener="l0")
        await reader.hear_op("stopped")
        await reader.listen("orders", name="more", **expensive(5))
