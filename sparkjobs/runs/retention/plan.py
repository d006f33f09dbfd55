"""A retention plan as its run has left it. Plain module."""

import hashlib
from pathlib import Path
from typing import NamedTuple

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from sparkjobs.result import read_result

PLAN = "plan.parquet"
KEEP = "keep"


class PlannedAction(NamedTuple):
    """What the plan wants done with one segment. The names are those of the plan's columns."""

    zone: str
    stream: str
    segment_id: int
    segment: str  # its UUID
    partition_id: int  # the partition that it was in
    first: int
    last: int
    bytes: int
    action: str  # drop, archive, compact
    reason: str


def read_plan(result: Path) -> list[PlannedAction]:
    """What is to be done, in the order of each stream. Raises OSError, and ValueError for what is
    not the plan that the run has left.
    """
    data = (result / PLAN).read_bytes()
    known = {file.name: file.sha256 for file in read_result(result).files}
    if hashlib.sha256(data).hexdigest() != known.get(PLAN):
        raise ValueError(f"{PLAN} is not what the run has written.")
    table = pq.read_table(pa.BufferReader(data), columns=[*PlannedAction._fields])
    acts = table.filter(pc.not_equal(table["action"], KEEP))
    return [PlannedAction(**row) for row in acts.to_pylist()]
