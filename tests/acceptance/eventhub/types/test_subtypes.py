"""Subtypes in matching (RDY-13): interest in a type includes its declared subtypes."""

from typing import Any
from urllib.parse import urlencode

import pytest

from tests.acceptance import transports
from tests.acceptance.delivery.test_transports_contract import take
from tests.acceptance.eventhub.types.test_types import ALARM, SITE, declare, declared, event
from tests.acceptance.transports import ListenerSpec
from tests.acceptance.wire import session
from tests.live import LiveHub, LiveZone
from tests.sink import Sink

READY = {"language": "ready", "filter": "Ev1: MyAlarm | $Priority > 2"}
PAIRS = {"type": "MyAlarm"}


def numbers(sink: Sink, path: str) -> list[int]:
    return sorted(called.json["sequence"] for called in sink.at(path))


@pytest.mark.req("RDY-13")
async def test_interest_in_a_type_finds_its_declared_subtypes(
    hub: LiveHub, zone: LiveZone, sink: Sink
) -> None:
    """By callback and by listens, for a READY filter; pairs mean the type alone (decision 22). A
    subtype that is declared while all of them run counts from its first event on, an undeclared one
    never.
    """
    zone.create_stream("alarms")  # where declarations are waited for
    zone.create_stream("yard")
    paths = {name: f"/{zone.name}/{name}" for name in ("ready", "pairs")}
    ready, pairs = zone.register(
        {"streams": ["yard"], **READY, "callback": sink.url(paths["ready"])},
        {"streams": ["yard"], **PAIRS, "callback": sink.url(paths["pairs"])},
    )
    await declared(zone, "MyAlarm", ALARM)
    await declared(zone, "Sub", SITE, parent="MyAlarm")
    whole: dict[str, Any] = {"Priority": 3, "site": "Basel", "rack": 7}
    async with session(hub, zone.admin, web=1) as named, session(hub, zone.admin) as plain:
        await named.listen("yard", registrations=[ready["id"], pairs["id"]])
        await plain.listen("yard", **READY)
        sent = [
            event("MyAlarm", **whole),
            event("Sub", **whole),
            event("Sub", Priority=1, site="x"),
            {**event("Sub", **whole), "domain": "other", "version": "1"},
        ]
        assert zone.emit("yard", sent).status == 200
        await declared(zone, "SubSub", {"required": ["rack"]}, parent="Sub")
        later = [
            event("SubSub", **whole),
            event("SubSub", "1", **whole),
            event("Never", "1", **whole),
            event("MyAlarm", **whole),
        ]
        assert zone.emit("yard", later).status == 200
        received = await named.events(5)
        assert [(one["sequence"], one["registrations"]) for one in received] == [
            (1, [ready["id"], pairs["id"]]),
            (2, [ready["id"]]),
            (5, [ready["id"]]),
            (6, [ready["id"]]),
            (8, [ready["id"], pairs["id"]]),
        ]
        assert [one["sequence"] for one in await plain.events(5)] == [1, 2, 5, 6, 8]
        assert await plain.nothing_waits()
    sink.wait(5, paths["ready"])
    sink.wait(2, paths["pairs"])
    assert numbers(sink, paths["ready"]) == [1, 2, 5, 6, 8]
    assert numbers(sink, paths["pairs"]) == [1, 8]
    query = urlencode({"from": "now", "order": "backward", **READY})
    page = hub.call("GET", f"/v1/streams/yard/events?{query}", key=zone.admin).json
    assert [one["sequence"] for one in page["events"]] == [8, 6, 5, 2, 1]
    spec = ListenerSpec(hub, zone.admin, "yard", "oldest", READY)
    for transport in (transports.history, transports.in_process):
        assert [one.sequence for one in await take(transport, spec, 5)] == [1, 2, 5, 6, 8]


@pytest.mark.req("RDY-13")
def test_the_parent_of_a_type_never_changes(zone: LiveZone) -> None:
    """The matches of an event must not depend on the time of matching."""
    for type, more in (("Top", {}), ("Other", {}), ("Sub", {"parent": "Top"})):
        assert declare(zone, type, {}, **more).status == 201
    for type, more, was in (
        ("Sub", {"parent": "Other"}, "Top"),
        ("Sub", {}, "Top"),
        ("Other", {"parent": "Top"}, "none"),
    ):
        for evolution in ("none", "backward"):
            answer = declare(zone, type, {"required": ["a"]}, evolution=evolution, **more)
            problem = answer.refused(409, "incompatible_type")
            assert problem["breaks"] == [f"parent: was {was}"]
            assert problem["position"] == {"field": "parent"}
    assert declare(zone, "Sub", {"required": ["a"]}, parent="Top", evolution="none").status == 201
