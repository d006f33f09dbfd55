"""Was each client told everything over all its incarnations (FOX-23)? From the record of its
listens and what was to be told of the stream. Spark module.

A listen of the record says: so many events were told, all that were wanted between two places. The
next one's cursor is the client's word of what it had; so a place that it begins behind, and that no
listen had got to, is a hole. A process that was killed leaves its rows open: what it told last is
the client's word alone.
"""

from pathlib import Path
from typing import NamedTuple

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as sf

from sparkjobs.audit import event_log, listener_counts
from sparkjobs.expected_deliveries import ExecutorPaths
from sparkjobs.job_spec import JobSpec

NOT_DELIVERED, NOT_MATCHED, SKIPPED = "untold", "told_unasked", "skipped"
BY = ("zone", "client", "client_id", "stream", "stream_id", "request_digest")
_KEY = ["stream_id", "client_id", "request_digest"]
_FAULTS = "stream_id long, segment_id long, kind string, first long, last long, evidence string"
_CLIENTS = (
    "stream_id long, client_id long, request_digest string, client string, filter string,"
    " incarnations long, nodes long, after long, through long, destined long, told long,"
    " repeats long, skipped long, unseen long"
)
_PLACES = ("sequence", "delivered_sequence", "covered", "top", "low")
_NUMBERS = {"sure": "owed", "doubtful": "doubtful", "unseen": "unseen"}  # as judged


class ListenerAudit(NamedTuple):
    """`faults` have the columns of scan.FAULT and `client`; `clients` is a row for each client,
    stream and wish.
    """

    faults: DataFrame
    clients: DataFrame


class ListenerTables(NamedTuple):
    """Tables of the inputs."""

    listeners: DataFrame
    segments: DataFrame
    streams: DataFrame
    clients: DataFrame


def audit_listeners(order: JobSpec, heard: ListenerTables) -> ListenerAudit:
    """Reads the segments of streams that were listened to once more."""
    listeners, segments, streams, clients = heard
    spark = listeners.sparkSession
    if listeners.isEmpty():
        return ListenerAudit(
            spark.createDataFrame([], f"{_FAULTS}, client string"),
            spark.createDataFrame([], _CLIENTS),
        )
    work = Path(order.work)
    ranged = _stored(ranges(listeners), work / "told-ranges")
    _stored(interests(ranged, clients), work / listener_counts.INTERESTS)
    points = _stored(points_of(ranged), work / listener_counts.POINTS)
    zones = streams.select(sf.col("id").alias("stream_id"), "zone_id")
    reached = points.groupBy("stream_id").agg(sf.min("sequence").alias("from"))
    asked = (
        segments.join(zones, "stream_id")
        .join(sf.broadcast(reached), "stream_id")
        .where("last >= first and last > from")
        .drop("from")
    )
    found = listener_counts.count_events(
        asked, ExecutorPaths(order.inputs, order.work, order.now_us), order.archive_url
    )
    found = _stored(found, work / "told-counts")
    gaps = event_log.discontinuities(segments, streams)
    judged = _stored(add_unchecked(judge(ranged, cumulate(points, found)), gaps), work / "told")
    return ListenerAudit(faults(judged), by_client(judged))


def ranges(listeners: DataFrame) -> DataFrame:
    """Each listen with what lies before it: `covered` is how far the client had been told by then
    (null: nothing is on record); `lost`: the range from there to its cursor is a hole; else what
    lies between is the client's word, its own wish, or was said to be missing.
    """
    of_wish = Window.partitionBy(*_KEY).orderBy("id").rowsBetween(Window.unboundedPreceding, -1)
    of_any = (
        Window.partitionBy("stream_id", "client_id")
        .orderBy("id")
        .rowsBetween(Window.unboundedPreceding, -1)
    )
    resumed = sf.col("start") == "cursor"
    last_open = sf.max(sf.when(sf.col("ended_at_us").isNull(), sf.col("id"))).over(of_wish)
    last_resumed = sf.max(sf.when(resumed, sf.col("id"))).over(of_wish)
    unwritten = sf.max(sf.col("transport") == "unrecorded").over(of_any)
    rows = (
        listeners.withColumn(
            "covered",
            sf.coalesce(
                sf.max("delivered_sequence").over(of_wish),
                sf.max("delivered_sequence").over(of_any),
            ),
        )
        .withColumn("word", sf.coalesce(last_open >= sf.coalesce(last_resumed, last_open), _no()))
        .withColumn("word", sf.col("word") | sf.coalesce(unwritten, _no()))
        .where("transport <> 'unrecorded'")
    )
    behind = resumed & (sf.col("sequence") > sf.col("covered"))
    return (
        rows.withColumn("lost", sf.coalesce(behind & ~sf.col("word"), _no()))
        .withColumn(
            "low", sf.when(behind & sf.col("word"), sf.col("covered")).otherwise(sf.col("sequence"))
        )
        .withColumn("top", _before(sf.max("delivered_sequence")))
    )


def _before(highest: Column) -> Column:
    """Of the ranges that begin lower."""
    order = Window.partitionBy(*_KEY).orderBy("low", "id")
    return highest.over(order.rowsBetween(Window.unboundedPreceding, -1))


def _no() -> Column:
    return sf.lit(False)


def interests(ranged: DataFrame, clients: DataFrame) -> DataFrame:
    """listener_counts.INTEREST"""
    names = clients.select(sf.col("id").alias("client_id"), "zone")
    first = [sf.first(name).alias(name) for name in ("mask", "filter", "registrations", "client")]
    found = ranged.groupBy(*_KEY).agg(*first).join(names, "client_id", "left")
    return found.select(*listener_counts.INTEREST.names)


def points_of(ranged: DataFrame) -> DataFrame:
    """listener_counts.POINT: every place that is counted up to."""
    places = sf.array(*_PLACES)
    each = ranged.select(*_KEY, sf.explode(sf.array_compact(places)).alias("sequence"))
    return each.distinct().select(*listener_counts.POINT.names)


def cumulate(points: DataFrame, counted: DataFrame) -> DataFrame:
    """How many events there are up to each point, from where the first segment that was counted
    begins. Points of wishes that cannot be judged are left out.
    """
    wholes = counted.where("whole").withColumn("place", sf.lit(0)).drop("whole")
    zeros = [sf.lit(0).cast("long").alias(name) for name in _NUMBERS]
    marks = points.join(wholes.select(*_KEY).distinct(), _KEY).select(
        *_KEY, "sequence", *zeros, sf.lit(1).alias("place")
    )
    through = (
        Window.partitionBy(*_KEY)
        .orderBy("sequence", "place")
        .rowsBetween(Window.unboundedPreceding, Window.currentRow)
    )
    below = (
        wholes.unionByName(marks)
        .select(*_KEY, "sequence", "place", *(sf.sum(n).over(through).alias(n) for n in _NUMBERS))
        .where("place = 1")
    )
    inside = counted.where("not whole").select(
        *_KEY, "sequence", *(sf.col(name).alias(f"in_{name}") for name in _NUMBERS)
    )
    sums = [
        (sf.col(name) + sf.coalesce(sf.col(f"in_{name}"), sf.lit(0))).alias(name)
        for name in _NUMBERS
    ]
    return below.join(inside, [*_KEY, "sequence"], "left").select(*_KEY, "sequence", *sums)


def judge(ranged: DataFrame, upto: DataFrame) -> DataFrame:
    """Each listen with how many events lay in its ranges: `owed` to be told (and `doubtful`,
    `unseen`), `skipped` before it, `fresh` that no listen before had in its range.
    """
    each = ranged.select(
        *_KEY,
        "id",
        sf.explode(sf.create_map(*(part for name in _PLACES for part in (sf.lit(name), name)))),
    ).withColumnsRenamed({"key": "place", "value": "sequence"})
    of_listen = each.join(upto, [*_KEY, "sequence"]).groupBy("id")
    sums = of_listen.agg(
        *(
            sf.max(sf.when(sf.col("place") == place, sf.col(number))).alias(f"{number}_{place}")
            for place in _PLACES
            for number in _NUMBERS
        )
    )
    found = ranged.join(sums, "id", "left")
    top = sf.greatest(sf.col("top"), sf.col("low"))
    sure_top = sf.when(top == sf.col("low"), sf.col("sure_low")).otherwise(sf.col("sure_top"))
    end = sf.greatest(sf.col("sure_delivered_sequence"), sure_top)
    return found.select(
        *ranged.columns,
        *(
            (sf.col(f"{n}_delivered_sequence") - sf.col(f"{n}_sequence")).alias(_NUMBERS[n])
            for n in _NUMBERS
        ),
        (sf.col("sure_sequence") - sf.col("sure_covered")).alias("before"),
        (sf.col("unseen_sequence") - sf.col("unseen_covered")).alias("before_unseen"),
        (end - sure_top).alias("fresh"),
        sf.col("sure_low"),
        sf.col("sure_delivered_sequence").alias("sure_end"),
    )


def add_unchecked(judged: DataFrame, gaps: DataFrame) -> DataFrame:
    """Listens whose ranges meet a fault in the list of segments, which is told by itself, could not
    look at what is there.
    """
    begin = sf.least("covered", "sequence")
    of_fault = gaps.select(sf.col("stream_id").alias("of"), "first", "last")
    meets = (sf.col("stream_id") == sf.col("of")) & (sf.col("last") > begin)
    met = judged.join(
        sf.broadcast(of_fault), meets & (sf.col("first") <= sf.col("delivered_sequence"))
    )
    cut = met.groupBy("id").agg(sf.sum(sf.expr("last - first + 1")).alias("cut"))
    known = judged.join(cut, "id", "left").fillna(0, ["cut"])
    for name in ("unseen", "before_unseen"):
        known = known.withColumn(name, sf.col(name) + sf.col("cut"))
    return known.drop("cut")


def faults(judged: DataFrame) -> DataFrame:
    """What a client was not told, told although it had not asked, or begins behind."""
    checked = sf.col("unseen") == 0
    subscription = sf.format_string(
        "The listen %d was told %d events; %d were to be told, and %d may have been.",
        *("id", "delivered_events", "owed", "doubtful"),
    )
    less = judged.where(checked & (sf.col("delivered_events") < sf.col("owed")))
    more = judged.where(
        checked & (sf.col("delivered_events") > sf.col("owed") + sf.col("doubtful"))
    )
    holes = judged.where("lost and before > 0 and before_unseen = 0")
    hole_of = sf.format_string(
        "The listen %d begins behind %d events that none before it was told.", "id", "before"
    )
    return (
        _fault(less, NOT_DELIVERED, "sequence", "delivered_sequence", subscription)
        .unionByName(_fault(more, NOT_MATCHED, "sequence", "delivered_sequence", subscription))
        .unionByName(_fault(holes, SKIPPED, "covered", "sequence", hole_of))
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


def by_client(judged: DataFrame) -> DataFrame:
    """By client, stream and wish: incarnations, the processes that told them, how many events lay
    between where the first began and the last got to, how many of them were told (also by the
    client's word), how many twice, and how many were skipped. Null where it cannot be judged.
    """
    by_word = sf.when(
        sf.col("low") < sf.col("sequence"), sf.col("owed") + sf.col("before")
    ).otherwise(sf.col("owed"))
    return judged.groupBy(*_KEY).agg(
        sf.first("client").alias("client"),
        sf.first("filter").alias("filter"),
        sf.count("*").alias("incarnations"),
        sf.countDistinct("node").alias("nodes"),
        sf.min("low").alias("after"),
        sf.max("delivered_sequence").alias("through"),
        (sf.max("sure_end") - sf.min("sure_low")).alias("destined"),
        sf.sum("fresh").alias("told"),
        (sf.sum(by_word) - sf.sum("fresh")).alias("repeats"),
        sf.sum(sf.when(sf.col("lost"), sf.col("before")).otherwise(0)).alias("skipped"),
        sf.sum("unseen").alias("unseen"),
    )


def with_names(clients: DataFrame, streams: DataFrame) -> DataFrame:
    """With the names of zones and streams; in one order by BY."""
    names = streams.select(sf.col("id").alias("stream_id"), "zone", sf.col("name").alias("stream"))
    return names.join(clients, "stream_id")


def _stored(frame: DataFrame, path: Path) -> DataFrame:
    """On the disk: executors read it, or it is looked at several times."""
    frame.write.mode("overwrite").parquet(str(path))
    return frame.sparkSession.read.parquet(str(path))
