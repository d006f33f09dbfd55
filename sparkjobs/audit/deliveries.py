"""The comparison of expected deliveries with stored deliveries and attempts: one row for each
delivery that exists or should exist, with its outcome and its faults. Spark module.
"""

from collections.abc import Sequence

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as sf

from eventhub.base import limits
from sparkjobs.audit.gaps import BACKLOG, mark_skipped
from sparkjobs.audit.scan import HOUR_US
from sparkjobs.expected_deliveries import Doubt

NOT_DELIVERED, NOT_MATCHED = "not_delivered", "not_matched"
WRONG_REGISTRATIONS = "wrong_registrations"
WITHOUT_ATTEMPT = "delivered_without_attempt"
KEY = ("endpoint_id", "segment_id", "sequence")
_SUCCESS = "delivered"
_SECOND_US = 1_000_000
_DAY_US = 24 * 3600 * _SECOND_US
# Outcomes: states of deliveries, and reasons why an expected delivery does not exist.
EXPANDING = "expanding"  # its fan-out is still being written
EXPIRED = "expired"  # before it was matched, or (the state of a delivery) before it was posted
SKIPPED = "skipped"  # its event was dropped before it was matched; a notice says so
DROPPED = "dropped"  # its endpoint's backlog was too large
UNKNOWN = "unknown"  # the evidence no longer exists
NOT_EXPECTED = "not_expected"  # with the clients' present groups, or with the type's state then


def attempts_by_delivery(attempts: DataFrame) -> DataFrame:
    """Return, by KEY, whether an attempt `succeeded` and how many followed it (`repeats`)."""
    is_success = sf.col("outcome") == _SUCCESS
    return (
        attempts.groupBy(*KEY)
        .agg(
            sf.min(sf.when(is_success, sf.col("number"))).alias("success"),
            sf.max("number").alias("last"),
        )
        .select(
            *KEY,
            sf.col("success").isNotNull().alias("succeeded"),
            sf.coalesce(sf.col("last") - sf.col("success"), sf.lit(0)).alias("repeats"),
        )
    )


def stored_deliveries(deliveries: DataFrame, fanouts: DataFrame) -> DataFrame:
    """Return the stored deliveries and those that fan-outs have yet to write. Gap notices are not
    deliveries, except that a notice of a backlog took the place of the last delivery it covers.
    """
    notice = sf.col("gap_first").isNotNull()
    stored = deliveries.where(~notice | (sf.col("gap_reason") == BACKLOG)).select(
        *KEY,
        sf.when(sf.col("state") != DROPPED, sf.when(~notice, sf.col("registrations"))).alias(
            "stored_registrations"
        ),
        sf.when(notice, sf.lit(DROPPED)).otherwise(sf.col("state")).alias("state"),
        "attempts",
        "created_at_us",
        "finished_at_us",
    )
    rest = sf.slice("endpoints", sf.col("done") + 1, sf.greatest(sf.size("endpoints"), sf.lit(1)))
    coming = fanouts.select("segment_id", "sequence", sf.explode(rest).alias("endpoint_id")).select(
        "endpoint_id",
        "segment_id",
        "sequence",
        sf.lit(EXPANDING).alias("state"),
        sf.lit(0).cast("long").alias("attempts"),
    )
    return stored.unionByName(coming, allowMissingColumns=True)


def compare(expected: DataFrame, stored: DataFrame, attempts: DataFrame) -> DataFrame:
    """Join expected and stored deliveries by KEY; `matched`: the event matches."""
    matched = expected.select(
        "endpoint_id",
        "segment_id",
        "sequence",
        sf.lit(True).alias("matched"),
        "registrations",
        "appended_at_us",
        "doubt",
    )
    return (
        matched.join(stored, [*KEY], "full_outer")
        .join(attempts, [*KEY], "left")
        .fillna(False, ["matched", "succeeded"])
        .fillna(0, ["repeats"])
    )


def segment_facts(
    segments: DataFrame, streams: DataFrame, read: DataFrame, retired: DataFrame
) -> DataFrame:
    """Return, by segment, what assessing its deliveries needs. `lost`: some of its deliveries may
    have been in a dropped partition that was not archived. `scanned`: its events were read.
    """
    ranges = sf.explode(sf.arrays_zip("segments_from", "segments_to")).alias("held")
    dropped = retired.where("parent = 'deliveries' and not archived and rows > 0").select(ranges)
    of_stream = streams.select(sf.col("id").alias("stream_id"), "forwarded")
    rows = segments.select("stream_id", sf.col("id").alias("segment_id"))
    held = sf.col("segment_id").between(sf.col("held.segments_from"), sf.col("held.segments_to"))
    lost = rows.join(sf.broadcast(dropped), held, "left_semi").select(
        "segment_id", sf.lit(True).alias("lost")
    )
    scanned = read.select("segment_id", sf.lit(True).alias("scanned"))
    return (
        rows.join(sf.broadcast(of_stream), "stream_id")
        .join(lost, "segment_id", "left")
        .join(scanned, "segment_id", "left")
        .select("segment_id", "stream_id", "forwarded", "lost", "scanned")
        .fillna(False, ["lost", "scanned"])
    )


def assess(
    rows: DataFrame, of_segment: DataFrame, skipped: DataFrame, days: Sequence[str], now_us: int
) -> DataFrame:
    """Add to the rows of `compare` their `outcome` and `faults`.

    `skipped`: ranges that notices cover (gaps.py). `days`: those whose attempts were dropped
    without being archived.
    """
    known = mark_skipped(rows.join(of_segment, "segment_id", "left"), skipped)
    latency = sf.col("finished_at_us") - sf.col("appended_at_us")
    waits = sf.lit(now_us) - sf.col("appended_at_us")
    late_us = int(limits.AUDIT_LATE_S * _SECOND_US)
    stored = sf.coalesce("stored_registrations", "registrations")
    return (
        known.withColumn("outcome", sf.coalesce("state", _reason_absent()))
        .withColumn("faults", _faults(days))
        .select(
            *KEY,
            "stream_id",
            "matched",
            "outcome",
            "faults",
            "registrations",
            stored.alias("stored_registrations"),
            "attempts",
            "repeats",
            "appended_at_us",
            "created_at_us",
            "finished_at_us",
            _hour(sf.coalesce("appended_at_us", "created_at_us")).alias("hour_us"),
            sf.when(sf.col("outcome") == _SUCCESS, sf.expr("finished_at_us div 3600000000"))
            .cast("long")
            .alias("delivered_hour"),
            sf.when(sf.col("outcome") == _SUCCESS, (latency / 1_000).cast("long")).alias(
                "latency_ms"
            ),
            sf.coalesce(
                sf.when(sf.col("outcome") == _SUCCESS, latency > late_us).when(
                    sf.col("outcome").isin("pending", EXPANDING, NOT_DELIVERED), waits > late_us
                ),
                sf.lit(False),
            ).alias("late"),
        )
    )


def _reason_absent() -> Column:
    """Return why no delivery exists although the event matches; the surest reason wins."""
    return (
        sf.when(sf.col("doubt").isin(Doubt.OTHER_GROUPS, Doubt.LATER_TYPES), sf.lit(NOT_EXPECTED))
        .when(sf.col("skipped"), sf.lit(SKIPPED))
        .when(sf.col("doubt") == Doubt.EXPIRES, sf.lit(EXPIRED))
        .when(sf.col("lost") | sf.col("doubt").isin(Doubt.GROUPS, Doubt.TYPES), sf.lit(UNKNOWN))
        .otherwise(sf.lit(NOT_DELIVERED))
    )


def _faults(days: Sequence[str]) -> Column:
    """Return the kinds of findings; nearly all rows have none."""
    stored = sf.col("state").isNotNull() & (sf.col("state") != EXPANDING)
    known = sf.col("scanned") & (sf.col("sequence") <= sf.coalesce("forwarded", sf.lit(0)))
    differs = sf.sort_array("stored_registrations") != sf.sort_array("registrations")
    sure = sf.col("doubt").isNull() | (sf.col("doubt") == Doubt.EXPIRES)
    finished = sf.col("finished_at_us")
    dropped = _day(finished).isin(*days) | _day(finished - _DAY_US).isin(*days)
    dropped = sf.coalesce(dropped, sf.lit(False))
    unproved = (sf.col("state") == _SUCCESS) & ~sf.col("succeeded") & ~dropped
    return sf.filter(
        sf.array(
            sf.when(sf.col("outcome") == NOT_DELIVERED, sf.lit(NOT_DELIVERED)),
            sf.when(stored & ~sf.col("matched") & known, sf.lit(NOT_MATCHED)),
            sf.when(stored & sf.col("matched") & sure & differs, sf.lit(WRONG_REGISTRATIONS)),
            sf.when(unproved, sf.lit(WITHOUT_ATTEMPT)),
        ),
        lambda kind: kind.isNotNull(),
    )


def _day(time_us: Column) -> Column:
    return sf.date_format(sf.timestamp_micros(time_us), "yyyy-MM-dd")


def _hour(time_us: Column) -> Column:
    return time_us - sf.pmod(time_us, sf.lit(HOUR_US))


def delivery_faults(assessed: DataFrame, unchecked: DataFrame) -> DataFrame:
    """Return a row for each fault of assessed rows, except for events that could not be checked."""
    each = assessed.where("size(faults) > 0").select("*", sf.explode("faults").alias("kind"))
    hidden = unchecked.select(
        sf.col("segment_id").alias("hidden_in"),
        sf.col("first").alias("a"),
        sf.col("last").alias("b"),
    )
    is_hidden = (
        (sf.col("kind") == NOT_MATCHED)
        & (sf.col("segment_id") == sf.col("hidden_in"))
        & sf.col("sequence").between(sf.col("a"), sf.col("b"))
    )
    matched, stored = _first_numbers("registrations"), _first_numbers("stored_registrations")
    evidence = (
        sf.when(
            sf.col("kind") == NOT_DELIVERED,
            sf.format_string("The event matches registrations %s; no delivery exists.", matched),
        )
        .when(
            sf.col("kind") == NOT_MATCHED,
            sf.format_string("The delivery (%s) names registrations %s.", "outcome", stored),
        )
        .when(
            sf.col("kind") == WRONG_REGISTRATIONS,
            sf.format_string(
                "The event matches registrations %s; the delivery names %s.", matched, stored
            ),
        )
        .otherwise(sf.format_string("%d attempts, none recorded as successful.", "attempts"))
    )
    return each.join(hidden, is_hidden, "left_anti").select(
        "stream_id",
        "segment_id",
        "kind",
        sf.col("sequence").alias("first"),
        sf.col("sequence").alias("last"),
        evidence.alias("evidence"),
        "endpoint_id",
        sf.array_min("stored_registrations").alias("registration"),
    )


def _first_numbers(name: str) -> Column:
    """Format the first numbers of a list column, as many as people read."""
    most = limits.AUDIT_EVIDENCE_REGISTRATIONS_MAX
    first = sf.concat_ws(", ", sf.slice(name, 1, most))
    return sf.when(sf.size(name) > most, sf.concat(first, sf.lit(", ..."))).otherwise(first)
