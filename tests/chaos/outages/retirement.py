"""Fills the partition with a tenant's deliveries, and has it retired by the driven clock."""

import asyncio
import base64
import random
import time
from typing import LiteralString

from eventhub.eventlog.retention.quota import StorageBudget
from tests.chaos.events import DOMAIN
from tests.chaos.outages.scene import Scene, emit
from tests.chaos.until import NeverCame, until_true

MIB = 1024 * 1024
LARGE = {"domain": DOMAIN, "type": "large"}
BODY_BYTES = 512 * 1024  # of an event that fills a partition
EVENTS_PER_REQUEST = 4  # 3 MiB, encoded
SHOWN_EVERY_S = 5.0
RETIRED_AFTER_S = 31 * 86_400.0  # deliveries and attempts are retained for 30 days
RETIRE_S = 900.0  # the rows of a million deliveries and attempts are archived
ADVANCE_S = 60.0
TABLES = ("deliveries", "attempts", "lanes", "circuits", "callback_workers")
SIZES: LiteralString = """
    SELECT t.name, COALESCE(sum(pg_total_relation_size(c.oid)), 0)::bigint
      FROM unnest(%s::text[]) AS t (name)
      LEFT JOIN pg_class c ON c.relkind = 'r' AND c.relnamespace = 'public'::regnamespace
       AND c.relname ~ ('^' || t.name || '(_p?[0-9]+)?$')
     GROUP BY t.name"""
PARTITION: LiteralString = """
    SELECT l.current_partition, sum(pg_total_relation_size(c.oid))::bigint
      FROM log_state l, pg_class c
     WHERE c.relkind = 'r' AND c.relnamespace = 'public'::regnamespace
       AND c.relname ~ ('_p' || %s || '$')
     GROUP BY l.current_partition"""


async def sizes_of(scene: Scene) -> dict[str, int]:
    """Return the bytes of each table with its indexes and partitions."""
    return dict(await scene.hub.rows(SIZES, list(TABLES)))  # type: ignore[arg-type]


async def retire(scene: Scene, stream: str, filler: str, quota_bytes: int) -> None:
    """Fill the partition of a stream by events of another one, until the next is in use. Then let
    31 days pass, twice, and have a worker retire what is to be retired: the first time seals the
    open segments of quiet streams. Raise NeverCame.
    """
    [(partition,)] = await scene.hub.rows(
        "SELECT max(h.partition_id) FROM heads h JOIN streams s ON s.id = h.stream_id"
        " WHERE s.name = %s",
        stream,
    )
    await _fill(scene, partition, filler, StorageBudget(0, quota=quota_bytes).partition_bytes)

    async def advanced() -> bool:
        await asyncio.sleep(0.5)
        return (await _partition(scene, partition))[0] > partition

    async def sealed() -> bool:
        await asyncio.sleep(0.5)
        [(left,)] = await scene.hub.rows(
            "SELECT count(*) FROM segments WHERE partition_id = %s AND sealed_at IS NULL", partition
        )
        return bool(left == 0)

    async def retired() -> bool:
        await asyncio.sleep(0.5)
        [(left,)] = await scene.hub.rows(
            "SELECT count(*) FROM pg_class WHERE relname = %s", f"deliveries_p{partition}"
        )
        return bool(left == 0)

    await until_true(advanced, "a new partition to be in use", ADVANCE_S)
    await _a_month_later(scene)
    await until_true(sealed, "the segments to be sealed", RETIRE_S)
    await _a_month_later(scene)
    await until_true(retired, f"deliveries_p{partition} to be retired", RETIRE_S)


async def _fill(scene: Scene, partition: int, filler: str, full_bytes: int) -> None:
    """Emit events until the partition is full or no longer in use, at most as many as fit into
    two; show the progress.
    """
    url = f"{scene.hub.url}/v1/streams/{filler}/events"
    dice = random.Random(partition)
    emitted, shown_at = 0, time.monotonic()
    while True:
        current, size = await _partition(scene, partition)
        is_done = current > partition or size > full_bytes
        if is_done or time.monotonic() > shown_at + SHOWN_EVERY_S:
            shown_at = time.monotonic()
            print(
                f"partition {partition}: {size / MIB:.0f} of {full_bytes / MIB:.0f} MiB,"
                f" {emitted / MIB:.0f} by filling",
                flush=True,
            )
        if is_done:
            return
        if emitted > 2 * full_bytes:
            raise NeverCame(f"partition {partition} has {size} bytes, {emitted} were emitted")
        # PostgreSQL cannot compress it
        bodies = [
            base64.b64encode(dice.randbytes(BODY_BYTES * 3 // 4)).decode()
            for _ in range(EVENTS_PER_REQUEST)
        ]
        await emit(scene.places[filler].http, url, [{**LARGE, "body": body} for body in bodies])
        emitted += EVENTS_PER_REQUEST * BODY_BYTES


async def _partition(scene: Scene, partition: int) -> tuple[int, int]:
    """Return the partition in use, and the bytes of all tables of a partition."""
    [(current, size)] = await scene.hub.rows(PARTITION, partition)
    return current, size


async def _a_month_later(scene: Scene) -> None:
    await asyncio.to_thread(scene.clock.advance, RETIRED_AFTER_S)
    done = await asyncio.to_thread(scene.hub.celery, "call", "delivery.retire")
    done.check_returncode()
