"""The hook of the job `backtest`: a little history is searched without Spark, which takes ten times
as long to start. Plain module.
"""

import pyarrow.compute as pc
import pyarrow.dataset as ds

from eventhub.base import limits
from sparkjobs.job_spec import JobSpec
from sparkjobs.segment_files import NONE, open_table
from sparkjobs.tables import SEGMENTS

AUTO, LOCAL = "auto", "local"


def is_local(spec: JobSpec) -> bool:
    """Return whether the driver does without Spark: as requested, else if the segments to be
    searched are few and small. Raises OSError.
    """
    engine = spec.params.get("engine", AUTO)
    if engine != AUTO:
        return bool(engine == LOCAL)
    to_search = (ds.field("source") != NONE) & (ds.field("last") >= ds.field("first"))
    segments = open_table(spec.inputs, "segments", SEGMENTS).to_table(filter=to_search)
    events = segments.num_rows
    events += pc.sum(pc.subtract(segments["last"], segments["first"])).as_py() or 0
    return (
        segments.num_rows <= limits.BACKTEST_LOCAL_SEGMENTS_MAX
        and events <= limits.BACKTEST_LOCAL_EVENTS_MAX
        and (pc.sum(segments["bytes"]).as_py() or 0) <= limits.BACKTEST_LOCAL_BYTES_MAX
    )
