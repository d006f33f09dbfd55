"""The versions in a stream's match index, with its columns (docs/match-index.md). Spark module."""

from pyspark.sql import DataFrame
from pyspark.sql import functions as sf

from registrations.match_index.format.versions import COLUMNS, NEVER_ENDS

INDEXED = ("id", "language", "filter", *COLUMNS)


def indexed_versions(versions: DataFrame, stream_id: int, after: int) -> DataFrame:
    """Select from `tables.VERSIONS` those with an endpoint, not suspended, that can match an event
    after the sequence `after`; with the columns INDEXED.
    """
    can_match = sf.col("until").isNull() | (
        sf.col("until") > sf.greatest(sf.lit(after), sf.col("since"))
    )
    return (
        versions.where(sf.col("stream_id") == stream_id)
        .where(sf.col("endpoint_id").isNotNull() & ~sf.col("suspended"))
        .where(can_match)
        .select(
            "id",
            "language",
            "filter",
            sf.col("client_id").alias("client"),
            sf.col("endpoint_id").alias("endpoint"),
            sf.coalesce("group_id", sf.lit(0)).alias("group"),
            sf.col("registration_id").alias("registration"),
            "report",
            "since",
            sf.coalesce("until", sf.lit(NEVER_ENDS)).alias("until"),
        )
    )


def partition_by_id(versions: DataFrame, slices: int) -> DataFrame:
    """Partition by a hash of the id, so that slices do not depend on the layout of files."""
    return versions.repartition(slices, "id")
