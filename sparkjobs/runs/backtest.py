"""The hook of the job `backtest`: a little history is searched without Spark, which takes ten times
as long to start. Plain module.
"""

import pyarrow.compute as pc

from eventhub.base import limits
from sparkjobs.arrow_dataset import ds
from sparkjobs.job_spec import JobSpec
from sparkjobs.runs.errors import HistoryTooLarge
from sparkjobs.segment_files import NONE, open_table
from sparkjobs.tables import SEGMENTS

AUTO, LOCAL, SPARK = "auto", "local", "spark"


def is_local(spec: JobSpec) -> bool:
    """Return whether the driver does without Spark: as requested, else if the segments to be
    searched are few and small. Raises OSError, and HistoryTooLarge if one process cannot search
    them as requested.
    """
    engine = spec.params.get("engine", AUTO)
    if engine == SPARK:
        return False
    to_search = (ds.field("source") != NONE) & (ds.field("last") >= ds.field("first"))
    segments = open_table(spec.inputs, "segments", SEGMENTS).to_table(filter=to_search)
    events = segments.num_rows
    events += pc.sum(pc.subtract(segments["last"], segments["first"])).as_py() or 0
    size = pc.sum(segments["bytes"]).as_py() or 0
    if engine == LOCAL:
        if size > limits.BACKTEST_REQUESTED_BYTES_MAX:
            raise HistoryTooLarge
        return True
    return (
        segments.num_rows <= limits.BACKTEST_LOCAL_SEGMENTS_MAX
        and events <= limits.BACKTEST_LOCAL_EVENTS_MAX
        and size <= limits.BACKTEST_LOCAL_BYTES_MAX
    )
