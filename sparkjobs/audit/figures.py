"""Figures of assessed deliveries: by registration and hour, by hour, by client, and in total.
Percentiles are exact, in milliseconds. Spark module.
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
from sparkjobs.audit.scan import HOUR_US

PERCENTILES = {"p50_ms": 0.5, "p95_ms": 0.95, "p99_ms": 0.99}
_WITH_DELIVERY = (
    *("pending", "delivered", "dead_lettered", "cancelled", "discarded"),
    *(DROPPED, EXPANDING),
)


def _count(condition: Column) -> Column:
    return sf.sum(condition.cast("long"))


def _outcome(*names: str) -> Column:
    return sf.col("outcome").isin(*names)


def _figures() -> list[Column]:
    """Return the aggregates of assessed rows."""
    matched = sf.col("matched") & ~_outcome(NOT_EXPECTED)
    return [
        _count(matched).alias("matched"),
        _count(_outcome(*_WITH_DELIVERY)).alias("deliveries"),
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


def _grouped(assessed: DataFrame, *by: str) -> DataFrame:
    figures = assessed.groupBy(*by).agg(*_figures())
    for at, name in enumerate(PERCENTILES):
        figures = figures.withColumn(name, sf.round(sf.col("_latency")[at], 1))
    return figures.drop("_latency")


def totals(assessed: DataFrame) -> DataFrame:
    """Return one row."""
    return _grouped(assessed)


def by_hour(assessed: DataFrame) -> DataFrame:
    """Group by the hour in which events were appended."""
    return _grouped(assessed, "hour_us")


def by_registration(assessed: DataFrame, endpoints: DataFrame, clients: DataFrame) -> DataFrame:
    """Group by registration and hour, and add the registration's client: that of the endpoints in
    its deliveries, which are known even when its versions have been purged.
    """
    each = assessed.withColumn("registration_id", sf.explode("stored_registrations"))
    owners = endpoints.select(sf.col("id").alias("endpoint_id"), "client_id").join(
        clients.select(sf.col("id").alias("client_id"), "zone", sf.col("name").alias("client")),
        "client_id",
    )
    client = (
        each.select("registration_id", "endpoint_id")
        .distinct()
        .join(sf.broadcast(owners), "endpoint_id")
        .groupBy("registration_id")
        .agg(sf.max("zone").alias("zone"), sf.max("client").alias("client"))
    )
    return _grouped(each, "registration_id", "hour_us").join(client, "registration_id", "left")


def by_client(assessed: DataFrame, endpoints: DataFrame) -> DataFrame:
    """Group by client and hour of delivery."""
    owners = endpoints.select(sf.col("id").alias("endpoint_id"), "zone_id", "client")
    delivered = assessed.where(_outcome("delivered")).join(
        sf.broadcast(owners), "endpoint_id", "left"
    )
    return (
        delivered.withColumn("hour_us", sf.col("delivered_hour") * HOUR_US)
        .groupBy("zone_id", "client", "hour_us")
        .agg(
            sf.count("*").alias("delivered"),
            sf.min("finished_at_us").alias("first_delivered_us"),
            sf.max("finished_at_us").alias("last_delivered_us"),
        )
    )


def client_totals(hourly: DataFrame) -> DataFrame:
    """Sum the rows of `by_client` by client."""
    return hourly.groupBy("zone", "client").agg(
        sf.sum("delivered").alias("delivered"),
        sf.min("first_delivered_us").alias("first_delivered_us"),
        sf.max("last_delivered_us").alias("last_delivered_us"),
    )
