"""The command `python -m tests.benchmarks.fill STREAM_ID COUNT [RARE]`: appends so many events to
an empty stream through the product's append, every RARE-th of which has another type; prints the
seconds it took and cursors into the stream, as JSON. It runs in a process of its own.
"""

import json
import sys
import time
from typing import Any

import psycopg

from eventhub.base.env import read_env
from eventhub.eventlog.append import append_in
from eventhub.eventlog.drafts import Draft
from tests.benchmarks.events import stored

BATCH = 4_000
MASK = 1 << 63


def fill(stream_id: int, count: int, rare: int = 0) -> dict[str, object]:
    """Append the events. `cursors`: before the first event, the middle one and the last, as
    texts.
    """
    drafts = [Draft(stream_id, MASK, stored())] * BATCH
    if rare:
        drafts[rare - 1 :: rare] = [Draft(stream_id, MASK, stored("link.rare"))] * (BATCH // rare)
    url = read_env().database_url
    began = time.perf_counter()
    with psycopg.connect(url, prepare_threshold=0, autocommit=True) as connection:
        for at in range(0, count, BATCH):
            with connection.transaction():
                append_in(connection, drafts[: min(BATCH, count - at)])
        took_s = time.perf_counter() - began
        cursors = [_cursor(connection, stream_id, at) for at in (1, (count + 1) // 2, count)]
        connection.execute("VACUUM (ANALYZE) events")
        connection.execute("ANALYZE segments")
        connection.execute("CHECKPOINT")
    return {"took_s": took_s, "cursors": cursors}


def _cursor(connection: psycopg.Connection[Any], stream_id: int, sequence: int) -> str:
    """Return the cursor before an event, in its own segment."""
    [row] = connection.execute(
        "SELECT uuid::text FROM segments WHERE stream_id = %s AND first <= %s"
        " ORDER BY first DESC LIMIT 1",
        (stream_id, sequence),
    ).fetchall()
    return f"{row[0]}:{sequence - 1}"


if __name__ == "__main__":
    print(json.dumps(fill(*map(int, sys.argv[1:]))))
