"""Ids of events, their order, and duplicates of one issuer over two senders (FOX-07, 09, 78)."""

import json
from typing import Any

import pytest

from eventhub.base.clock import ManualClock
from eventhub.event.identity import EventId, IdIssuer
from tests.acceptance.wire import EVENT, Emitter, chunks, session
from tests.live import LiveHub, LiveZone

IDS = 100_000
BATCH = 1_000


@pytest.mark.req("FOX-07")
def test_100000_ids_within_one_tick_all_differ_and_are_all_stored(zone: LiveZone) -> None:
    zone.create_stream("ids")
    clock = ManualClock()
    issuer = IdIssuer(client="tester", clock=clock)
    ids = [issuer.next() for _ in range(IDS)]
    assert len(set(ids)) == IDS
    assert {id.timestamp_us for id in ids} == {clock.now_us()}
    with Emitter(zone) as emitter:
        for at, batch in enumerate(chunks(ids, BATCH)):
            body = json.dumps([{**EVENT, "id": id.wire()} for id in batch]).encode()
            status, answer = emitter.post("ids", body)
            assert (status, answer["duplicates"]) == (200, [])
            assert sum(r["last"] - r["first"] + 1 for r in answer["ranges"]) == BATCH
            assert answer["ranges"][0]["first"] == at * BATCH + 1
        last = [{**EVENT, "id": id.wire()} for id in ids[-3:]]
        _, again = emitter.post("ids", last)
    assert again["ranges"] == []
    assert [d["sequence"] for d in again["duplicates"]] == [IDS - 2, IDS - 1, IDS]


@pytest.mark.req("FOX-07")
async def test_equal_sequences_of_two_clients_are_different_ids(
    hub: LiveHub, zone: LiveZone
) -> None:
    zone.create_stream("ids")
    events = [
        {**EVENT, "id": {"timestamp": 5, "sequence": number, "incarnation": 9}}
        for number in range(1, 51)
    ]
    for number, client in enumerate(("ann", "bob")):
        key = zone.key("emit:ids", client=client)
        answer = zone.emit("ids", events, key=key, url=hub.web[number].url).json
        assert answer["duplicates"] == []
    async with session(hub, zone.admin) as reader:
        await reader.listen("ids", start="oldest")
        ids = [EventId(**id_of(event)) for event in await reader.events(100)]
        assert await reader.nothing_waits()
    assert len(set(ids)) == 100
    assert {id.client for id in ids} == {"ann", "bob"}


def id_of(message: dict[str, Any]) -> dict[str, Any]:
    """Return the id of a delivered event as the fields of EventId."""
    found = dict(message["event"]["id"])
    return {"timestamp_us": found.pop("timestamp"), **found}


@pytest.mark.req("FOX-09")
async def test_ids_order_by_timestamp_and_then_by_sequence(hub: LiveHub, zone: LiveZone) -> None:
    zone.create_stream("ids")
    t0, t1 = 1_000_000, 1_000_001
    for timestamp, sequence in ((t1, 1), (t0, 3), (t0, 2)):
        id = {"timestamp": timestamp, "sequence": sequence, "incarnation": 1}
        assert zone.emit("ids", {**EVENT, "id": id}).json["duplicates"] == []
    async with session(hub, zone.admin) as reader:
        await reader.listen("ids", start="oldest")
        ids = [EventId(**id_of(event)) for event in await reader.events(3)]
    arrived = [(id.timestamp_us, id.sequence) for id in ids]
    assert arrived == [(t1, 1), (t0, 3), (t0, 2)], "the log keeps the order of arrival"
    late, third, second = ids
    assert third.order < late.order
    assert second.order < third.order
    assert sorted(ids, key=lambda id: id.order) == [second, third, late]


TABLE_8_2 = [  # (time, sender, the issuer's number), in the order of time
    (1, "A", 1),
    (2, "B", 1),
    (3, "B", 2),
    (4, "A", 2),
    (4, "B", 3),
    (5, "A", 3),
    (7, "A", 4),
    (8, "A", 5),
    (8, "B", 4),
    (9, "B", 5),
]


@pytest.mark.req("FOX-78")
async def test_table_8_2_each_event_is_delivered_once_from_its_first_sender(
    hub: LiveHub, zone: LiveZone
) -> None:
    zone.create_stream("fox")
    duplicates: list[str] = []
    async with session(hub, zone.admin, web=1) as reader:
        await reader.listen("fox")
        with Emitter(zone, web=0) as a, Emitter(zone, web=1) as b:
            for at, sender, number in TABLE_8_2:
                event = {
                    **EVENT,
                    "attributes": {"from": sender, "at": at},
                    "id": {"sequence": number, "incarnation": 4, "timestamp": number},
                }
                status, answer = (a if sender == "A" else b).post("fox", event)
                assert status == 200
                for found in answer["duplicates"]:
                    assert found["sequence"] == number
                    duplicates.append(f"e{number}{sender}@{at}")
        delivered = [event["event"] for event in await reader.events(5)]
        assert await reader.nothing_waits()
    got = [
        "e{}{}@{}".format(e["id"]["sequence"], e["attributes"]["from"], e["attributes"]["at"])
        for e in delivered
    ]
    assert got == ["e1A@1", "e2B@3", "e3B@4", "e4A@7", "e5A@8"]
    assert duplicates == ["e1B@2", "e2A@4", "e3A@5", "e4B@8", "e5B@9"]
