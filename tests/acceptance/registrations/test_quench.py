"""Producers that suppress events without interest (OIF-09): notified of changes, and exact to the
registration that was acknowledged before the emit.
"""

import asyncio
from typing import Any

import orjson
import pytest
from eventhub_client.errors import InvalidRequest, NotAllowed
from eventhub_client.quench import Quench
from eventhub_client.remote import HubClient
from eventhub_client.sync import SyncHubClient

from tests.acceptance.cut import way
from tests.acceptance.registrations.test_closure import put
from tests.acceptance.shell import Shell
from tests.acceptance.wire import Session, session
from tests.live import LiveHub, LiveZone

DEBUG: dict[str, Any] = {"domain": "app", "type": "debug.sql", "attributes": {"ms": 7}}
ERROR: dict[str, Any] = {"domain": "app", "type": "error"}
POST = b"POST /v1/streams/log/events"


@pytest.fixture
def log(zone: LiveZone) -> LiveZone:
    zone.create_stream("log", quench=True)
    zone.register({"streams": ["log"], "type": "error"})
    return zone


def stored(zone: LiveZone) -> int:
    found: int = zone.hub.call("GET", "/v1/streams/log", key=zone.admin).json["last"]
    return found


async def suppressed(
    hub: HubClient, quench: Quench, event: dict[str, Any], until: tuple[int, ...] = (0,)
) -> None:
    """Emit until it is suppressed, or until it is not: the producer is notified soon after a
    change. Until then, events that match its last closure are sent.
    """
    async with asyncio.timeout(60):
        while True:
            if (await hub.emit("log", event, suppress=quench)).suppressed == until:
                return
            await asyncio.sleep(0.01)


@pytest.mark.req("OIF-09")
async def test_an_event_without_interest_is_not_sent_and_reported_as_suppressed(
    log: LiveZone,
) -> None:
    """Without an interest in debug.* no request is made; the next emit after a registration is
    sent, whichever process took the registration.
    """
    async with (
        way(log.hub) as between,
        HubClient(between.url, log.admin) as hub,
        log.client(web=1) as other,
        Quench(hub, "log") as quench,
    ):
        receipt = await hub.emit("log", DEBUG, suppress=quench)
        assert (receipt.suppressed, receipt.ranges) == ((0,), ())
        assert POST not in between.sent and b"debug" not in between.sent
        some = await hub.emit("log", [DEBUG, ERROR, DEBUG, ERROR], suppress=quench)
        assert (some.suppressed, some.cursor.sequence) == ((0, 2), 2)
        assert between.sent.count(POST) == 1 and b"debug" not in between.sent
        assert (stored(log), quench.suppressed) == (2, 3)
        for number in range(10):
            interest = {"streams": ["log"], "language": "predicate"}
            interest["filter"] = f'(and (prefix @type "debug.") (= turn {number}))'
            made = await other.call("POST", "/v1/registrations", interest)
            event = {**DEBUG, "attributes": {"turn": number}}
            assert (await hub.emit("log", event, suppress=quench)).suppressed == ()
            await other.call("DELETE", f"/v1/registrations/{made['id']}")
            await suppressed(hub, quench, event)
        last = stored(log)
        assert (await hub.emit("log", DEBUG)).cursor.sequence == last + 1


@pytest.mark.req("OIF-09")
async def test_a_listener_counts_before_it_starts_and_an_unreachable_hub_gets_everything(
    hub: LiveHub, log: LiveZone
) -> None:
    async with log.client() as emitter, Quench(emitter, "log") as quench:
        async with session(hub, log.admin, web=1) as reader:
            for number in range(5):
                interest = {"language": "predicate", "filter": f"(= n {number})"}
                await reader.listen("log", name=str(number), **interest)
                event = {**DEBUG, "attributes": {"n": number}}
                await emitter.emit("log", event, suppress=quench)
                [message] = await reader.events(1)
                assert message["event"]["attributes"] == {"n": number}
        assert (await emitter.emit("log", DEBUG, suppress=quench)).suppressed == (0,)
        wrong = {**DEBUG, "attributes": []}
        with pytest.raises(Exception, match="Expected `object`"):
            await emitter.emit("log", wrong, suppress=quench)
        hub.web[0].stop()
        try:
            async with log.client(web=1) as other:
                assert (await other.emit("log", DEBUG, suppress=quench)).suppressed == ()
        finally:
            hub.web[0].start()


async def test_nothing_is_suppressed_on_a_stream_without_the_policy(log: LiveZone) -> None:
    log.create_stream("kept")
    async with log.client() as hub, Quench(hub, "kept") as quench:
        assert (await hub.emit("kept", DEBUG, suppress=quench)).suppressed == ()
    async with log.client() as hub, Quench(hub, "log", age_s=30.0) as quench:
        assert (await hub.emit("log", DEBUG, suppress=quench)).suppressed == (0,)
        change = log.hub.call("PUT", "/v1/streams/log", {"quench": False}, key=log.admin)
        assert change.status == 200
        await suppressed(hub, quench, DEBUG, until=())  # notified at once, despite `age_s`


async def test_declared_subtypes_and_the_audience_count(log: LiveZone) -> None:
    for type, more in (("debug", {}), ("debug.sql", {"parent": "debug"})):
        body = {"schema": {"type": "object"}, **more}
        answer = log.hub.call("PUT", f"/v1/types/app/{type}", body, key=log.admin)
        assert answer.status == 201, answer
    key = log.key("listen:*", client="ann")
    put(log, "ann", ["ops"])
    async with log.client() as hub, Quench(hub, "log") as quench:
        assert (await hub.emit("log", DEBUG, suppress=quench)).suppressed == (0,)
        ready = {"streams": ["log"], "language": "ready", "filter": "app::debug"}
        log.register(ready, key=key)
        assert (await hub.emit("log", DEBUG, suppress=quench)).suppressed == ()
        other = {**DEBUG, "type": "debug.http"}
        assert (await hub.emit("log", other, suppress=quench)).suppressed == (0,)
        for groups, suppressed in ((["ops"], ()), (["dev"], (0,))):
            async with Quench(hub, "log", audience=groups) as narrow:
                found = await hub.emit("log", {**DEBUG, "audience": groups}, suppress=narrow)
                assert found.suppressed == suppressed


def test_the_synchronous_client_suppresses_too(log: LiveZone) -> None:
    with (
        SyncHubClient(log.hub.url, log.admin) as hub,
        hub.using(lambda made: Quench(made, "log")) as quench,
    ):
        assert hub.emit("log", [ERROR, DEBUG], suppress=quench).suppressed == (1,)
        nothing = hub.emit("log", DEBUG, suppress=quench)
        with pytest.raises(ValueError, match="nobody wants"):
            _ = nothing.cursor


async def test_a_client_that_may_not_emit_cannot_read_the_interest(log: LiveZone) -> None:
    reader = log.key("listen:*", client="reader")
    async with HubClient(log.hub.url, reader) as hub:
        with pytest.raises(NotAllowed):
            await Quench(hub, "log").__aenter__()


async def test_a_websocket_is_notified_when_the_answer_changes(hub: LiveHub, log: LiveZone) -> None:
    async with session(hub, log.admin) as producer:
        await producer.say("interest", interest="a", stream="log", shape={"type": "debug.sql"})
        await producer.say("interest", interest="b", stream="log")
        first = {
            message["interest"]: message for message in [await _receive(producer) for _ in "ab"]
        }
        assert (first["a"]["interested"], first["a"]["quench"]) == ("no", True)
        assert first["b"]["filter"] == '(= @type "error")'
        [made] = log.register({"streams": ["log"], "type": "debug.sql", "attributes": {"a": 1}})
        changed = {
            message["interest"]: message for message in [await _receive(producer) for _ in "ab"]
        }
        assert changed["a"]["interested"] == "maybe"
        assert len(changed["b"]["alternatives"]) == 2
        await producer.say("confirm", interest="b", id="7")
        confirmed = await producer.hear_op("confirmed")
        assert (confirmed["id"], confirmed["tag"]) == ("7", changed["b"]["tag"])
        await producer.say("forget", interest="b")
        assert (await producer.hear())["op"] == "forgotten"
        log.register({"streams": ["log"], "type": "trace"})
        hub.call("DELETE", f"/v1/registrations/{made['id']}", key=log.admin)
        assert (await _receive(producer))["interested"] == "no"
        async with session(hub, log.admin, web=1) as reader:
            await reader.listen("log", type="debug.sql")
            assert (await _receive(producer))["interested"] == "yes"
    key = log.key("emit:log", client="emitter")
    async with session(hub, key) as producer:
        await producer.say("interest", interest="a", stream="log", shape={})
        assert (await _receive(producer))["interested"] == "maybe"
        log.revoke(key)
        assert (await producer.hear_op("error"))["code"] == "invalid_credentials"


async def _receive(producer: Session) -> dict[str, Any]:
    message = await producer.hear_op("interest", "error")
    assert message["op"] == "interest", message
    return message


async def test_the_index_of_a_refused_event_counts_the_suppressed_ones(log: LiveZone) -> None:
    async with log.client() as hub, Quench(hub, "log") as quench:
        wrong = {**ERROR, "attributes": []}
        with pytest.raises(InvalidRequest) as refused:
            await hub.emit("log", [DEBUG, ERROR, DEBUG, wrong], suppress=quench)
        assert refused.value.position["index"] == 3
        assert stored(log) == 0


def test_the_command_line_suppresses_events_without_interest(log: LiveZone) -> None:
    shell = Shell(log)
    lines = "".join(orjson.dumps(one).decode() + "\n" for one in (DEBUG, ERROR, DEBUG))
    message = shell.ok("emit", "log", "--suppress", stdin=lines).json
    assert (message["suppressed"], stored(log)) == (2, 1)
    assert [(one["first"], one["last"]) for one in message["ranges"]] == [(1, 1)]
    nothing = shell.ok("emit", "log", "--suppress", orjson.dumps(DEBUG).decode()).json
    assert (nothing["ranges"], nothing["suppressed"], stored(log)) == ([], 1, 1)
    assert "suppressed" not in shell.ok("emit", "log", orjson.dumps(DEBUG).decode()).json
    for other in (("--outbox", "till.outbox"), ("--format", "oif")):
        done = shell.run("emit", "log", "--suppress", *other, stdin=lines)
        assert (done.status, "--suppress" in done.err) == (2, True), done
