"""The drain against a real database and real receivers: claims, posts, results."""

import json
from collections.abc import Iterator

import pytest
from standardwebhooks import Webhook

from registrations.endpoints.secrets import secret_text
from tests.integration.callbacks_world import (
    SECRET,
    CallbacksWorld,
    Posted,
    answer,
    callbacks_world,
    draining,
    receiver,
    template_database,
    until,
)


@pytest.fixture(scope="module")
def template() -> Iterator[str]:
    with template_database() as name:
        yield name


@pytest.fixture
def world(template: str) -> Iterator[CallbacksWorld]:
    with callbacks_world(template) as made:
        yield made


async def test_what_is_due_is_posted_signed_and_written(world: CallbacksWorld) -> None:
    sent = world.events(3)
    async with receiver() as sink, draining(world):
        endpoint = world.endpoint(sink.url)
        world.owe(sent, endpoint, registrations=(7, 9))
        await until(lambda: world.states(endpoint) == ["delivered"] * 3)
    assert sorted(sink.sequences()) == sent.sequences
    for posted in sink.posted:
        Webhook(secret_text(SECRET)).verify(posted.body, posted.headers)
        found = json.loads(posted.body)
        sequence = found["sequence"]
        assert posted.headers["webhook-id"] == (
            f"msg_{sent.segment.replace('-', '')}_{sequence}_{endpoint}"
        )
        assert posted.headers["content-type"] == "application/json"
        assert list(found) == [
            *("stream", "segment", "sequence", "appended_at", "registrations", "event")
        ]
        assert (found["stream"], found["segment"]) == (sent.name, sent.segment)
        assert found["registrations"] == [7, 9]
        assert found["event"]["attributes"] == {"n": sequence - 1}
    assert world.outcomes(endpoint) == [(1, "delivered", 204)] * 3


async def test_a_failed_delivery_is_tried_again_with_the_same_id(world: CallbacksWorld) -> None:
    answers = iter([answer("500 Oops", body=b"why\0 not"), answer("302 Found", "location: /x")])
    ok = answer("200 OK")
    async with receiver(lambda _: next(answers, ok)) as sink, draining(world):
        endpoint = world.endpoint(sink.url)
        world.owe(world.events(1), endpoint)
        await until(lambda: world.states(endpoint) == ["delivered"])
    assert len(sink.posted) == 3
    assert len(set(sink.ids())) == 1
    assert [posted.path for posted in sink.posted] == ["/hook"] * 3
    assert world.outcomes(endpoint) == [
        (1, "status", 500),
        (2, "redirect", 302),
        (3, "delivered", 200),
    ]
    [first] = world.sql("SELECT response FROM attempts WHERE number = 1")[0]
    assert first.startswith("500 Oops\nContent-Length: 8")
    assert first.endswith("\n\nwhy� not")


async def test_an_ordered_lane_keeps_its_order_across_retries(world: CallbacksWorld) -> None:
    tries: dict[str, int] = {}

    def flaky(posted: Posted) -> bytes:
        found = posted.headers["webhook-id"]
        tries[found] = tries.get(found, 0) + 1
        return answer("200 OK" if tries[found] > int(found.split("_")[2]) % 3 else "503 Busy")

    async with receiver(flaky) as sink, draining(world), draining(world):
        endpoint = world.endpoint(sink.url, ordered=True)
        sent = world.events(12)
        world.owe(sent, endpoint)
        await until(lambda: world.states(endpoint) == ["delivered"] * 12, 60)
    assert sink.sequences() == [n for n in sent.sequences for _ in range(n % 3 + 1)]
