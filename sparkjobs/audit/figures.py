"""The figures of deliveries: by registration and hour, by hour, by client, by replay, and of all.
Percentiles are exact, of milliseconds. Spark module.
"""

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as sf

from sparkjobs.audit.deliveries import (
    DROPPED,
    EXPANDING,
    EXPIRED,
    NOT_DELIVERED,
    NOT_EXPECTED,
    SKIPPED,
    UNKNOWN,
)

HOUR_US = 3_600_000_000
PERCENTILES = {"p50_ms": 0.5, "p95_ms": 0.95, "p99_ms": 0.99}
_THERE = ("pending", "delivered", "dead_lettered", "cancelled", DROPPED, EXPANDING)


def _count(condition: Column) -> Column:
    return sf.sum(condition.cast("long"))


def _outcome(*names: str) -> Column:
    return sf.col("outcome").isin(*names)


def _figures() -> list[Column]:
    """Of any group of `judged` rows of run 0."""
    matched = sf.col("matched") & ~_outcome(NOT_EXPECTED)
    return [
        _count(matched).alias("matched"),
        _count(_outcome(*_THERE)).alias("owed"),
        _count(_outcome("delivered")).alias("delivered"),
        _count(_outcome("pending", EXPANDING)).alias("pending"),
        _count(_outcome("dead_lettered")).alias("dead_lettered"),
        _count(_outcome("cancelled")).alias("cancelled"),
        _count(_outcome(NOT_DELIVERED)).alias("not_delivered"),
        _count(sf.col("late")).alias("late"),
        _count(sf.coalesce("attempts", sf.lit(0)) > 1).alias("retried"),
        sf.sum("repeats").alias("repeats"),
        _count(matched & ~_outcome("delivered", EXPIRED, SKIPPED, UNKNOWN)).alias("undelivered"),
        _count(_outcome(EXPIRED)).alias("expired"),
        _count(_outcome(SKIPPED)).alias("skipped"),
        _count(_outcome(UNKNOWN)).alias("unknown"),
        sf.percentile("latency_ms", sf.array(*map(sf.lit, PERCENTILES.values()))).alias("_latency"),
    ]


def _grouped(live: DataFrame, *by: str) -> DataFrame:
    found = live.groupBy(*by).agg(*_figures())
    for place, name in enumerate(PERCENTILES):
        found = found.withColumn(name, sf.round(sf.col("_latency")[place], 1))
    return found.drop("_latency")


def totals(live: DataFrame) -> DataFrame:
    """One row. `live`: judged rows of run 0."""
    return _grouped(live)


def by_hour(live: DataFrame) -> DataFrame:
    """By the hour in which events were appended."""
    return _grouped(live, "hour_us")


def by_registration(live: DataFrame, endpoints: DataFrame, clients: DataFrame) -> DataFrame:
    """By registration and hour, with whose it is: its client is that of the endpoints it named,
    which is known when its versions are not any more.
    """
    each = live.withColumn("registration_id", sf.explode("told"))
    owners = endpoints.select(sf.col("id").alias("endpoint_id"), "client_id").join(
        clients.select(sf.col("id").alias("client_id"), "zone", sf.col("name").alias("client")),
        "client_id",
    )
    whose = (
        each.select("registration_id", "endpoint_id")
        .distinct()
        .join(sf.broadcast(owners), "endpoint_id")
        .groupBy("registration_id")
        .agg(sf.max("zone").alias("zone"), sf.max("client").alias("client"))
    )
    return _grouped(each, "registration_id", "hour_us").join(whose, "registration_id", "left")


def by_client(found: DataFrame, endpoints: DataFrame) -> DataFrame:
    """By client and the hour in which it was told: replays too."""
    whose = endpoints.select(sf.col("id").alias("endpoint_id"), "zone_id", "client")
    told = found.where(_outcome("delivered")).join(sf.broadcast(whose), "endpoint_id", "left")
    return (
        told.withColumn("hour_us", sf.col("told_hour") * HOUR_US)
        .groupBy("zone_id", "client", "hour_us")
        .agg(
            sf.count("*").alias("told"),
            _count(sf.col("run") > 0).alias("replayed"),
            sf.min("finished_at_us").alias("first_told_us"),
            sf.max("finished_at_us").alias("last_told_us"),
        )
    )


def clients_in_all(hourly: DataFrame) -> DataFrame:
    """By client, of what `by_client` gives."""
    return hourly.groupBy("zone", "client").agg(
        sf.sum("told").alias("told"),
        sf.sum("replayed").alias("replayed"),
        sf.min("first_told_us").alias("first_told_us"),
        sf.max("last_told_us").alias("last_told_us"),
    )


def by_replay(found: DataFrame) -> DataFrame:
    """Runs beside the live one."""
    return (
        found.where("run > 0")
        .groupBy("run", "stream_id")
        .agg(
            sf.count("*").alias("deliveries"),
            _count(_outcome("delivered")).alias("delivered"),
            _count(_outcome("pending")).alias("pending"),
            _count(_outcome("dead_lettered")).alias("dead_lettered"),
            sf.min("created_at_us").alias("first_us"),
            sf.max(sf.coalesce("finished_at_us", "created_at_us")).alias("last_us"),
        )
    )
