"""The tables of the log. SQL reads and writes them (sql/); Django creates, displays and lists them.
Django module.

There is a row of `streams` per named log, of `heads` per stream (locked by every append), of
`segments` per segment of a stream (never deleted), and `events`, which is partitioned. A transient
stream has only its row of `streams`: its events, head and segment are in Redis.
"""

from datetime import UTC, datetime

from django.contrib.postgres.fields import ArrayField
from django.contrib.postgres.functions import RandomUUID, TransactionNow
from django.db import models
from django.db.models import (
    BigIntegerField,
    BinaryField,
    BooleanField,
    CheckConstraint,
    CompositePrimaryKey,
    DateTimeField,
    ForeignKey,
    Index,
    IntegerField,
    OneToOneField,
    Q,
    TextField,
    UniqueConstraint,
    UUIDField,
)

from eventhub.postgresql.tables import OidField, TableStorage, XidField

NEVER = datetime(1970, 1, 1, tzinfo=UTC)  # a time in the past, for rows without one


class Stream(models.Model):
    """A named log and its policy."""

    class Durability(models.TextChoices):
        SYNC = "sync"
        ASYNC = "async"
        TRANSIENT = "transient"

    class OnLag(models.TextChoices):
        KEEP = "keep"
        DROP = "drop"

    class Undeclared(models.TextChoices):
        ACCEPT = "accept"
        REFUSE = "refuse"

    id = models.BigAutoField(primary_key=True)
    zone = ForeignKey(
        "access.Zone",
        models.DO_NOTHING,
        null=True,
        db_constraint=False,
        db_index=False,
        db_comment="null: the stream `system` of the whole hub",
    )
    name = TextField()
    segment_events_max = BigIntegerField(db_comment="a segment is sealed when it holds so many")
    segment_bytes_max = BigIntegerField(db_comment="or so many stored bytes")
    segment_age_s_max = BigIntegerField(
        null=True, db_comment="or is so old and not empty; null: no age limit"
    )
    durability = TextField(
        choices=Durability, db_default=Durability.SYNC, db_comment="never changed"
    )
    keyed = BooleanField(
        db_default=False, db_comment="the latest event of each key is retained in keyed_state"
    )
    restate = BooleanField(
        db_default=False, db_comment="and appended again at each start of the hub (EMC-18)"
    )
    retain_events = BigIntegerField(
        null=True, db_comment="the oldest sealed segments beyond so many events are dropped"
    )
    retain_bytes = BigIntegerField(null=True, db_comment="beyond so many stored bytes")
    retain_age_s = BigIntegerField(
        null=True, db_comment="sealed segments that are older are dropped"
    )
    on_lag = TextField(
        choices=OnLag,
        db_default=OnLag.KEEP,
        db_comment="whether segments that a durable cursor needs are kept",
    )
    hold = TextField(
        null=True,
        db_comment="the reason of a legal hold, under which nothing is dropped; null: none",
    )
    archive = BooleanField(
        db_default=False, db_comment="sealed segments are archived, and dropped only when they are"
    )
    undeclared = TextField(
        choices=Undeclared, db_default=Undeclared.ACCEPT, db_comment="events of undeclared types"
    )
    matching = TextField(
        db_default="auto", db_comment="the strategy that matches its events to registrations"
    )
    quench = BooleanField(
        db_default=False, db_comment="emitters may omit events that have no listener"
    )
    filterable_data = BooleanField(
        db_default=False, db_comment="filters read the JSON body of an event as `data`"
    )
    unquenched_at = DateTimeField(
        db_default=NEVER, db_comment="when its policy last changed while quench was on"
    )
    boot_segment = UUIDField(
        null=True, db_comment="of the last event before the hub's last start; null: created since"
    )
    boot_sequence = BigIntegerField(null=True)
    created_at = DateTimeField(db_default=TransactionNow())
    deletes_at = DateTimeField(
        null=True, db_comment="the end of the grace period of its deletion; null: not scheduled"
    )
    deleted_at = DateTimeField(
        null=True, db_comment="when that ended; the name is free, and the row has no head"
    )
    ended_registrations = BigIntegerField(
        db_default=0, db_comment="registrations that its deletion ended or changed so far"
    )
    erased_at = DateTimeField(null=True, db_comment="when the last of its data was removed")
    erased_events = BigIntegerField(db_default=0, db_comment="events that were removed so far")
    erased_deliveries = BigIntegerField(
        db_default=0, db_comment="deliveries that were removed so far"
    )
    erased_pending = BigIntegerField(
        db_default=0, db_comment="the part of these that was neither delivered nor dead-lettered"
    )

    class Meta:
        db_table = "streams"
        db_table_comment = "named logs with their policies"
        constraints = (
            UniqueConstraint(
                fields=["zone", "name"],
                condition=Q(deleted_at__isnull=True),
                nulls_distinct=False,
                name="streams_by_name",
            ),
            CheckConstraint(
                condition=Q(durability__in=["sync", "async", "transient"]),
                name="streams_durability",
            ),
            CheckConstraint(condition=Q(on_lag__in=["keep", "drop"]), name="streams_on_lag"),
            CheckConstraint(
                condition=Q(undeclared__in=["accept", "refuse"]), name="streams_undeclared"
            ),
        )
        indexes = (
            Index(
                fields=["deletes_at"],
                condition=Q(deletes_at__isnull=False, erased_at__isnull=True),
                name="streams_deleting",
            ),
        )

    def __str__(self) -> str:
        return self.name


class StreamHead(models.Model):
    """The row that an append locks and updates: narrow, with free space on its page, so that
    updates stay in place (HOT).
    """

    stream = OneToOneField(Stream, models.DO_NOTHING, primary_key=True)
    segment_id = BigIntegerField(db_comment="the open segment")
    segment = UUIDField(db_comment="its UUID")
    partition_id = IntegerField(db_comment="its partition")
    first = BigIntegerField(db_comment="its first sequence")
    sequence = BigIntegerField(
        db_comment="the last sequence; first - 1 while the open segment is empty"
    )
    bytes = BigIntegerField(db_comment="stored bytes in the open segment")
    watchers = ArrayField(
        IntegerField(),
        null=True,
        db_comment="backends on which processes listen that follow the stream; null: none",
    )

    storage = TableStorage(parameters={"fillfactor": 40})

    class Meta:
        db_table = "heads"
        db_table_comment = "the last position of each stream; locked by every append"

    def __str__(self) -> str:
        return f"{self.segment}:{self.sequence}"


class Segment(models.Model):
    """A log segment: the events of a stream from `first` to `last`, once it is sealed."""

    class Tier(models.TextChoices):
        LIVE = "live"
        ARCHIVED = "archived"
        DROPPED = "dropped"

    id = models.BigAutoField(primary_key=True)
    uuid = UUIDField(unique=True)
    stream = ForeignKey(Stream, models.DO_NOTHING, db_index=False)
    partition_id = IntegerField(db_comment="the partition of its events")
    first = BigIntegerField()
    last = BigIntegerField(null=True, db_comment="null while open")
    bytes = BigIntegerField(null=True, db_comment="stored bytes; null while open")
    tier = TextField(
        choices=Tier,
        db_default=Tier.LIVE,
        db_comment="live: in the database, archived: in the archive only, dropped: deleted",
    )
    opened_at = DateTimeField(db_default=TransactionNow())
    sealed_at = DateTimeField(null=True)
    archive_path = TextField(
        null=True, db_comment="the path of its manifest, once it is archived; also while live"
    )
    removed_at = DateTimeField(null=True, db_comment="when it was no longer live")
    removal_reason = TextField(
        null=True,
        db_comment="age, size, count, quota, disk, plan, deleted (with the stream), or continuity"
        " (lost in a crash)",
    )

    class Meta:
        db_table = "segments"
        db_table_comment = "segments of streams; never deleted"
        constraints = (
            CheckConstraint(
                condition=Q(tier__in=["live", "archived", "dropped"]), name="segments_tier"
            ),
        )
        indexes = (
            Index(fields=["stream", "first"], name="segments_by_stream"),
            Index(
                fields=["stream", "first", "id"],
                condition=~Q(tier="dropped"),
                name="segments_readable",
            ),
            Index(fields=["partition_id"], name="segments_by_partition"),
            Index(
                fields=["sealed_at", "id"],
                condition=Q(archive_path__isnull=True, tier="live", last__isnull=False),
                name="segments_unarchived",
            ),
        )

    def __str__(self) -> str:
        return str(self.uuid)


class EventPartition(models.Model):
    """A partition of `events`, to which segments belong."""

    id = IntegerField(primary_key=True)
    created_at = DateTimeField(db_default=TransactionNow())
    moved_bytes = BigIntegerField(
        db_default=0,
        db_comment="of segments that were moved to others, while this one is still as large",
    )

    class Meta:
        db_table = "event_partitions"
        db_table_comment = "partitions of events"

    def __str__(self) -> str:
        return str(self.id)


class LogState(models.Model):
    """The global state of the log, in one row."""

    singleton = BooleanField(primary_key=True, db_default=True)
    current_partition = ForeignKey(
        EventPartition,
        models.DO_NOTHING,
        db_column="current_partition",
        db_index=False,
        related_name="+",
        db_comment="the partition that new segments go to",
    )
    quota_bytes = BigIntegerField(
        null=True, db_comment="for all events, set by an operator; null: the hub's setting"
    )
    booted_at = DateTimeField(null=True, db_comment="the hub's last start")
    system_identifier = BigIntegerField(
        null=True, db_comment="of the server that wrote last; a different one means a restore"
    )
    timeline = IntegerField(null=True, db_comment="of that server; a different one means a restore")
    life = UUIDField(
        null=True, db_comment="of the server, as in incarnation; null: nothing was ever appended"
    )
    history = UUIDField(
        db_default=RandomUUID(),
        db_comment="a new one after every restore, because sequences may be assigned again",
    )
    disk_full_until = DateTimeField(
        null=True, db_comment="the end of the last announced episode of a full disk"
    )

    class Meta:
        db_table = "log_state"
        verbose_name_plural = "log state"
        db_table_comment = "the global state of the log"
        constraints = (CheckConstraint(condition=Q(singleton=True), name="log_state_one"),)

    def __str__(self) -> str:
        return str(self.history)


class Incarnation(models.Model):
    """The life of the server for which the log was proved. Unlogged: every crash recovery empties
    it. A copy of the row proves nothing: its `written_by` is not the transaction that wrote the
    copy, or `database` and `started` are not those of the server.
    """

    singleton = BooleanField(primary_key=True, db_default=True)
    life = UUIDField()
    database = OidField()
    started = DateTimeField(db_comment="the start of the server")
    written_by = XidField()
    since = DateTimeField(db_default=TransactionNow())

    storage = TableStorage(unlogged=True)

    class Meta:
        db_table = "incarnation"
        db_table_comment = "the life of the server for which the log was proved; emptied by a crash"
        constraints = (CheckConstraint(condition=Q(singleton=True), name="incarnation_one"),)

    def __str__(self) -> str:
        return str(self.life)


class EventRow(models.Model):
    """A stored event."""

    pk = CompositePrimaryKey("partition_id", "segment_id", "sequence")
    segment = ForeignKey(Segment, models.DO_NOTHING, db_constraint=False, db_index=False)
    sequence = BigIntegerField()
    mask = BigIntegerField(db_comment="64 channel bits, as a signed number")
    appended_at = DateTimeField()
    partition_id = IntegerField()
    payload = BinaryField(db_comment="protobuf, as in eventhub/event/event.proto")

    storage = TableStorage(partition_by="LIST (partition_id)", external=("payload",))

    class Meta:
        db_table = "events"
        db_table_comment = "stored events, partitioned by groups of segments"

    def __str__(self) -> str:
        return f"{self.segment_id}:{self.sequence}"


class Producer(models.Model):
    """The highest number of each (stream, client, incarnation), under the head's lock."""

    pk = CompositePrimaryKey("stream_id", "client_id", "incarnation")
    stream = ForeignKey(Stream, models.DO_NOTHING, db_constraint=False, db_index=False)
    client = ForeignKey("access.Client", models.DO_NOTHING, db_constraint=False, db_index=False)
    incarnation = BigIntegerField()
    highest_number = BigIntegerField()
    last_seen_at = DateTimeField(db_default=TransactionNow())

    storage = TableStorage(parameters={"fillfactor": 60})

    class Meta:
        db_table = "producers"
        db_table_comment = "the highest number of each incarnation of a client"

    def __str__(self) -> str:
        return f"{self.client_id}/{self.incarnation}"


class ProducerNumber(models.Model):
    """The position of a recent number of a producer, in slots that are overwritten in turn."""

    pk = CompositePrimaryKey("stream_id", "client_id", "incarnation", "slot")
    stream = ForeignKey(Stream, models.DO_NOTHING, db_constraint=False, db_index=False)
    client = ForeignKey("access.Client", models.DO_NOTHING, db_constraint=False, db_index=False)
    incarnation = BigIntegerField()
    slot = IntegerField(db_comment="the number modulo the window")
    number = BigIntegerField()
    segment = UUIDField()
    sequence = BigIntegerField()

    storage = TableStorage(parameters={"fillfactor": 80})

    class Meta:
        db_table = "producer_numbers"
        db_table_comment = "the positions of recent numbers of producers"

    def __str__(self) -> str:
        return f"{self.client_id}/{self.incarnation}/{self.number}"


class IdempotencyDigest(models.Model):
    """An event with a text for an id, or of a request with an Idempotency-Key. It is found under
    the head's lock for at least two days: the slot of tomorrow is truncated.
    """

    pk = CompositePrimaryKey("slot", "stream_id", "digest")
    slot = IntegerField(db_comment="days since 1970 modulo 4")
    stream = ForeignKey(Stream, models.DO_NOTHING, db_constraint=False, db_index=False)
    digest = BinaryField(db_comment="a digest of the owner and the id")
    segment = UUIDField()
    sequence = BigIntegerField()

    storage = TableStorage(partition_by="LIST (slot)")

    class Meta:
        db_table = "idempotency_digests"
        db_table_comment = "the positions of events with a text for an id"

    def __str__(self) -> str:
        return f"{self.segment}:{self.sequence}"


class KeyedState(models.Model):
    """The position of the latest event of a key of a keyed stream, written by the append: a narrow
    row with free space on its page, so that updates stay in place (HOT). Before the event leaves
    `events`, it is copied here.
    """

    pk = CompositePrimaryKey("stream_id", "digest")
    stream = ForeignKey(Stream, models.DO_NOTHING, db_constraint=False, db_index=False)
    digest = BinaryField(db_comment="sha256 of the key, which may be too long for an index")
    key = TextField()
    segment = UUIDField()
    sequence = BigIntegerField()
    mask = BigIntegerField(null=True, db_comment="of the copy; null while the event is in events")
    appended_at = DateTimeField(null=True)
    payload = BinaryField(null=True)

    storage = TableStorage(
        parameters={"fillfactor": 50, "autovacuum_vacuum_scale_factor": 0.05},
        external=("payload",),
    )

    class Meta:
        db_table = "keyed_state"
        db_table_comment = "the latest event of each key"

    def __str__(self) -> str:
        return self.key


class ResourceChange(models.Model):
    """The sequence in `system` of the last change of a resource, for If-Match (EMC-12)."""

    pk = CompositePrimaryKey("kind", "zone_id", "name")
    kind = TextField(db_comment="client, key, channel, stream, type, registration, endpoint, ...")
    zone = ForeignKey("access.Zone", models.DO_NOTHING, db_constraint=False, db_index=False)
    name = TextField(db_comment="its name or id")
    segment = UUIDField()
    sequence = BigIntegerField()

    class Meta:
        db_table = "resource_changes"
        db_table_comment = "the last change of each resource, as a position in `system`"

    def __str__(self) -> str:
        return f"{self.kind} {self.name}"


class ArchiverLease(models.Model):
    """The lease of the archiver."""

    singleton = BooleanField(primary_key=True, db_default=True)
    owner = UUIDField(null=True)
    until = DateTimeField(null=True)

    class Meta:
        db_table = "archiver"
        verbose_name_plural = "archiver"
        db_table_comment = "the lease of the archiver"
        constraints = (CheckConstraint(condition=Q(singleton=True), name="archiver_one"),)

    def __str__(self) -> str:
        return str(self.owner)


class ArchiveAttempt(models.Model):
    """A segment whose archiving was started and not finished, with the reason of its failure."""

    segment = OneToOneField(Segment, models.DO_NOTHING, primary_key=True)
    attempts = IntegerField()
    reason = TextField(db_comment="an error's code, or `unfinished`")
    detail = TextField(db_default="")
    attempted_at = DateTimeField(db_default=TransactionNow())
    retry_at = DateTimeField()

    class Meta:
        db_table = "archive_attempts"
        db_table_comment = "segments whose archiving was started and not finished"

    def __str__(self) -> str:
        return f"{self.segment_id}: {self.reason}"
