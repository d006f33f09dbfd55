"""The retention plan in a run's result. Plain module."""

import hashlib
from pathlib import Path
from typing import NamedTuple

from eventhub.base.arrow import leave_pandas_out
from sparkjobs.result import read_result

PLAN = "plan.parquet"
KEEP = "keep"


class PlannedAction(NamedTuple):
    """The planned action for one segment. The fields are columns of the plan."""

    zone: str
    stream: str
    segment_id: int
    segment: str  # its UUID
    partition_id: int  # its partition when the plan was made
    first: int
    last: int
    bytes: int
    action: str  # drop, archive, compact
    reason: str


def read_plan(result: Path) -> list[PlannedAction]:
    """Read the actions of a plan, in stream order. Raises OSError, and ValueError if the plan was
    altered.
    """
    # a fifth of a start, and most processes read no plan
    import pyarrow as pa
    import pyarrow.compute as pc
    import pyarrow.parquet as pq

    leave_pandas_out()
    data = (result / PLAN).read_bytes()
    known = {file.name: file.sha256 for file in read_result(result).files}
    if hashlib.sha256(data).hexdigest() != known.get(PLAN):
        raise ValueError(f"The SHA-256 of {PLAN} differs from the run's.")
    table = pq.read_table(pa.BufferReader(data), columns=[*PlannedAction._fields])
    actions = table.filter(pc.not_equal(table["action"], KEEP))
    return [PlannedAction(**row) for row in actions.to_pylist()]
