"""Recovers dead letters through the public API: they are listed and announced, a preview counts
them, and a run sends them again when their receiver is back.
"""

import asyncio
import time
from collections import Counter
from typing import Any, NamedTuple

from tests.chaos.callbacks.receivers import ask
from tests.chaos.callbacks.sink import Mood
from tests.chaos.outages.clock import Hours
from tests.chaos.outages.scene import Scene
from tests.chaos.until import until_true

RATE = 1_000
RUN_S = 300.0
ANNOUNCED_S = 660.0  # of the driven clock: later losses are announced every ten minutes
NOTICED_S = 60.0
ENDED = ("completed", "cancelled", "failed")


class Recovered(NamedTuple):
    """What the API said, by endpoint id, and the course of the runs."""

    listed: dict[int, int]  # dead letters
    announced: dict[int, int]  # dead letters in events of `system`
    types: dict[str, int]  # of events of `system` about the endpoints
    previewed: dict[int, int]
    runs: dict[int, dict[str, Any]]
    seconds: float  # until the last delivery was accepted


async def recover(scene: Scene, stream: str, well: Mood) -> Recovered:
    """Read what the API says about a tenant's dead letters; then let its receivers be back, and
    recover all of them.
    """
    ids = scene.places[stream].ids
    hours = Hours(scene.clock, list(ids.values()))
    listed = await _listed(scene, stream)
    await hours.run(ANNOUNCED_S)
    events = await _announced(scene, stream, sum(listed.values()))
    await scene.set_mood(stream, well)
    previewed, runs = {}, {}
    for id in ids.values():
        answer = await _post(scene, stream, f"/v1/endpoints/{id}/recover/preview", {})
        previewed[id] = answer["deliveries"] if answer["exact"] else -1
    scene.arrivals.read_on()
    scene.arrivals.restart_lanes(ids)
    began = time.monotonic()
    for id in ids.values():
        runs[id] = await _post(scene, stream, f"/v1/endpoints/{id}/recover", {"rate": RATE})

    async def done() -> bool:
        found = await asyncio.to_thread(scene.clock.due, hours.endpoints)
        if not found.is_due and found.next_s is not None:  # a circuit is still open
            await asyncio.to_thread(scene.clock.advance, found.next_s + 0.001)
        await asyncio.sleep(0.2)
        for id, one in runs.items():
            runs[id] = await scene.get(stream, f"/v1/replays/{one['id']}")
        ended = all(one["state"] in ENDED for one in runs.values())
        return ended and not await scene.missing(stream)

    await until_true(done, "the recovery", RUN_S)
    return Recovered(
        listed=listed,
        announced=_counted(events),
        types=dict(Counter(event["type"] for event in events)),
        previewed=previewed,
        runs=runs,
        seconds=time.monotonic() - began,
    )


def recovery_wrong(found: Recovered, expected: int, ids: dict[str, int]) -> list[str]:
    """Return what is wrong: every endpoint has `expected` dead letters."""
    problems = []
    for name, id in ids.items():
        for what in ("listed", "announced", "previewed"):
            count = getattr(found, what).get(id, 0)
            if count != expected:
                problems.append(f"{count} of {expected} dead letters of {name} are {what}")
        one = found.runs[id]
        if one["state"] != "completed" or one["written"] != expected or one["missing"]:
            problems.append(f"the recovery of {name}: {one}")
    kinds = ("endpoint.circuit_opened", "delivery.dead_lettered")
    return problems + [f"system has no {kind}" for kind in kinds if not found.types.get(kind)]


async def _post(scene: Scene, stream: str, path: str, body: dict[str, Any]) -> Any:
    return await ask(scene.places[stream].http, "POST", f"{scene.hub.url}{path}", body)


async def _listed(scene: Scene, stream: str) -> dict[int, int]:
    """Return how many dead letters `GET /v1/dead-letters` lists, by endpoint."""
    listed: Counter[int] = Counter()
    path = "/v1/dead-letters"
    page: dict[str, Any] = {"next": ""}
    while page["next"] is not None:
        page = await scene.get(stream, f"{path}?after={page['next']}" if page["next"] else path)
        for item in page["items"]:
            listed[item["endpoint"]] += item["deliveries"]
    return dict(listed)


async def _announced(scene: Scene, stream: str, deliveries: int) -> list[dict[str, Any]]:
    """Return the events of `system` about a tenant's endpoints, once they report so many dead
    letters, or some seconds later.
    """
    until = time.monotonic() + NOTICED_S
    while True:
        events = await _system(scene, stream)
        if sum(_counted(events).values()) >= deliveries or time.monotonic() > until:
            return events
        await asyncio.sleep(0.2)


async def _system(scene: Scene, stream: str) -> list[dict[str, Any]]:
    ids = set(scene.places[stream].ids.values())
    events: list[dict[str, Any]] = []
    start = "oldest"
    while True:
        page = await scene.get(stream, f"/v1/streams/system/events?from={start}&limit=1000")
        found = [item["event"] for item in page["events"] if "event" in item]
        events += [e for e in found if e["attributes"].get("endpoint") in ids]
        cursor = page["cursor"]
        if cursor["sequence"] >= page["head"]:
            return events
        start = f"{cursor['segment']}:{cursor['sequence']}"


def _counted(events: list[dict[str, Any]]) -> dict[int, int]:
    """Return how many dead letters events of `system` report, by endpoint."""
    counts: Counter[int] = Counter()
    for event in events:
        if event["type"] == "delivery.dead_lettered":
            counts[event["attributes"]["endpoint"]] += event["attributes"]["deliveries"]
    return dict(counts)
