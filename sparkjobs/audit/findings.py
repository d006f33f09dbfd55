"""The audit's findings: faults with a description and with names instead of ids. docs/audit.md says
what to do about each kind. Spark module.
"""

from collections.abc import Mapping

from pyspark.sql import DataFrame
from pyspark.sql import functions as sf

from sparkjobs.audit import deliveries, event_log, listeners, scan, sequences
from sparkjobs.segment_files import ALTERED

# Kinds and their descriptions, in the order of the findings.
KINDS: Mapping[str, str] = {
    "missing_file": "The segment's archive file does not exist.",
    "truncated": "The segment's archive file is truncated.",
    "unreadable": "The segment's file cannot be read.",
    "missing_manifest": "The segment's manifest in the archive does not exist.",
    "bad_manifest": "The segment's manifest in the archive is altered or unreadable.",
    "wrong_range": "The manifest's range differs from the sealed one.",
    sequences.MISSING: "Stored events are missing.",
    sequences.DUPLICATE: "A sequence is stored more than once.",
    sequences.DISORDER: "Events are stored after later ones.",
    sequences.OUTSIDE: "Events have sequences outside the sealed range.",
    scan.UNDECODABLE: "The stored bytes are not an event.",
    ALTERED: "The stored bytes were altered.",
    event_log.MISSING_SEGMENT: "Sequences between segments, or at an end of the stream, have none.",
    event_log.OVERLAP: "A segment starts with sequences of the previous one.",
    event_log.MISSING_LIVE: "The database lacks events of an archived segment that is live too.",
    event_log.ALTERED_LIVE: "The database's bytes of an archived segment were altered.",
    event_log.DUPLICATE_NUMBER: "A producer's number is stored twice.",
    event_log.LOST_NUMBER: "A producer's number was acknowledged but is not stored.",
    deliveries.NOT_DELIVERED: "An event matches registrations but has no delivery.",
    deliveries.NOT_MATCHED: "A delivery exists for an event that matches no registration.",
    deliveries.WRONG_REGISTRATIONS: "A delivery names other registrations than the event matches.",
    deliveries.WITHOUT_ATTEMPT: "A delivery is marked delivered without a successful attempt.",
    listeners.NOT_DELIVERED: "A listener received fewer events than it matched.",
    listeners.NOT_MATCHED: "A listener received more events than it matched.",
}
COLUMNS = (
    *("kind", "zone", "stream", "segment", "first", "last", "registration", "endpoint", "client"),
    *("detail", "evidence"),
)
SORTED_BY = ("rank", *COLUMNS)
_OPTIONAL = {"endpoint_id": "long", "registration": "long", "client": "string"}


def findings(
    faults: DataFrame, streams: DataFrame, segments: DataFrame, endpoints: DataFrame
) -> DataFrame:
    """Return COLUMNS, and `rank` to sort by. `faults` are padded ones."""
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
    """Add the optional columns of faults (endpoint_id, registration, client) that are absent."""
    for name, kind in _OPTIONAL.items():
        if name not in faults.columns:
            faults = faults.withColumn(name, sf.lit(None).cast(kind))
    return faults.select("stream_id", "segment_id", "kind", "first", "last", "evidence", *_OPTIONAL)
