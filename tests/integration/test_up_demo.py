"""The demo: each event reaches the door once, with its id, however often the door fails."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest
from aiohttp import web

from eventhub.demo import emitter, github, host
from eventhub.demo.emitter import Emitter, Refused

Posted = list[list[dict[str, object]]]


@asynccontextmanager
async def door(statuses: list[int], posted: Posted) -> AsyncIterator[str]:
    """Answers with each status in turn, then 201."""

    async def emit(request: web.Request) -> web.Response:
        assert request.headers["Authorization"] == "Bearer key"
        posted.append(await request.json())
        return web.Response(status=statuses.pop(0) if statuses else 201)

    application = web.Application()
    application.router.add_post("/v1/streams/{stream}/events", emit)
    runner = web.AppRunner(application)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    try:
        yield f"http://127.0.0.1:{runner.addresses[0][1]}"
    finally:
        await runner.cleanup()


async def test_batch_keeps_its_ids_until_it_is_accepted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(emitter, "RETRY_DELAYS_S", (0.0,))
    posted: Posted = []
    async with door([503, 500, 429], posted) as url, Emitter(url, "key") as sender:
        await sender.emit("host", [{"type": "a"}, {"type": "b"}])
        await sender.emit("host", [{"type": "c"}])
    assert [len(batch) for batch in posted] == [2, 2, 2, 2, 1]
    assert posted[0] == posted[1] == posted[2] == posted[3]
    numbers = [event["id"]["sequence"] for batch in posted[3:] for event in batch]  # type: ignore[index]
    assert numbers == [1, 2, 3]


async def test_connection_refused_is_tried_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(emitter, "RETRY_DELAYS_S", (0.01,))
    async with door([], []) as url:
        pass
    async with Emitter(url, "key") as sender:
        task = asyncio.create_task(sender.emit("host", [{"type": "a"}]))
        while sender.retries < 3:  # noqa: ASYNC110 - nothing else tells
            await asyncio.sleep(0)
        assert not task.done()
        task.cancel()


async def test_refused_event_is_reported_and_not_repeated() -> None:
    posted: Posted = []
    async with door([400], posted) as url, Emitter(url, "key") as sender:
        with pytest.raises(Refused, match="400"):
            await sender.emit("host", [{"type": "a"}])
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


def test_payloads_that_were_not_fetched_are_no_error() -> None:
    assert github.read_payloads(github.EXAMPLES.with_name("absent.json")) == []


def test_each_counter_has_its_channel() -> None:
    drafts = next(host.endless())
    assert [draft["channels"] for draft in drafts] == [[name] for name in host.CHANNELS]
    assert all(isinstance(draft["attributes"]["counter"], str) for draft in drafts)
