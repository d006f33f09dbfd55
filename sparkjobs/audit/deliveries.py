"""What was owed against what was written and tried: one row for each delivery that there is or
should be, and what is wrong with it. Spark module.
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
KEY = ("endpoint_id", "segment_id", "sequence", "run")
_SUCCESS = "delivered"
_SECOND_US = 1_000_000
_DAY_US = 24 * 3600 * _SECOND_US
# States of deliveries, and why there is none where a match says that there should be.
EXPANDING = "expanding"  # its fan-out is still being written
EXPIRED = "expired"  # before it was matched, or (the state of a delivery) before it was posted
SKIPPED = "skipped"  # its events were gone before they were matched; a notice says so
DROPPED = "dropped"  # because too much waited for its endpoint
UNKNOWN = "unknown"  # nobody can tell
NOT_EXPECTED = "nobody"  # not owed with the groups that clients have now, or as its type was then


def attempts_by_delivery(attempts: DataFrame) -> DataFrame:
    """By delivery: how many attempts there were, when one succeeded, and how many came after it."""
    good = sf.col("outcome") == _SUCCESS
    return (
        attempts.groupBy(*KEY)
        .agg(
            sf.min(sf.when(good, sf.col("number"))).alias("success"),
            sf.max("number").alias("tries"),
        )
        .select(
            *KEY,
            sf.col("success").isNotNull().alias("succeeded"),
            sf.coalesce(sf.col("tries") - sf.col("success"), sf.lit(0)).alias("repeats"),
        )
    )


def stored_deliveries(deliveries: DataFrame, fanouts: DataFrame) -> DataFrame:
    """Deliveries as they are, with those of fan-outs that are to come. Notices of gaps are none,
    but one of a backlog was the last delivery that it stands for.
    """
    notice = sf.col("gap_first").isNotNull()
    there = deliveries.where(~notice | (sf.col("gap_reason") == BACKLOG)).select(
        *KEY,
        sf.when(sf.col("state") != DROPPED, sf.when(~notice, sf.col("registrations"))).alias(
            "told"
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
        sf.lit(0).cast("long").alias("run"),
        sf.lit(EXPANDING).alias("state"),
        sf.lit(0).cast("long").alias("attempts"),
    )
    return there.unionByName(coming, allowMissingColumns=True)


def compare(owed: DataFrame, there: DataFrame, tried: DataFrame) -> DataFrame:
    """All that is owed or written, by KEY: `matched` where the event matches."""
    expected = owed.select(
        "endpoint_id",
        "segment_id",
        "sequence",
        sf.lit(0).cast("long").alias("run"),
        sf.lit(True).alias("matched"),
        "registrations",
        "appended_at_us",
        "doubt",
    )
    return (
        expected.join(there, [*KEY], "full_outer")
        .join(tried, [*KEY], "left")
        .fillna(False, ["matched", "succeeded"])
        .fillna(0, ["repeats"])
    )


def segment_facts(
    segments: DataFrame, streams: DataFrame, read: DataFrame, retired: DataFrame
) -> DataFrame:
    """By segment, what judging its deliveries takes. `lost`: some may have left with a partition
    that was archived nowhere, which held others of it.
    """
    ranges = sf.explode(sf.arrays_zip("segments_from", "segments_to")).alias("held")
    gone = retired.where("parent = 'deliveries' and not archived and rows > 0").select(ranges)
    of_stream = streams.select(sf.col("id").alias("stream_id"), "forwarded")
    rows = segments.select("stream_id", sf.col("id").alias("segment_id"))
    held = sf.col("segment_id").between(sf.col("held.segments_from"), sf.col("held.segments_to"))
    lost = rows.join(sf.broadcast(gone), held, "left_semi").select(
        "segment_id", sf.lit(True).alias("lost")
    )
    seen = read.select("segment_id", sf.lit(True).alias("seen"))
    return (
        rows.join(sf.broadcast(of_stream), "stream_id")
        .join(lost, "segment_id", "left")
        .join(seen, "segment_id", "left")
        .select("segment_id", "stream_id", "forwarded", "lost", "seen")
        .fillna(False, ["lost", "seen"])
    )


def judge(
    rows: DataFrame, of_segment: DataFrame, skipped: DataFrame, days: Sequence[str], now_us: int
) -> DataFrame:
    """The rows of `compared` with what became of each (`outcome`), and what is wrong (`faults`).

    `skipped`: ranges that notices stand for (gaps.py). `days`: of attempts that left and were
    archived nowhere.
    """
    known = mark_skipped(rows.join(of_segment, "segment_id", "left"), skipped)
    latency = sf.col("finished_at_us") - sf.col("appended_at_us")
    waits = sf.lit(now_us) - sf.col("appended_at_us")
    late_us = int(limits.AUDIT_LATE_S * _SECOND_US)
    told = sf.coalesce("told", "registrations")
    return (
        known.withColumn("outcome", sf.coalesce("state", _absent()))
        .withColumn("faults", _faults(days))
        .select(
            *KEY,
            "stream_id",
            "matched",
            "outcome",
            "faults",
            "registrations",
            told.alias("told"),
            "attempts",
            "repeats",
            "appended_at_us",
            "created_at_us",
            "finished_at_us",
            _hour(sf.coalesce("appended_at_us", "created_at_us")).alias("hour_us"),
            sf.when(sf.col("outcome") == _SUCCESS, sf.expr("finished_at_us div 3600000000"))
            .cast("long")
            .alias("told_hour"),
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


def _absent() -> Column:
    """Why there is no delivery although the event matches, the surest first."""
    return (
        sf.when(sf.col("doubt").isin(Doubt.OTHER_GROUPS, Doubt.LATER_TYPES), sf.lit(NOT_EXPECTED))
        .when(sf.col("skipped"), sf.lit(SKIPPED))
        .when(sf.col("doubt") == Doubt.EXPIRES, sf.lit(EXPIRED))
        .when(sf.col("lost") | sf.col("doubt").isin(Doubt.GROUPS, Doubt.TYPES), sf.lit(UNKNOWN))
        .otherwise(sf.lit(NOT_DELIVERED))
    )


def _faults(days: Sequence[str]) -> Column:
    """Kinds of findings; none for nearly all rows."""
    there = sf.col("state").isNotNull() & (sf.col("state") != EXPANDING)
    live = there & (sf.col("run") == 0)
    judge = sf.col("seen") & (sf.col("sequence") <= sf.coalesce("forwarded", sf.lit(0)))
    differs = sf.sort_array("told") != sf.sort_array("registrations")
    sure = sf.col("doubt").isNull() | (sf.col("doubt") == Doubt.EXPIRES)
    finished = sf.col("finished_at_us")
    gone = _day(finished).isin(*days) | _day(finished - _DAY_US).isin(*days)
    gone = sf.coalesce(gone, sf.lit(False))
    unproved = (sf.col("state") == _SUCCESS) & ~sf.col("succeeded") & ~gone
    return sf.filter(
        sf.array(
            sf.when(sf.col("outcome") == NOT_DELIVERED, sf.lit(NOT_DELIVERED)),
            sf.when(live & ~sf.col("matched") & judge, sf.lit(NOT_MATCHED)),
            sf.when(live & sf.col("matched") & sure & differs, sf.lit(WRONG_REGISTRATIONS)),
            sf.when(unproved, sf.lit(WITHOUT_ATTEMPT)),
        ),
        lambda kind: kind.isNotNull(),
    )


def _day(time_us: Column) -> Column:
    return sf.date_format(sf.timestamp_micros(time_us), "yyyy-MM-dd")


def _hour(time_us: Column) -> Column:
    return time_us - sf.pmod(time_us, sf.lit(HOUR_US))


def delivery_faults(found: DataFrame, unseen: DataFrame) -> DataFrame:
    """A row for each fault of `judged` rows, but of events that could not be looked at."""
    each = found.where("size(faults) > 0").select("*", sf.explode("faults").alias("kind"))
    hidden = unseen.select(
        sf.col("segment_id").alias("hidden_in"),
        sf.col("first").alias("a"),
        sf.col("last").alias("b"),
    )
    unlooked = (
        (sf.col("kind") == NOT_MATCHED)
        & (sf.col("segment_id") == sf.col("hidden_in"))
        & sf.col("sequence").between(sf.col("a"), sf.col("b"))
    )
    wanted, has = _first_of("registrations"), _first_of("told")
    evidence = (
        sf.when(
            sf.col("kind") == NOT_DELIVERED,
            sf.format_string("It matches registrations %s; there is no delivery.", wanted),
        )
        .when(
            sf.col("kind") == NOT_MATCHED,
            sf.format_string("The delivery (%s) names registrations %s.", "outcome", has),
        )
        .when(
            sf.col("kind") == WRONG_REGISTRATIONS,
            sf.format_string("It matches registrations %s; the delivery names %s.", wanted, has),
        )
        .otherwise(
            sf.format_string(
                "Run %d, %d attempts counted; none that succeeded is on record.", "run", "attempts"
            )
        )
    )
    return each.join(hidden, unlooked, "left_anti").select(
        "stream_id",
        "segment_id",
        "kind",
        sf.col("sequence").alias("first"),
        sf.col("sequence").alias("last"),
        evidence.alias("evidence"),
        "endpoint_id",
        sf.array_min("told").alias("registration"),
    )


def _first_of(name: str) -> Column:
    """Of a list of numbers as many as people read."""
    most = limits.AUDIT_EVIDENCE_REGISTRATIONS_MAX
    first = sf.concat_ws(", ", sf.slice(name, 1, most))
    return sf.when(sf.size(name) > most, sf.concat(first, sf.lit(", ..."))).otherwise(first)
