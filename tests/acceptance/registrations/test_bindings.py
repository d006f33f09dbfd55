"""Variables of READY filters: each notification binds them to the event that matched (RDY-17)."""

from typing import Any

import pytest

from tests.acceptance.delivery.test_transports_contract import listener_spec, take
from tests.acceptance.match_indexes import build, is_used
from tests.acceptance.transports import TRANSPORTS
from tests.acceptance.wire import until
from tests.live import LiveZone
from tests.sink import Sink

ALARMS = (("MyAlarm", 5), ("OtherAlarm", 9), ("MyAlarm", 6), ("MyAlarm", 8))


def alarm(type: str, priority: int) -> dict[str, Any]:
    return {"domain": "Net", "type": type, "attributes": {"Priority": priority}}


def ready(filter: str, **more: Any) -> dict[str, Any]:
    return {"streams": ["alarms"], "language": "ready", "filter": filter, **more}


@pytest.mark.req("RDY-17")
async def test_the_first_notification_binds_the_variable_to_the_first_alarm_above_five(
    zone: LiveZone, sink: Sink
) -> None:
    """In callbacks of each format and on every transport. A registration without a variable binds
    nothing; one with a report binds its variable as well; the built index binds the same.
    """
    zone.create_stream("alarms", matching="index")
    path = f"/{zone.name}"
    ends = {
        format: zone.endpoint(sink.url(f"{path}/{format}"), format=format)["id"]
        for format in ("native", "cloudevents_binary")
    }
    worked = "Ev1: MyAlarm | $Priority > 5"
    bound, *others = zone.register(
        ready(worked, endpoint=ends["native"]),
        ready("*::* | $Priority > 8", endpoint=ends["native"]),
        ready("Größe: OtherAlarm", endpoint=ends["cloudevents_binary"], report=["Priority"]),
    )
    plain, great = (one["id"] for one in others)
    built = build(zone.hub, zone, "alarms")
    await until(lambda: is_used(zone.hub, built))
    sent = zone.emit("alarms", [alarm(*one) for one in ALARMS]).json["ranges"][0]

    def event(sequence: int) -> dict[str, Any]:
        return {"segment": sent["segment"], "sequence": sequence}

    first, *more = sorted(
        (one.json for one in sink.wait(3, f"{path}/native")), key=lambda one: int(one["sequence"])
    )
    assert "bindings" not in first and first["registrations"] == [plain]
    assert [one["sequence"] for one in more] == [3, 4]
    for one in more:
        assert one["registrations"] == [bound["id"]]
        assert one["bindings"] == {str(bound["id"]): {"Ev1": event(one["sequence"])}}
    assert [one["event"]["attributes"] for one in more] == [{"Priority": 6}, {"Priority": 8}]
    [cloud] = sink.wait(1, f"{path}/cloudevents_binary")
    assert cloud.headers["eventhub-cursor"] == f"{sent['segment']}:2"
    assert cloud.headers["eventhub-bindings"] == f"{great}=Gr%C3%B6%C3%9Fe"
    spec = listener_spec(zone, registrations=[bound["id"], plain, great])._replace(stream="alarms")
    for transport in TRANSPORTS:
        found = [(one.sequence, one.variables) for one in await take(transport, spec, 3)]
        assert found == [
            (2, {great: "Größe"}),
            (3, {bound["id"]: "Ev1"}),
            (4, {bound["id"]: "Ev1"}),
        ]
