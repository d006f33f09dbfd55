"""The order of lanes, in random runs of real workers that are killed: of each key the events arrive
for the first time in the order of the stream, and none is lost.
"""

import asyncio
import json
from collections.abc import Iterator
from pathlib import Path
from random import Random

import pytest

from tests.integration.callbacks_world import (
    OK,
    CallbacksWorld,
    Posted,
    answer,
    receiver,
    until,
)
from tests.integration.delivery.test_callbacks_worker import worker

EVENTS, KEYS, ROUNDS = 400, 12, 3


def firsts(arrived: list[int]) -> list[int]:
    return list(dict.fromkeys(arrived))


def sequences_of(posted: Posted) -> Iterator[int]:
    id = posted.headers["webhook-id"]
    ids = [id] if id.startswith("msg_") else [e["id"] for e in json.loads(posted.body)["batch"]]
    return (int(each.split("_")[2]) for each in ids)


@pytest.mark.slow
@pytest.mark.parametrize(("seed", "batch"), [(1, None), (2, 7)])
async def test_each_key_arrives_in_order_despite_failures_and_killed_workers(
    world: CallbacksWorld, tmp_path: Path, seed: int, batch: int | None
) -> None:
    random = Random(seed)
    arrived: list[int] = []
    accepted: list[int] = []

    async def flaky(posted: Posted) -> bytes:
        found = list(sequences_of(posted))
        arrived.extend(found)
        await asyncio.sleep(random.choice((0, 0, 0.01, 0.05)))
        if random.random() < 0.04:
            return answer("500 Oops")
        if batch and random.random() < 0.1:
            failed = random.choice(json.loads(posted.body)["batch"])["id"]
            number = int(failed.split("_")[2])
            behind = found[found.index(number) :]
            accepted.extend(
                each for each in found if each not in behind or lanes[each - 1] != lanes[number - 1]
            )
            body = json.dumps({"results": [{"id": failed, "status": 500}]}).encode()
            return answer("200 OK", body=body)
        accepted.extend(found)
        return OK

    async with receiver(flaky) as sink:
        endpoint = world.endpoint(sink.url, ordered=True, order_by="@key", batch_events_max=batch)
        sent = world.events(EVENTS)
        lanes = [-1 - random.randrange(KEYS) for _ in sent.sequences]
        part = EVENTS // ROUNDS
        for round in range(ROUNDS):
            rest = slice(round * part, EVENTS if round == ROUNDS - 1 else (round + 1) * part)
            world.deliver(
                sent._replace(sequences=sent.sequences[rest]), endpoint, lanes=lanes[rest]
            )
            with (
                worker(world, "", tmp_path / f"a{round}.log") as first,
                worker(world, "", tmp_path / f"b{round}.log") as second,
            ):
                before = len(arrived)
                await until(lambda: len(arrived) > before + random.randrange(5, 40), 60)  # noqa: B023
                first.kill()
                if round == ROUNDS - 1:
                    await until(lambda: world.count("delivered") == EVENTS, 90)
                else:
                    await until(lambda: len(arrived) > before + 60, 60)  # noqa: B023
                    second.kill()
    assert set(accepted) == set(sent.sequences)
    for lane in set(lanes):
        expected = [s for s, of in zip(sent.sequences, lanes, strict=True) if of == lane]
        assert firsts([each for each in arrived if lanes[each - 1] == lane]) == expected
        assert firsts([each for each in accepted if lanes[each - 1] == lane]) == expected
