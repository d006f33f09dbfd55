"""The answer to an emit to a transient stream when Redis stores nothing, or dies in the middle.

The story: a Redis whose memory was full had stored nothing, and producers received
`outcome_unknown`.
"""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from eventhub.base.errors import EventHubError
from eventhub.eventlog.drafts import Draft
from eventhub.eventlog.stored import StreamInfo
from eventhub.eventlog.transient import Transient
from tests.integration.delivery.test_callbacks_worker import Broker

STREAM = StreamInfo(7, 1, "ticks", durability="transient")


@pytest.fixture
async def broker(tmp_path: Path) -> AsyncIterator[Broker]:
    made = Broker(tmp_path)
    try:
        yield made
    finally:
        made.kill()


async def emitted(transient: Transient) -> str:
    """Return `stored`, or the code of the refusal."""
    try:
        await transient.append(STREAM, [Draft(7, 1, b"x")])
    except EventHubError as error:
        return error.code
    return "stored"


async def history() -> str:
    return "one"


async def test_a_refused_emit_is_known_to_have_stored_nothing(broker: Broker) -> None:
    transient = Transient(broker.url, set(), history)
    running = asyncio.create_task(transient.run())
    try:
        assert await emitted(transient) == "transient_unavailable"  # nobody is there
        broker.start()
        assert await emitted(transient) == "stored"
        client = broker.client()
        keys = [f"eventhub:{{t7}}:{name}" for name in ("meta", "events", "numbers", "tokens")]
        stored = [client.dump(key) for key in keys]
        client.config_set("maxmemory", "1")
        assert await emitted(transient) == "transient_unavailable"
        client.config_set("maxmemory", "0")
        client.config_set("min-replicas-to-write", "1")
        assert await emitted(transient) == "transient_unavailable"
        client.config_set("min-replicas-to-write", "0")
        client.replicaof("127.0.0.1", "1")
        assert await emitted(transient) == "transient_unavailable"
        client.replicaof("no", "one")
        assert [client.dump(key) for key in keys] == stored
        assert await emitted(transient) == "stored"
        broker.stop_answering()
        assert await emitted(transient) == "outcome_unknown"  # it may still do it
        broker.kill()
        assert await emitted(transient) == "transient_unavailable"
    finally:
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)
        await transient.close()
