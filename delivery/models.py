"""The tables of what is owed to endpoints, how far each stream has been matched for them, and what
was told over connections. They are written by SQL (sql/). Django module.
"""

from django.contrib.postgres.fields import ArrayField
from django.contrib.postgres.functions import TransactionNow
from django.db import models
from django.db.models import (
    BigIntegerField,
    BinaryField,
    BooleanField,
    CheckConstraint,
    CompositePrimaryKey,
    DateTimeField,
    FloatField,
    ForeignKey,
    Index,
    IntegerField,
    OneToOneField,
    Q,
    TextField,
    UUIDField,
)

from eventhub.access.models import Client, Zone
from eventhub.eventlog.models import NEVER, Segment, Stream
from eventhub.postgresql.tables import MultirangeField, TableStorage
from registrations.models import Endpoint

PENDING = Q(state="pending")


class Forwarding(models.Model):
    """The lease and the checkpoint of a stream that has ever had a callback, in one row, so that
    one conditional UPDATE checks the epoch and moves the position in the transaction that writes
    the deliveries.
    """

    stream = OneToOneField(Stream, models.DO_NOTHING, primary_key=True)
    owner = UUIDField(null=True, db_comment="the forwarder that holds the lease until it expires")
    epoch = BigIntegerField(db_default=0, db_comment="rises with every change of the owner")
    expires_at = DateTimeField(db_default=NEVER)
    segment = UUIDField(db_comment="events up to this one are matched, their deliveries written")
    sequence = BigIntegerField()
    endpoint_id = BigIntegerField(
        db_default=0, db_comment="and of the next event those up to this endpoint (0: none)"
    )

    storage = TableStorage(parameters={"fillfactor": 40})

    class Meta:
        db_table = "forwarding"
        verbose_name_plural = "forwarding"
        db_table_comment = "how far each stream is matched for endpoints, and by whom"

    def __str__(self) -> str:
        return f"{self.stream_id}: {self.sequence}"


class Forwarder(models.Model):
    """A forwarder that lives: those seen within the time of a lease share the streams."""

    id = UUIDField(primary_key=True)
    started_at = DateTimeField(db_default=TransactionNow())
    last_seen_at = DateTimeField(db_default=TransactionNow())

    storage = TableStorage(parameters={"fillfactor": 60})

    class Meta:
        db_table = "forwarders"
        db_table_comment = "processes that match events for endpoints"

    def __str__(self) -> str:
        return str(self.id)


class Heartbeat(models.Model):
    """When something that there is one of was seen: the timetable (`beat`), periodic tasks whenever
    a worker begins one (`archiver`, `indexer`), and `worker`, the last of those that have gone;
    those that live are in `callback_workers`.
    """

    part = TextField(primary_key=True)
    last_seen_at = DateTimeField(db_default=TransactionNow())

    storage = TableStorage(parameters={"fillfactor": 60})

    class Meta:
        db_table = "heartbeats"
        db_table_comment = "when what there is one of was seen"

    def __str__(self) -> str:
        return self.part


class Delivery(models.Model):
    """One event owed to one endpoint. Partitioned by the events' groups, so that this key is
    unique, and retired with them.
    """

    class State(models.TextChoices):
        PENDING = "pending"
        DELIVERED = "delivered"
        DEAD_LETTERED = "dead_lettered"
        CANCELLED = "cancelled"
        DROPPED = "dropped"
        EXPIRED = "expired"

    pk = CompositePrimaryKey("partition_id", "endpoint_id", "segment_id", "sequence", "run")
    partition_id = IntegerField(db_comment="the partition")
    endpoint = ForeignKey(Endpoint, models.DO_NOTHING, db_constraint=False, db_index=False)
    segment = ForeignKey(Segment, models.DO_NOTHING, db_constraint=False, db_index=False)
    sequence = BigIntegerField()
    run = IntegerField(db_default=0, db_comment="0: live")
    stream = ForeignKey(Stream, models.DO_NOTHING, db_constraint=False, db_index=False)
    zone = ForeignKey(
        Zone,
        models.DO_NOTHING,
        null=True,
        db_constraint=False,
        db_index=False,
        db_comment="the endpoint's; null: there never was such an endpoint",
    )
    ordered = BooleanField(
        db_default=False, db_comment="the endpoint's setting when the row was written"
    )
    registrations = ArrayField(BigIntegerField(), db_comment="those that matched, ascending")
    version_ids = ArrayField(
        BigIntegerField(),
        null=True,
        db_comment="their versions, whose reports say what is told; null: the whole event",
    )
    state = TextField(choices=State, db_default=State.PENDING)
    attempts = IntegerField(db_default=0)
    uncounted_attempts = IntegerField(
        db_default=0,
        db_comment="of these, tries of an endpoint that failed as a whole: they do not count",
    )
    retry_after_s = IntegerField(
        null=True, db_comment="what the last answer's Retry-After asked for"
    )
    next_attempt_at = DateTimeField(
        db_default=TransactionNow(), db_comment="while claimed: when the claim ends"
    )
    claim = UUIDField(null=True, db_comment="results are written only by whoever still holds it")
    payload = BinaryField(
        null=True, db_comment="the event's stored bytes, once the delivery has outlived its group"
    )
    gap_first = BigIntegerField(
        null=True, db_comment="no event is owed, but word that those from here on were dropped"
    )
    gap_reason = TextField(null=True, db_comment="unmatched, or as too much waited (backlog)")
    created_at = DateTimeField(db_default=TransactionNow())
    finished_at = DateTimeField(null=True)

    storage = TableStorage(partition_by="LIST (partition_id)")

    class Meta:
        db_table = "deliveries"
        verbose_name_plural = "deliveries"
        db_table_comment = "events owed to endpoints"
        constraints = (
            CheckConstraint(
                condition=Q(
                    state__in=[
                        "pending",
                        "delivered",
                        "dead_lettered",
                        "cancelled",
                        "dropped",
                        "expired",
                    ]
                ),
                name="deliveries_state",
            ),
        )
        indexes = (
            Index(
                fields=["endpoint", "next_attempt_at"],
                condition=PENDING & Q(ordered=False),
                name="deliveries_parallel",
            ),
            Index(
                fields=["endpoint", "stream", "run", "sequence"],
                condition=PENDING & Q(ordered=True),
                name="deliveries_ordered",
            ),
            Index(
                fields=["endpoint"],
                condition=Q(state="dead_lettered"),
                name="deliveries_dead_lettered",
            ),
            Index(
                fields=["endpoint", "stream", "run"],
                condition=PENDING & Q(gap_first__isnull=False),
                name="deliveries_notices",
            ),
            Index(
                fields=["zone", "state", "partition_id", "segment", "sequence", "endpoint", "run"],
                condition=~Q(state__in=["pending", "delivered"]),
                name="deliveries_ended",
            ),
        )

    def __str__(self) -> str:
        return f"{self.endpoint_id}: {self.segment_id}.{self.sequence}"


class Lane(models.Model):
    """An ordered lane in work: only who holds the token posts its oldest delivery."""

    pk = CompositePrimaryKey("endpoint_id", "stream_id", "run")
    endpoint = ForeignKey(Endpoint, models.DO_NOTHING, db_constraint=False, db_index=False)
    stream = ForeignKey(Stream, models.DO_NOTHING, db_constraint=False, db_index=False)
    run = IntegerField()
    token = UUIDField()
    expires_at = DateTimeField()

    storage = TableStorage(parameters={"fillfactor": 60})

    class Meta:
        db_table = "lanes"
        db_table_comment = "ordered lanes in work"

    def __str__(self) -> str:
        return f"{self.endpoint_id}/{self.stream_id}"


class CallbackWorker(models.Model):
    """A worker that posts callbacks, as it last showed that it lives. The tokens of its claims have
    the first half of its id, so that claims and lanes of one that fell silent are found.
    """

    id = UUIDField(primary_key=True, db_comment="its second half is zero")
    last_seen_at = DateTimeField()

    storage = TableStorage(parameters={"fillfactor": 60})

    class Meta:
        db_table = "callback_workers"
        db_table_comment = "workers that post callbacks"

    def __str__(self) -> str:
        return str(self.id)


class Backoff(models.Model):
    """An endpoint that failed since it last took a delivery. With a `pause_s` the endpoint as a
    whole backs off: until the pause is over nobody calls it, and then one request shows whether it
    answers.
    """

    endpoint = OneToOneField(Endpoint, models.DO_NOTHING, primary_key=True, db_constraint=False)
    failures = IntegerField(db_comment="tries in a row")
    failing_since = DateTimeField(db_comment="when the first of them was written")
    single_delivery = BooleanField(db_comment="all of them were of one delivery")
    segment = ForeignKey(
        Segment,
        models.DO_NOTHING,
        db_constraint=False,
        db_index=False,
        db_comment="of the first event that failed",
    )
    sequence = BigIntegerField()
    retry_after_s = FloatField(
        db_comment="what the last answer's Retry-After asked for; 0: nothing"
    )
    pause_s = FloatField(db_comment="the longest that the pause may take; 0: not backing off")
    paused_until = DateTimeField()
    probing = BooleanField(db_default=False, db_comment="the one request is under way")
    recorded_at = DateTimeField(
        db_default=TransactionNow(),
        db_comment="the last failure or probe: an endpoint changed since is called at once",
    )

    storage = TableStorage(parameters={"fillfactor": 60})

    class Meta:
        db_table = "backoffs"
        db_table_comment = "endpoints that failed since they last took a delivery"

    def __str__(self) -> str:
        return f"{self.endpoint_id}: {self.failures}"


class Fanout(models.Model):
    """An event that matched so many endpoints that its deliveries are written in pieces, beside the
    stream's other events.
    """

    pk = CompositePrimaryKey("stream_id", "sequence")
    partition_id = IntegerField()
    stream = ForeignKey(Stream, models.DO_NOTHING, db_constraint=False, db_index=False)
    segment = ForeignKey(Segment, models.DO_NOTHING, db_constraint=False, db_index=False)
    sequence = BigIntegerField()
    endpoints = ArrayField(BigIntegerField(), db_comment="ascending")
    registrations = ArrayField(
        BigIntegerField(),
        db_comment="those that matched, of the first endpoint, the second, ...",
    )
    ends = ArrayField(BigIntegerField(), db_comment="where in it each endpoint's last one is")
    version_ids = ArrayField(
        TextField(),
        db_default=[],
        db_comment="of each endpoint, as arrays; empty: nobody is told less than the event",
    )
    total = IntegerField(db_comment="so many endpoints")
    done = IntegerField(
        db_default=0, db_comment="so many have their delivery; the row goes when all have"
    )

    storage = TableStorage(external=("endpoints", "registrations", "ends"))

    class Meta:
        db_table = "fanouts"
        db_table_comment = "events whose deliveries are written in pieces"

    def __str__(self) -> str:
        return f"{self.stream_id}: {self.sequence}"


class EndpointLoss(models.Model):
    """What an endpoint did not get and nobody has announced yet, of one kind, whatever the number.
    Written with the deliveries' own rows, announced now and then.
    """

    class Kind(models.TextChoices):
        DEAD_LETTERED = "dead_lettered"
        DROPPED = "dropped"

    pk = CompositePrimaryKey("endpoint_id", "kind")
    endpoint = ForeignKey(Endpoint, models.DO_NOTHING, db_constraint=False, db_index=False)
    kind = TextField(choices=Kind, db_comment="dropped: more waited than may wait")
    deliveries = BigIntegerField(db_comment="since the last announcement")
    first = ArrayField(
        BigIntegerField(), null=True, db_comment="of these the lowest segment and sequence"
    )
    last = ArrayField(BigIntegerField(), null=True, db_comment="and the highest")
    reason = TextField(db_default="", db_comment="of the last, if they were dropped")
    since = DateTimeField(null=True)
    announced_at = DateTimeField(db_default=NEVER)

    storage = TableStorage(parameters={"fillfactor": 60})

    class Meta:
        db_table = "endpoint_losses"
        verbose_name_plural = "endpoint losses"
        db_table_comment = "what endpoints did not get and nobody has announced yet"
        constraints = (
            CheckConstraint(
                condition=Q(kind__in=["dead_lettered", "dropped"]), name="endpoint_losses_kind"
            ),
        )

    def __str__(self) -> str:
        return f"{self.endpoint_id}: {self.deliveries} {self.kind}"


class Attempt(models.Model):
    """One try of one delivery."""

    pk = CompositePrimaryKey(
        "endpoint_id", "segment_id", "sequence", "run", "attempted_at", "number"
    )
    attempted_at = DateTimeField(db_comment="when the request was sent")
    partition_id = IntegerField()
    endpoint = ForeignKey(Endpoint, models.DO_NOTHING, db_constraint=False, db_index=False)
    segment = ForeignKey(Segment, models.DO_NOTHING, db_constraint=False, db_index=False)
    sequence = BigIntegerField()
    run = IntegerField()
    number = IntegerField(db_comment="1, 2, 3, ...")
    outcome = TextField(db_comment="delivered, or why not: status, timeout, refused_address, ...")
    status = IntegerField(null=True, db_comment="of the answer, if there was one")
    duration_ms = IntegerField()
    url = TextField()
    request = TextField(db_comment="the request's headers, without the signature")
    response = TextField(
        db_comment="the answer's headers and the beginning of its body, or the error"
    )

    storage = TableStorage(partition_by="RANGE (attempted_at)")

    class Meta:
        db_table = "attempts"
        db_table_comment = "tries of deliveries, partitioned by day (UTC)"

    def __str__(self) -> str:
        return f"{self.number}: {self.outcome}"


class Listener(models.Model):
    """A client's subscription to one stream over one connection, and what was delivered to it: the
    record that audits read (FOX-23). Consecutive requests extend one row.
    """

    pk = CompositePrimaryKey("started_at", "id")
    started_at = DateTimeField()
    id = BigIntegerField(db_comment="from the sequence listener_ids")
    zone = ForeignKey(
        Zone,
        models.DO_NOTHING,
        db_constraint=False,
        db_index=False,
        db_comment="the client's zone",
    )
    client = ForeignKey(Client, models.DO_NOTHING, db_constraint=False, db_index=False)
    stream = ForeignKey(Stream, models.DO_NOTHING, db_constraint=False, db_index=False)
    node = TextField(
        db_comment="random name of the process that served it; new at each start of a process"
    )
    transport = TextField(
        db_comment="websocket, sse, poll, lines, local; unrecorded: later listeners of the hour"
        " have no row"
    )
    name = TextField(db_comment="the listener's name on its websocket; empty for other transports")
    start = TextField(
        db_comment="kind of start: cursor (the client names the last event it has), now, oldest,"
        " boot, time, gap (after missing events), state, continued"
    )
    segment = UUIDField(null=True, db_comment="segment of the event after which it starts")
    sequence = BigIntegerField(db_comment="sequence of the event after which it starts")
    mask = BigIntegerField(db_comment="requested channels, 64 bits")
    filter = TextField(
        null=True,
        db_comment="its filter in predicate form; null: it names registrations, or the filter is"
        " too long",
    )
    registrations = ArrayField(BigIntegerField(), db_comment="registrations named by the listener")
    request_digest = TextField(
        db_comment="digest of mask, filter and registrations: equal for equal requests"
    )
    delivered_segment = UUIDField(
        null=True,
        db_comment="segment of the event up to which all that match were delivered, as of"
        " updated_at",
    )
    delivered_sequence = BigIntegerField(db_comment="sequence of that event")
    delivered_events = BigIntegerField(db_comment="number of events delivered")
    updated_at = DateTimeField()
    ended_at = DateTimeField(
        null=True, db_comment="null: it is still open, or its process was killed"
    )
    end_reason = TextField(
        null=True,
        db_comment="stopped, disconnected, slow_reader, gap, continued, or an error code",
    )

    storage = TableStorage(partition_by="RANGE (started_at)")

    class Meta:
        db_table = "listeners"
        db_table_comment = "listeners and what was delivered to them, partitioned by day (UTC)"
        indexes = (Index(fields=["client", "-started_at", "-id"], name="listeners_of_client"),)

    def __str__(self) -> str:
        return f"{self.id}"


class RetiredPartition(models.Model):
    """A partition of deliveries, attempts or listeners that left the database, written in the
    transaction that drops it.
    """

    id = models.BigAutoField(primary_key=True)
    parent = TextField(db_comment="deliveries, attempts, listeners")
    name = TextField(db_comment="such as deliveries_p7, attempts_20261122")
    rows = BigIntegerField()
    retired_at = DateTimeField(db_default=TransactionNow())
    archive_path = TextField(
        null=True, db_comment="the path of its manifest in the archive; null: its rows are nowhere"
    )
    reason = TextField(
        db_default="", db_comment="why it is not archived: empty, no_archive, or an error's code"
    )
    segments = MultirangeField(
        null=True, db_comment="of which segments it held deliveries when it left"
    )

    class Meta:
        db_table = "retired_partitions"
        db_table_comment = "partitions that left the database"

    def __str__(self) -> str:
        return self.name
