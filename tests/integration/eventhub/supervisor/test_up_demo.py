"""The demo: each event is stored once, with its id, however often the hub fails."""

import asyncio
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
from aiohttp import web
from eventhub_client.remote import HubClient
from eventhub_client.types import HubProblem

from eventhub.demo import feeder, github, host
from eventhub.demo.feeder import DemoProducer

Posted = list[list[dict[str, Any]]]


@asynccontextmanager
async def fake_hub(statuses: list[int], posted: Posted, port: int = 0) -> AsyncIterator[str]:
    """Serve an emit route that answers with each of the statuses, then with 200."""

    async def emit(request: web.Request) -> web.Response:
        assert request.headers["Authorization"] == "Bearer key"
        posted.append(await request.json())
        status = statuses.pop(0) if statuses else 200
        answer = {"status": status, "code": "some_code"}
        if status == 200:
            answer = {"stream": "host", "ranges": [], "duplicates": []}
        return web.json_response(answer, status=status)

    application = web.Application()
    application.router.add_post("/v1/streams/{stream}/events", emit)
    runner = web.AppRunner(application)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", port, reuse_address=True)
    await site.start()
    try:
        yield f"http://127.0.0.1:{runner.addresses[0][1]}"
    finally:
        await runner.cleanup()


async def test_batch_keeps_its_ids_until_it_is_accepted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(feeder, "PAUSE_S", 0.0)
    posted: Posted = []
    async with fake_hub([503, 500, 429], posted) as url, HubClient(url, "key") as hub:
        sender = DemoProducer(hub)
        await sender.emit("host", [{"type": "a"}, {"type": "b"}])
        await sender.emit("host", [{"type": "c"}])
    assert [len(batch) for batch in posted] == [2, 2, 2, 2, 1]
    assert posted[0] == posted[1] == posted[2] == posted[3]
    numbers = [event["id"]["sequence"] for batch in posted[3:] for event in batch]
    assert numbers == [1, 2, 3]


async def test_batch_is_retried_while_the_hub_does_not_answer(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The outage is longer than one attempt: the same batch is sent again."""
    monkeypatch.setattr(feeder, "PAUSE_S", 0.0)
    monkeypatch.setattr(feeder, "ATTEMPT_S_MAX", 0.02)
    posted: Posted = []
    with socket.create_server(("127.0.0.1", 0)) as listener:  # accepts connections, never answers
        port = listener.getsockname()[1]
        async with HubClient(f"http://127.0.0.1:{port}", "key") as hub:
            task = asyncio.create_task(DemoProducer(hub).emit("host", [{"type": "a"}]))
            done, _ = await asyncio.wait([task], timeout=0.2)
            assert not done
            listener.close()
            async with fake_hub([], posted, port):
                monkeypatch.setattr(feeder, "ATTEMPT_S_MAX", 5.0)
                await asyncio.wait_for(task, 10)
    assert [event["type"] for batch in posted for event in batch] == ["a"]


async def test_refused_event_is_reported_and_not_repeated() -> None:
    posted: Posted = []
    async with fake_hub([400], posted) as url, HubClient(url, "key") as hub:
        with pytest.raises(HubProblem):
            await DemoProducer(hub).emit("host", [{"type": "a"}])
    assert len(posted) == 1


def test_webhook_becomes_a_filterable_event() -> None:
    content = {
        "action": "opened",
        "issue": {"number": 7},
        "repository": {"full_name": "octo/hello", "private": False},
        "sender": {"login": "octocat"},
        "label": None,
    }
    draft = github.draft(github.Payload("issues", content))
    assert (draft["domain"], draft["type"]) == ("github", "issues.opened")
    assert draft["body"] is content
    assert draft["attributes"] == {
        "event": "issues",
        "action": "opened",
        "number": 7,
        "repository": "octo/hello",
        "private": False,
        "sender": "octocat",
    }


def test_webhook_without_action_is_named_after_its_event() -> None:
    draft = github.draft(github.Payload("push", {"ref": "refs/heads/main"}))
    assert draft["type"] == "push"
    assert draft["attributes"] == {"event": "push", "ref": "refs/heads/main"}


def test_missing_payloads_are_no_error() -> None:
    assert github.read_payloads(github.EXAMPLES.with_name("absent.json")) == []


def test_each_counter_has_its_channel() -> None:
    drafts = next(host.endless())
    assert [draft["channels"] for draft in drafts] == [[name] for name in host.CHANNELS]
    assert all(isinstance(draft["attributes"]["counter"], str) for draft in drafts)
