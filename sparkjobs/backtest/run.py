"""The job `backtest`: evaluates a filter against a stream's stored events in a time range, or a
pattern (patterns.py). Spark module.

This module reads and writes; transform.py has the rest, search.py the matching. local.py does the
same without Spark, for a little history.
"""

from pyspark.sql import SparkSession
from pyspark.sql.pandas.types import from_arrow_schema

from sparkjobs.backtest import transform
from sparkjobs.backtest.filter_result import SearchFindings, finished, query_of
from sparkjobs.backtest.patterns import run_patterns
from sparkjobs.backtest.search import SEARCH_ROW
from sparkjobs.backtest.segments import segment_rows, segments_of
from sparkjobs.job_spec import JobSpec
from sparkjobs.progress import Phases
from sparkjobs.result import JobResult


def run(spark: SparkSession, spec: JobSpec, phases: Phases) -> JobResult:
    """Search the segments of `spec.inputs` and write the files of `filter_result.ABOUT`."""
    if "pattern" in spec.params:
        return run_patterns(spark, spec, phases)
    phases.begin("searching segments")
    segments, path = segments_of(spec), f"{spec.work}/found"
    to_search = transform.frame_to_search(spark, spec, segments)
    transform.search_segments(to_search, query_of(spec)).write.mode("overwrite").parquet(path)
    schema = from_arrow_schema(SEARCH_ROW)
    found = spark.read.schema(schema).parquet(path)
    phases.begin("writing matches")
    folder, matches = f"{spec.result}/matches", transform.matches(found)
    matches.write.parquet(folder)
    matches = spark.read.schema(matches.schema).parquet(folder)
    phases.begin("counting matches")
    searched = transform.searched(found).toArrow()
    return finished(
        spec,
        SearchFindings(
            segment_rows(searched, segments.dropped, "matched"),
            transform.sample(found, spec.params["sample_max"]).collect(),
            lambda width_s: transform.histogram(matches, width_s).collect(),
        ),
    )
