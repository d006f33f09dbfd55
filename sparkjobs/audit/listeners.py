"""The audit of listeners: whether each client received every event over all its incarnations
(FOX-23), from the record of its listeners and the events that they matched. Spark module.

The record says how many events were delivered to a listener between two sequences. The cursor of
the next listener is the client's claim of what it has; so events before that cursor which no
listener received were skipped. A killed process leaves its rows open: what it delivered last is
known from the client's claim alone.
"""

from typing import NamedTuple

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as sf

from sparkjobs.audit import event_log, listener_counts
from sparkjobs.audit.output import stored
from sparkjobs.expected_deliveries import ExecutorPaths
from sparkjobs.job_spec import JobSpec
from sparkjobs.segment_files import open_table
from sparkjobs.tables import LISTENERS

NOT_DELIVERED, NOT_MATCHED = "listener_not_delivered", "listener_not_matched"
SKIPPED = "skipped"
SORTED_BY = ("zone", "client", "client_id", "stream", "stream_id", "request_digest")
_KEY = ["stream_id", "client_id", "request_digest"]
_FAULTS = "stream_id long, segment_id long, kind string, first long, last long, evidence string"
_CLIENTS = (
    "stream_id long, client_id long, request_digest string, client string, filter string,"
    " incarnations long, nodes long, after long, through long, expected long, delivered long,"
    " repeats long, skipped long, unchecked long"
)
_POINTS = ("sequence", "delivered_sequence", "covered", "top", "low")
_COUNTS = {"sure": "expected", "doubtful": "doubtful", "unchecked": "unchecked"}  # -> assessed


class ListenerAudit(NamedTuple):
    """`faults` have the columns of scan.FAULT and `client`; `clients` has a row for each client,
    stream and interest.
    """

    faults: DataFrame
    clients: DataFrame


class ListenerTables(NamedTuple):
    """The input tables of this audit."""

    listeners: DataFrame
    segments: DataFrame
    streams: DataFrame
    clients: DataFrame


def audit_listeners(spec: JobSpec, tables: ListenerTables) -> ListenerAudit:
    """Audit all listeners; the segments of their streams are read once more."""
    listeners, segments, streams, clients = tables
    spark = listeners.sparkSession
    if not open_table(spec.inputs, "listeners", LISTENERS).count_rows():
        return ListenerAudit(
            spark.createDataFrame([], f"{_FAULTS}, client string"),
            spark.createDataFrame([], _CLIENTS),
        )
    ranged = stored(ranges(listeners), spec.work, "listener-ranges")
    stored(interests(ranged, clients), spec.work, listener_counts.INTERESTS)
    points = stored(points_of(ranged), spec.work, listener_counts.POINTS)
    zones = streams.select(sf.col("id").alias("stream_id"), "zone_id")
    lowest = points.groupBy("stream_id").agg(sf.min("sequence").alias("from"))
    to_count = (
        segments.join(zones, "stream_id")
        .join(sf.broadcast(lowest), "stream_id")
        .where("last >= first and last > from")
        .drop("from")
    )
    paths = ExecutorPaths(spec.inputs, spec.work, spec.now_us)
    counts = listener_counts.count_events(to_count, paths, spec.archive_url)
    counts = stored(counts, spec.work, "listener-counts")
    gaps = event_log.discontinuities(segments, streams)
    assessed = add_unchecked(assess(ranged, cumulate(points, counts)), gaps)
    assessed = stored(assessed, spec.work, "listeners")
    return ListenerAudit(faults(assessed), by_client(assessed))


def ranges(listeners: DataFrame) -> DataFrame:
    """Relate each listener to the earlier ones of its client.

    `covered`: the sequence up to which the client had been served (null: nothing is recorded).
    `lost`: the range from there to the listener's cursor was skipped. Otherwise that range is the
    client's claim, its own choice of a start, or was reported to it as missing.
    """
    of_interest = Window.partitionBy(*_KEY).orderBy("id").rowsBetween(Window.unboundedPreceding, -1)
    of_any = (
        Window.partitionBy("stream_id", "client_id")
        .orderBy("id")
        .rowsBetween(Window.unboundedPreceding, -1)
    )
    resumed = sf.col("start") == "cursor"
    last_open = sf.max(sf.when(sf.col("ended_at_us").isNull(), sf.col("id"))).over(of_interest)
    last_resumed = sf.max(sf.when(resumed, sf.col("id"))).over(of_interest)
    unrecorded = sf.max(sf.col("transport") == "unrecorded").over(of_any)
    highest = sf.max("delivered_sequence")
    rows = (
        listeners.withColumn(
            "covered", sf.coalesce(highest.over(of_interest), highest.over(of_any))
        )
        .withColumn("claim", sf.coalesce(last_open >= sf.coalesce(last_resumed, last_open), _no()))
        .withColumn("claim", sf.col("claim") | sf.coalesce(unrecorded, _no()))
        .where("transport <> 'unrecorded'")
    )
    ahead = resumed & (sf.col("sequence") > sf.col("covered"))
    return (
        rows.withColumn("lost", sf.coalesce(ahead & ~sf.col("claim"), _no()))
        .withColumn(
            "low", sf.when(ahead & sf.col("claim"), sf.col("covered")).otherwise(sf.col("sequence"))
        )
        .withColumn("top", _before(highest))
    )


def _before(highest: Column) -> Column:
    """Aggregate over the ranges that start lower."""
    order = Window.partitionBy(*_KEY).orderBy("low", "id")
    return highest.over(order.rowsBetween(Window.unboundedPreceding, -1))


def _no() -> Column:
    return sf.lit(False)


def interests(ranged: DataFrame, clients: DataFrame) -> DataFrame:
    """Return listener_counts.INTEREST."""
    zones = clients.select(sf.col("id").alias("client_id"), "zone")
    first = [sf.first(name).alias(name) for name in ("mask", "filter", "registrations", "client")]
    found = ranged.groupBy(*_KEY).agg(*first).join(zones, "client_id", "left")
    return found.select(*listener_counts.INTEREST.names)


def points_of(ranged: DataFrame) -> DataFrame:
    """Return listener_counts.POINT: every sequence up to which events are counted."""
    points = sf.array(*_POINTS)
    each = ranged.select(*_KEY, sf.explode(sf.array_compact(points)).alias("sequence"))
    return each.distinct().select(*listener_counts.POINT.names)


def cumulate(points: DataFrame, counts: DataFrame) -> DataFrame:
    """Sum the counts from the start of the first counted segment up to each point. Interests that
    were not recorded have no rows.
    """
    wholes = counts.where("whole").withColumn("rank", sf.lit(0)).drop("whole")
    zeros = [sf.lit(0).cast("long").alias(name) for name in _COUNTS]
    marks = points.join(wholes.select(*_KEY).distinct(), _KEY).select(
        *_KEY, "sequence", *zeros, sf.lit(1).alias("rank")
    )
    through = (
        Window.partitionBy(*_KEY)
        .orderBy("sequence", "rank")
        .rowsBetween(Window.unboundedPreceding, Window.currentRow)
    )
    below = (
        wholes.unionByName(marks)
        .select(*_KEY, "sequence", "rank", *(sf.sum(n).over(through).alias(n) for n in _COUNTS))
        .where("rank = 1")
    )
    inside = counts.where("not whole").select(
        *_KEY, "sequence", *(sf.col(name).alias(f"in_{name}") for name in _COUNTS)
    )
    sums = [
        (sf.col(name) + sf.coalesce(sf.col(f"in_{name}"), sf.lit(0))).alias(name)
        for name in _COUNTS
    ]
    return below.join(inside, [*_KEY, "sequence"], "left").select(*_KEY, "sequence", *sums)


def assess(ranged: DataFrame, up_to: DataFrame) -> DataFrame:
    """Add the numbers of events in each listener's ranges: `expected` within its own (and
    `doubtful`, `unchecked`), `before` it since `covered`, and `fresh` ones that no earlier
    listener's range contains.
    """
    each = ranged.select(
        *_KEY,
        "id",
        sf.explode(sf.create_map(*(part for name in _POINTS for part in (sf.lit(name), name)))),
    ).withColumnsRenamed({"key": "point", "value": "sequence"})
    of_listener = each.join(up_to, [*_KEY, "sequence"]).groupBy("id")
    sums = of_listener.agg(
        *(
            sf.max(sf.when(sf.col("point") == point, sf.col(count))).alias(f"{count}_{point}")
            for point in _POINTS
            for count in _COUNTS
        )
    )
    found = ranged.join(sums, "id", "left")
    top = sf.greatest(sf.col("top"), sf.col("low"))
    sure_top = sf.when(top == sf.col("low"), sf.col("sure_low")).otherwise(sf.col("sure_top"))
    end = sf.greatest(sf.col("sure_delivered_sequence"), sure_top)
    return found.select(
        *ranged.columns,
        *(
            (sf.col(f"{n}_delivered_sequence") - sf.col(f"{n}_sequence")).alias(_COUNTS[n])
            for n in _COUNTS
        ),
        (sf.col("sure_sequence") - sf.col("sure_covered")).alias("before"),
        (sf.col("unchecked_sequence") - sf.col("unchecked_covered")).alias("before_unchecked"),
        (end - sure_top).alias("fresh"),
        sf.col("sure_low"),
        sf.col("sure_delivered_sequence").alias("sure_end"),
    )


def add_unchecked(assessed: DataFrame, gaps: DataFrame) -> DataFrame:
    """Count as unchecked the sequences for which a stream has no segment; the audit of the log
    reports those.
    """
    begin = sf.least("covered", "sequence")
    of_fault = gaps.select(sf.col("stream_id").alias("of"), "first", "last")
    overlaps = (
        (sf.col("stream_id") == sf.col("of"))
        & (sf.col("last") > begin)
        & (sf.col("first") <= sf.col("delivered_sequence"))
    )
    within = assessed.join(sf.broadcast(of_fault), overlaps)
    cut = within.groupBy("id").agg(sf.sum(sf.expr("last - first + 1")).alias("cut"))
    known = assessed.join(cut, "id", "left").fillna(0, ["cut"])
    for name in ("unchecked", "before_unchecked"):
        known = known.withColumn(name, sf.col(name) + sf.col("cut"))
    return known.drop("cut")


def faults(assessed: DataFrame) -> DataFrame:
    """Return the listeners that received fewer or more events than they matched, and those that
    skipped some.
    """
    checked = sf.col("unchecked") == 0
    received = sf.format_string(
        "Listener %d received %d events; %d matched, and %d more may have matched.",
        *("id", "delivered_events", "expected", "doubtful"),
    )
    less = assessed.where(checked & (sf.col("delivered_events") < sf.col("expected")))
    most = sf.col("expected") + sf.col("doubtful")
    more = assessed.where(checked & (sf.col("delivered_events") > most))
    holes = assessed.where("lost and before > 0 and before_unchecked = 0")
    skipped = sf.format_string(
        "Listener %d starts after %d events that no earlier one received.", "id", "before"
    )
    return (
        _fault(less, NOT_DELIVERED, "sequence", "delivered_sequence", received)
        .unionByName(_fault(more, NOT_MATCHED, "sequence", "delivered_sequence", received))
        .unionByName(_fault(holes, SKIPPED, "covered", "sequence", skipped))
    )


def _fault(rows: DataFrame, kind: str, after: str, last: str, evidence: Column) -> DataFrame:
    return rows.select(
        "stream_id",
        sf.lit(None).cast("long").alias("segment_id"),
        sf.lit(kind).alias("kind"),
        (sf.col(after) + 1).alias("first"),
        sf.col(last).alias("last"),
        evidence.alias("evidence"),
        "client",
    )


def by_client(assessed: DataFrame) -> DataFrame:
    """Sum by client, stream and interest: incarnations, web processes, `expected` events between
    the start of the first listener and the end of the last, `delivered` ones of them (the client's
    claims included), repeats, and skipped ones. Null where the interest was not recorded.
    """
    with_claim = sf.when(
        sf.col("low") < sf.col("sequence"), sf.col("expected") + sf.col("before")
    ).otherwise(sf.col("expected"))
    return assessed.groupBy(*_KEY).agg(
        sf.first("client").alias("client"),
        sf.first("filter").alias("filter"),
        sf.count("*").alias("incarnations"),
        sf.countDistinct("node").alias("nodes"),
        sf.min("low").alias("after"),
        sf.max("delivered_sequence").alias("through"),
        (sf.max("sure_end") - sf.min("sure_low")).alias("expected"),
        sf.sum("fresh").alias("delivered"),
        (sf.sum(with_claim) - sf.sum("fresh")).alias("repeats"),
        sf.sum(sf.when(sf.col("lost"), sf.col("before")).otherwise(0)).alias("skipped"),
        sf.sum("unchecked").alias("unchecked"),
    )


def with_names(clients: DataFrame, streams: DataFrame) -> DataFrame:
    """Add the names of zones and streams."""
    names = streams.select(sf.col("id").alias("stream_id"), "zone", sf.col("name").alias("stream"))
    return names.join(clients, "stream_id")
