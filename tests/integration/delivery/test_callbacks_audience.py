"""The audience of an event is looked at before every attempt, and an endpoint gets no operational
event about itself.
"""

import pytest
from psycopg.types.json import Jsonb

from eventhub.event.envelope import Event
from eventhub.event.protobuf_codec import encode
from eventhub.eventlog.append import append_in
from eventhub.eventlog.drafts import Draft
from eventhub.eventlog.system import SYSTEM_STREAM_ID
from tests.integration.callbacks_world import (
    CallbacksWorld,
    Sent,
    answer,
    draining,
    receiver,
    until,
)


def set_groups(world: CallbacksWorld, *groups: str) -> None:
    world.sql("UPDATE clients SET groups = %s WHERE id = %s", Jsonb(groups), world.client_id)


@pytest.mark.parametrize("ordered", [False, True])
@pytest.mark.parametrize("format", ["native", "cloudevents_binary"])
async def test_a_client_that_left_the_audience_gets_nothing(
    world: CallbacksWorld, ordered: bool, format: str
) -> None:
    hidden = world.events(2, audience=("staff",))
    visible = world.events(2, stream_id=hidden.stream_id, audience=("staff", "night"))
    set_groups(world, "night")
    async with receiver() as sink, draining(world):
        endpoint = world.endpoint(sink.url, ordered=ordered, format=format)
        world.deliver(hidden, endpoint)
        world.deliver(visible, endpoint)
        await until(lambda: world.states(endpoint) == ["cancelled"] * 2 + ["delivered"] * 2)
    assert sorted(sink.sequences()) == visible.sequences
    assert world.outcomes(endpoint) == [(1, "delivered", 204)] * 2


async def test_a_client_that_leaves_the_audience_between_two_attempts_gets_no_other(
    world: CallbacksWorld,
) -> None:
    set_groups(world, "staff")
    async with receiver(lambda _: answer("500 Oops")) as sink, draining(world):
        endpoint = world.endpoint(sink.url)
        world.deliver(world.events(1, audience=("staff",)), endpoint)
        await until(lambda: len(world.outcomes(endpoint)) == 1)
        set_groups(world)
        seen = len(sink.posted)
        await until(lambda: world.states(endpoint) == ["cancelled"])
    assert len(sink.posted) - seen <= 1  # the one that was under way


async def test_a_probe_passes_events_that_are_not_to_be_sent(world: CallbacksWorld) -> None:
    set_groups(world, "night")
    hidden = world.events(40, audience=("staff",))
    async with receiver() as sink:
        endpoint = world.endpoint(sink.url)
        world.deliver(hidden, endpoint)
        world.deliver(world.events(1, stream_id=hidden.stream_id), endpoint)
        world.open_circuit(endpoint)
        async with draining(world):
            await until(lambda: "delivered" in world.states(endpoint))
    assert world.states(endpoint) == ["cancelled"] * 40 + ["delivered"]


async def test_an_endpoint_gets_no_operational_event_about_itself(world: CallbacksWorld) -> None:
    async with receiver() as sink:
        own, other = world.endpoint(sink.url), world.endpoint(sink.url)
        event = Event("eventhub", "endpoint.circuit_opened", {"endpoint": own})
        changed = Event("eventhub", "endpoint.changed", {"endpoint": own})
        with world.connection.transaction():
            drafts = [Draft(SYSTEM_STREAM_ID, 1, encode(each)) for each in (event, changed)]
            appended = append_in(world.connection, drafts)
        [(partition, segment_id, segment)] = world.sql(
            "SELECT partition_id, segment_id, segment::text FROM heads WHERE stream_id = %s",
            SYSTEM_STREAM_ID,
        )
        sequences = [each.sequence for each in appended]
        sent = Sent(SYSTEM_STREAM_ID, "system", partition, segment_id, segment, sequences)
        async with draining(world):
            for endpoint in (own, other):
                world.deliver(sent, endpoint)
            await until(lambda: world.states(own) == ["cancelled", "delivered"])
            await until(lambda: world.states(other) == ["delivered"] * 2)
    assert len(sink.posted) == 3
