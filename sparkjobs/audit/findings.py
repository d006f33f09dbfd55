"""What the audit found wrong, in words, with names instead of numbers. docs/audit.md says what to
do about each kind. Spark module.
"""

from collections.abc import Mapping

from pyspark.sql import DataFrame
from pyspark.sql import functions as sf

from sparkjobs.audit import deliveries, event_log, listeners, scan, sequences
from sparkjobs.segment_reader import ALTERED

# Kinds, in the order in which they are told.
KINDS: Mapping[str, str] = {
    "missing_file": "The archive's file of the segment is not there.",
    "truncated": "The archive's file of the segment is cut short.",
    "unreadable": "The file of the segment cannot be read.",
    "missing_manifest": "The archive's manifest of the segment is not there.",
    "bad_manifest": "The archive's manifest of the segment is altered or unreadable.",
    "wrong_range": "The archive's manifest names another range than was sealed.",
    sequences.MISSING: "Events that were stored are gone.",
    sequences.DUPLICATE: "A sequence is there more than once.",
    sequences.DISORDER: "Events come behind later ones.",
    sequences.OUTSIDE: "Events lie outside of what was sealed.",
    scan.UNDECODABLE: "The stored bytes are no event.",
    ALTERED: "The bytes are not those that were stored.",
    event_log.MISSING_SEGMENT: "Between two segments, or at an end of the stream, events are gone.",
    event_log.OVERLAP: "A segment begins with numbers that the one before had given.",
    event_log.MISSING_LIVE: "The database lacks events of a segment that is archived too.",
    event_log.ALTERED_LIVE: "The database holds other bytes than were sealed.",
    event_log.DUPLICATE_NUMBER: "A producer's number is stored twice.",
    event_log.LOST_NUMBER: "A producer's number was acknowledged and is not stored.",
    deliveries.NOT_DELIVERED: "An event matches registrations, and no delivery was written.",
    deliveries.NOT_MATCHED: "A delivery was written for an event that matches none of them.",
    deliveries.WRONG_REGISTRATIONS: "A delivery names other registrations than match.",
    deliveries.WITHOUT_ATTEMPT: "A delivery is said to be delivered, and no attempt succeeded.",
    listeners.NOT_DELIVERED: "A listen was told less than it had asked for.",
    listeners.NOT_MATCHED: "A listen was told more than it had asked for.",
}
COLUMNS = (
    *("kind", "zone", "stream", "segment", "first", "last", "registration", "endpoint", "client"),
    *("detail", "evidence"),
)
ORDER = ("rank", *COLUMNS)
_NUMBERS = {"endpoint_id": "long", "registration": "long", "client": "string"}


def findings(
    faults: DataFrame, streams: DataFrame, segments: DataFrame, endpoints: DataFrame
) -> DataFrame:
    """COLUMNS, and `rank` to sort by. `faults`: columns of scan.FAULT, and endpoint_id,
    registration, client where they are known.
    """
    kinds = faults.sparkSession.createDataFrame(
        [(kind, rank, detail) for rank, (kind, detail) in enumerate(KINDS.items())],
        "kind string, rank long, detail string",
    )
    of_stream = streams.select(
        sf.col("id").alias("stream_id"), "zone", sf.col("name").alias("stream")
    )
    of_segment = segments.select(sf.col("id").alias("segment_id"), sf.col("uuid").alias("segment"))
    owners = endpoints.select(sf.col("id").alias("endpoint_id"), sf.col("client").alias("owner"))
    return (
        faults.join(sf.broadcast(kinds), "kind", "left")
        .join(sf.broadcast(of_stream), "stream_id", "left")
        .join(of_segment, "segment_id", "left")
        .join(owners, "endpoint_id", "left")
        .withColumn("endpoint", sf.col("endpoint_id"))
        .withColumn("client", sf.coalesce("client", "owner"))
        .select("rank", *COLUMNS)
    )


def pad(faults: DataFrame) -> DataFrame:
    """With all columns that `findings` takes."""
    for name, kind in _NUMBERS.items():
        if name not in faults.columns:
            faults = faults.withColumn(name, sf.lit(None).cast(kind))
    return faults.select("stream_id", "segment_id", "kind", "first", "last", "evidence", *_NUMBERS)
