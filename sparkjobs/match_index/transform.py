"""The versions that a stream's match index has, with its columns (docs/match-index.md). Spark
module. Spark module.
"""

from pyspark.sql import DataFrame
from pyspark.sql import functions as sf

from registrations.match_index.format.versions import COLUMNS, NEVER_ENDS

INDEXED = ("id", "language", "filter", *COLUMNS)


def indexed_versions(versions: DataFrame, stream_id: int, after: int) -> DataFrame:
    """Of `tables.VERSIONS` those with an endpoint, not suspended by themselves, that can hold for
    an event after that sequence; with INDEXED.
    """
    can_hold = sf.col("until").isNull() | (
        sf.col("until") > sf.greatest(sf.lit(after), sf.col("since"))
    )
    return (
        versions.where(sf.col("stream_id") == stream_id)
        .where(sf.col("endpoint_id").isNotNull() & ~sf.col("suspended"))
        .where(can_hold)
        .select(
            "id",
            "language",
            "filter",
            sf.col("client_id").alias("client"),
            sf.col("endpoint_id").alias("endpoint"),
            sf.coalesce("group_id", sf.lit(0)).alias("group"),
            sf.col("registration_id").alias("registration"),
            sf.col("report").cast("long").alias("report"),
            "since",
            sf.coalesce("until", sf.lit(NEVER_ENDS)).alias("until"),
        )
    )


def partition_by_id(versions: DataFrame, slices: int) -> DataFrame:
    """Parted by a hash of the version's id: what is in a slice does not depend on files."""
    return versions.repartition(slices, "id")
