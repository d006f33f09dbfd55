"""The tables of deliveries to endpoints, of the forwarding of streams, and of listeners. Rows are
written by SQL (sql/). Django module.
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
    F,
    FloatField,
    Index,
    IntegerField,
    OneToOneField,
    Q,
    TextField,
    UUIDField,
)
from django.db.models.functions import Coalesce

from eventhub.access.models import Client, Zone
from eventhub.eventlog.models import NEVER, Segment, Stream
from eventhub.postgresql.tables import JsonTextField, MultirangeField, Reference, TableStorage
from registrations.models import Endpoint

PENDING = Q(state="pending")


class Forwarding(models.Model):
    """The lease and the checkpoint of a stream that has ever had a callback. They share a row, so
    that one conditional UPDATE checks the epoch and moves the position in the transaction that
    writes the deliveries.
    """

    stream = OneToOneField(Stream, models.DO_NOTHING, primary_key=True)
    owner = UUIDField(null=True, db_comment="the forwarder that holds the lease until `expires_at`")
    epoch = BigIntegerField(db_default=0, db_comment="increases with every change of the owner")
    expires_at = DateTimeField(db_default=NEVER)
    segment = UUIDField(
        db_comment="segment of the last event that is matched and whose deliveries are written"
    )
    sequence = BigIntegerField()
    endpoint_id = BigIntegerField(
        db_default=0,
        db_comment="of the next event, deliveries up to this endpoint are written (0: none)",
    )

    storage = TableStorage(parameters={"fillfactor": 40})

    class Meta:
        db_table = "forwarding"
        verbose_name_plural = "forwarding"
        db_table_comment = "the lease and the checkpoint of each stream with callbacks"

    def __str__(self) -> str:
        return f"{self.stream_id}: {self.sequence}"


class Forwarder(models.Model):
    """A forwarder. Those with a heartbeat within the time of a lease share the streams."""

    id = UUIDField(primary_key=True)
    started_at = DateTimeField(db_default=TransactionNow())
    last_seen_at = DateTimeField(db_default=TransactionNow())

    storage = TableStorage(parameters={"fillfactor": 60})

    class Meta:
        db_table = "forwarders"
        db_table_comment = "processes that match events for endpoints"

    def __str__(self) -> str:
        return str(self.id)


class ComponentHeartbeat(models.Model):
    """The last heartbeat of the timetable (`beat`), of periodic tasks, whenever a worker starts one
    (`archiver`, `indexer`), and of the last worker that ended (`worker`); live workers are in
    `callback_workers`.
    """

    part = TextField(primary_key=True)
    last_seen_at = DateTimeField(db_default=TransactionNow())

    storage = TableStorage(parameters={"fillfactor": 60})

    class Meta:
        db_table = "heartbeats"
        db_table_comment = "last heartbeats of the timetable, periodic tasks and workers"

    def __str__(self) -> str:
        return self.part


class Delivery(models.Model):
    """The delivery of one event to one endpoint; partitioned, and retired, with the events."""

    class State(models.TextChoices):
        PENDING = "pending"
        DELIVERED = "delivered"
        DEAD_LETTERED = "dead_lettered"
        CANCELLED = "cancelled"
        DROPPED = "dropped"
        EXPIRED = "expired"
        DISCARDED = "discarded"

    pk = CompositePrimaryKey("partition_id", "endpoint_id", "segment_id", "sequence")
    partition_id = IntegerField(db_comment="the partition")
    endpoint = Reference(Endpoint)
    segment = Reference(Segment)
    sequence = BigIntegerField()
    stream = Reference(Stream)
    zone = Reference(
        Zone, null=True, db_comment="zone of the endpoint; null: there never was such an endpoint"
    )
    ordered = BooleanField(
        db_default=False, db_comment="the endpoint's setting when the row was written"
    )
    lane = BigIntegerField(
        null=True,
        db_comment="if ordered by key: its number, negative; null: the lane is the whole stream",
    )
    registrations = ArrayField(
        BigIntegerField(), db_comment="ids of the registrations that matched, ascending"
    )
    version_ids = ArrayField(
        BigIntegerField(),
        null=True,
        db_comment="versions whose reports and variables count; null: none",
    )
    state = TextField(choices=State, db_default=State.PENDING)
    attempts = IntegerField(db_default=0)
    uncounted_attempts = IntegerField(
        db_default=0,
        db_comment="attempts that do not count: those before the delivery was requested again,"
        " and early probes",
    )
    retry_after_s = IntegerField(null=True, db_comment="Retry-After of the last response")
    pause_s = FloatField(null=True, db_comment="pause before the next attempt; null: none")
    next_attempt_at = DateTimeField(
        db_default=TransactionNow(), db_comment="while claimed: when the claim expires"
    )
    claim = UUIDField(null=True, db_comment="token of the claim; results are written only under it")
    payload = BinaryField(
        null=True, db_comment="copy of the event's stored bytes, once the event left the database"
    )
    gap_first = BigIntegerField(
        null=True, db_comment="set: a gap notice for dropped events, from here to `sequence`"
    )
    gap_reason = TextField(
        null=True, db_comment="why they were dropped: the removal reason, or backlog"
    )
    created_at = DateTimeField(db_default=TransactionNow())
    finished_at = DateTimeField(null=True)
    last_outcome = TextField(
        null=True,
        db_comment="outcome of the last attempt if it failed, as in attempts; withheld: a dead"
        " letter that was never attempted",
    )
    last_status = IntegerField(null=True, db_comment="status of the last response, if any")
    resent_at = DateTimeField(
        null=True, db_comment="when it was last requested again; its backlog age starts then"
    )
    message_number = IntegerField(
        null=True, db_comment="2, 3, ... in its webhook-id; null: the first id"
    )
    forced = BooleanField(db_default=False, db_comment="it is posted even if its event has expired")
    replay_id = BigIntegerField(
        null=True, db_comment="the replay that wrote it; null: a forwarder did"
    )

    storage = TableStorage(partition_by="LIST (partition_id)")

    class Meta:
        db_table = "deliveries"
        verbose_name_plural = "deliveries"
        db_table_comment = "deliveries of events to endpoints"
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
                        "discarded",
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
                F("endpoint"),
                Coalesce("lane", "stream"),
                F("sequence"),
                condition=PENDING & Q(ordered=True),
                name="deliveries_lanes",
            ),
            Index(
                fields=["endpoint"],
                condition=Q(state="dead_lettered"),
                name="deliveries_dead_lettered",
            ),
            Index(
                fields=["endpoint", "stream"],
                condition=PENDING & Q(gap_first__isnull=False),
                name="deliveries_notices",
            ),
            Index(
                fields=["zone", "state", "partition_id", "segment", "sequence", "endpoint"],
                condition=~Q(state__in=["pending", "delivered"]),
                name="deliveries_ended",
            ),
        )


class ReplayRun(models.Model):
    """A run that sends deliveries of an endpoint again, or events of the log to it. Each of its
    steps is one transaction, which writes some deliveries and moves `position`.
    """

    class State(models.TextChoices):
        RUNNING = "running"
        PAUSED = "paused"
        COMPLETED = "completed"
        CANCELLED = "cancelled"
        FAILED = "failed"

    class Source(models.TextChoices):
        LOG = "log"
        DELIVERIES = "deliveries"

    id = models.BigAutoField(primary_key=True)
    zone = Reference(Zone)
    client = Reference(Client, db_comment="the owner of the endpoint")
    endpoint = Reference(Endpoint)
    source = TextField(choices=Source)
    state = TextField(choices=State, db_default=State.RUNNING)
    requested_by = TextField(db_comment="the client, or an operator's name")
    params = JsonTextField(db_comment="what is replayed: ranges and filter, or states and times")
    version_id = BigIntegerField(
        null=True, db_comment="version of the registration whose filter and report count"
    )
    position = JsonTextField(db_comment="the last event or delivery that was examined")
    steps = BigIntegerField(db_default=0, db_comment="increases with every step")
    rate = IntegerField(db_comment="deliveries per second, at most")
    deliveries_max = BigIntegerField(null=True, db_comment="it ends after so many; null: no bound")
    force = BooleanField(db_default=False)
    new_id = BooleanField(db_default=False)
    total = BigIntegerField(null=True, db_comment="events to examine, or deliveries, if known")
    examined = BigIntegerField(db_default=0)
    matched = BigIntegerField(db_default=0)
    written = BigIntegerField(db_default=0, db_comment="deliveries written or made pending")
    skipped = BigIntegerField(
        db_default=0, db_comment="delivered or discarded before, or pending already"
    )
    missing = BigIntegerField(db_default=0, db_comment="events that are no longer stored")
    paced_until = DateTimeField(db_default=NEVER, db_comment="no step before: the rate allows none")
    waits_for = TextField(
        db_default="", db_comment="why it makes no progress: endpoint, backlog, forwarder, archive"
    )
    reason = TextField(db_default="", db_comment="the error code of a failure")
    detail = TextField(db_default="", db_comment="the error message of a failure")
    requested_at = DateTimeField(db_default=TransactionNow())
    updated_at = DateTimeField(db_default=TransactionNow(), db_comment="time of the last step")
    ended_at = DateTimeField(null=True)

    storage = TableStorage(parameters={"fillfactor": 60})

    class Meta:
        db_table = "replay_runs"
        db_table_comment = "runs that send deliveries or events again"
        constraints = (
            CheckConstraint(
                condition=Q(state__in=["running", "paused", "completed", "cancelled", "failed"]),
                name="replay_runs_state",
            ),
        )
        indexes = (
            Index(fields=["zone", "id"], name="replay_runs_by_zone"),
            Index(fields=["id"], condition=Q(state="running"), name="replay_runs_running"),
        )

    def __str__(self) -> str:
        return f"{self.pk}"


class Lane(models.Model):
    """An ordered queue of an endpoint that has pending deliveries: of one stream, or of one value
    of the key by which they are ordered. Only the worker that holds its token posts from it.

    A statement that inserts an ordered delivery, or makes one pending again, marks its lane, too:
    `touched`, and `due_at` if it is null. A worker takes lanes that are due, and leaves them with
    the time at which the oldest delivery is due; it deletes a lane without deliveries, unless it
    was touched meanwhile.
    """

    pk = CompositePrimaryKey("endpoint_id", "stream_id")
    endpoint = Reference(Endpoint)
    stream = Reference(
        Stream, db_comment="the stream, or the number of the lane, which is negative"
    )
    token = UUIDField(null=True, db_comment="of the claim of the worker that took it last")
    expires_at = DateTimeField(db_comment="when its hold expires")
    due_at = DateTimeField(
        null=True, db_comment="when it can be taken; null: known to release 0.1 alone"
    )
    touched = BooleanField(db_default=True, db_comment="deliveries were written since it was taken")

    storage = TableStorage(parameters={"fillfactor": 60})

    class Meta:
        db_table = "lanes"
        db_table_comment = "ordered lanes with pending deliveries, and the workers that hold them"
        indexes = (Index(fields=["endpoint", "due_at"], name="lanes_due"),)


class CallbackWorker(models.Model):
    """A worker that posts callbacks, and its last heartbeat. The tokens of its claims start with
    the first half of its id, so that the claims and lanes of a dead worker can be found.
    """

    id = UUIDField(
        primary_key=True,
        db_comment="the second half is zero; tokens of claims start with the first half",
    )
    last_seen_at = DateTimeField()

    storage = TableStorage(parameters={"fillfactor": 60})

    class Meta:
        db_table = "callback_workers"
        db_table_comment = "workers that post callbacks"

    def __str__(self) -> str:
        return str(self.id)


class EndpointThrottle(models.Model):
    """The token bucket of an endpoint with a rate limit. Workers lock the row while they claim for
    an endpoint with a rate limit or a concurrency.
    """

    endpoint = OneToOneField(Endpoint, models.DO_NOTHING, primary_key=True, db_constraint=False)
    full_at = DateTimeField(db_default=NEVER, db_comment="when the bucket will be full again")

    storage = TableStorage(parameters={"fillfactor": 60})

    class Meta:
        db_table = "endpoint_throttles"
        db_table_comment = "token buckets of endpoints with a rate limit"

    def __str__(self) -> str:
        return f"{self.endpoint_id}: {self.full_at}"


class EndpointStatistics(models.Model):
    """The attempts at an endpoint within a minute or an hour. Each attempt is counted in both rows,
    at the time when its result was written.
    """

    pk = CompositePrimaryKey("step_s", "starts_at", "endpoint_id")
    step_s = IntegerField(db_comment="60 or 3600")
    starts_at = DateTimeField(db_comment="the start of the minute or hour")
    endpoint = Reference(Endpoint)
    delivered = BigIntegerField(db_default=0)
    client_errors = BigIntegerField(db_default=0, db_comment="attempts answered with 4xx")
    server_errors = BigIntegerField(db_default=0, db_comment="attempts answered with 5xx")
    timeouts = BigIntegerField(db_default=0)
    connection_errors = BigIntegerField(db_default=0)
    other_failures = BigIntegerField(db_default=0)
    durations = ArrayField(
        IntegerField(),
        db_default=[],
        db_comment="attempts by their duration: a histogram of delivery/statistics/histogram.py",
    )
    latencies = ArrayField(
        IntegerField(),
        db_default=[],
        db_comment="delivered events by the time from their append: the same",
    )
    pending = BigIntegerField(db_default=0, db_comment="the largest backlog that was counted")

    storage = TableStorage(parameters={"fillfactor": 60})

    class Meta:
        db_table = "endpoint_statistics"
        verbose_name_plural = "endpoint statistics"
        db_table_comment = "attempts at endpoints by minute and by hour"


class Fanout(models.Model):
    """An event that matched so many endpoints that its deliveries are written in batches, in
    parallel with the stream's other events.
    """

    pk = CompositePrimaryKey("stream_id", "sequence")
    partition_id = IntegerField()
    stream = Reference(Stream)
    segment = Reference(Segment)
    sequence = BigIntegerField()
    endpoints = ArrayField(BigIntegerField(), db_comment="ascending")
    registrations = ArrayField(
        BigIntegerField(),
        db_comment="matching registrations of the first endpoint, the second, ...",
    )
    ends = ArrayField(
        BigIntegerField(), db_comment="end of each endpoint's part of `registrations`"
    )
    version_ids = ArrayField(
        TextField(),
        db_default=[],
        db_comment="version ids of each endpoint, as arrays; empty: none",
    )
    lanes = ArrayField(
        BigIntegerField(null=True),
        db_default=[],
        db_comment="lane of each endpoint that is ordered by key; may be shorter",
    )
    total = IntegerField(db_comment="number of endpoints")
    done = IntegerField(
        db_default=0,
        db_comment="endpoints whose delivery is written; the row is deleted with the last",
    )

    storage = TableStorage(external=("endpoints", "registrations", "ends"))

    class Meta:
        db_table = "fanouts"
        db_table_comment = "events whose deliveries are written in batches"


class EndpointLoss(models.Model):
    """Deliveries of one kind that an endpoint did not receive and that are not announced yet.
    Written with the deliveries' own rows, and announced from time to time.
    """

    class Kind(models.TextChoices):
        DEAD_LETTERED = "dead_lettered"
        DROPPED = "dropped"

    pk = CompositePrimaryKey("endpoint_id", "kind")
    endpoint = Reference(Endpoint)
    kind = TextField(choices=Kind, db_comment="dropped: the backlog exceeded its bounds")
    deliveries = BigIntegerField(db_comment="deliveries since the last announcement")
    first = ArrayField(
        BigIntegerField(), null=True, db_comment="lowest segment and sequence of these"
    )
    last = ArrayField(
        BigIntegerField(), null=True, db_comment="highest segment and sequence of these"
    )
    reason = TextField(
        db_default="",
        db_comment="bound that was exceeded last, if dropped, else outcome of the last attempt",
    )
    since = DateTimeField(null=True)
    announced_at = DateTimeField(db_default=NEVER)

    storage = TableStorage(parameters={"fillfactor": 60})

    class Meta:
        db_table = "endpoint_losses"
        verbose_name_plural = "endpoint losses"
        db_table_comment = "deliveries that endpoints did not receive, until they are announced"
        constraints = (
            CheckConstraint(
                condition=Q(kind__in=["dead_lettered", "dropped"]), name="endpoint_losses_kind"
            ),
        )


class Attempt(models.Model):
    """One attempt of one delivery, or of several deliveries that one request delivered together."""

    pk = CompositePrimaryKey("endpoint_id", "segment_id", "sequence", "attempted_at", "number")
    attempted_at = DateTimeField(db_comment="when the request was sent")
    partition_id = IntegerField()
    endpoint = Reference(Endpoint)
    segment = Reference(Segment)
    sequence = BigIntegerField()
    number = IntegerField(db_comment="1, 2, 3, ...")
    outcome = TextField(
        db_comment="delivered, or the failure: status, timeout, refused_address, ..."
    )
    status = IntegerField(null=True, db_comment="status of the response, if any")
    duration_ms = IntegerField()
    url = TextField()
    request = TextField(db_comment="the request's headers, without the signature")
    response = TextField(
        db_comment="the response's headers and the start of its body, or the error"
    )
    sequences = ArrayField(
        BigIntegerField(),
        null=True,
        db_comment="of a batch: the sequences of the deliveries with this attempt, ascending, of"
        " which `sequence` is the first; null: one delivery",
    )

    storage = TableStorage(partition_by="RANGE (attempted_at)")

    class Meta:
        db_table = "attempts"
        db_table_comment = "attempts of deliveries, partitioned by day (UTC)"


class Listener(models.Model):
    """A client's subscription to one stream over one connection, and what was delivered to it: the
    record that audits read (FOX-23). Consecutive requests extend one row.
    """

    pk = CompositePrimaryKey("started_at", "id")
    started_at = DateTimeField()
    id = BigIntegerField(db_comment="from the sequence listener_ids")
    zone = Reference(Zone, db_comment="the client's zone")
    client = Reference(Client)
    stream = Reference(Stream)
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


class RetiredPartition(models.Model):
    """A partition of deliveries, attempts or listeners that was dropped from the database; written
    in the transaction that drops it.
    """

    id = models.BigAutoField(primary_key=True)
    parent = TextField(db_comment="deliveries, attempts, listeners")
    name = TextField(db_comment="such as deliveries_p7, attempts_20261122")
    rows = BigIntegerField()
    retired_at = DateTimeField(db_default=TransactionNow())
    archive_path = TextField(
        null=True, db_comment="path of its manifest in the archive; null: not archived"
    )
    reason = TextField(
        db_default="", db_comment="why it is not archived: empty, no_archive, or an error's code"
    )
    segments = MultirangeField(null=True, db_comment="ids of the segments whose deliveries it held")

    class Meta:
        db_table = "retired_partitions"
        db_table_comment = "partitions that were dropped from the database"

    def __str__(self) -> str:
        return self.name


class WebProcess(models.Model):
    """A web process with sockets, and its last heartbeat, without which they do not count."""

    id = UUIDField(primary_key=True)
    last_seen_at = DateTimeField()

    storage = TableStorage(unlogged=True, parameters={"fillfactor": 60})

    class Meta:
        db_table = "web_processes"
        db_table_comment = "web processes with sockets"
        verbose_name_plural = "web processes"

    def __str__(self) -> str:
        return str(self.id)


class SocketCount(models.Model):
    """The sockets of a client in a web process: websockets and listeners over HTTP. A crash of the
    database empties the table, and the processes write it again.
    """

    pk = CompositePrimaryKey("zone_id", "client_id", "process_id")
    zone_id = BigIntegerField()
    client_id = BigIntegerField()
    process_id = UUIDField(db_comment="the web process")
    sockets = IntegerField()

    storage = TableStorage(unlogged=True, parameters={"fillfactor": 60})

    class Meta:
        db_table = "socket_counts"
        db_table_comment = "sockets by client and web process"

    def __str__(self) -> str:
        return f"{self.client_id}: {self.sockets}"


class BacklogCount(models.Model):
    """The pending deliveries of a client when the backlogs were last counted."""

    client_id = BigIntegerField(primary_key=True)
    zone_id = BigIntegerField()
    events = BigIntegerField()
    bytes = BigIntegerField(db_comment="of the deliveries, their events included")

    storage = TableStorage(unlogged=True, parameters={"fillfactor": 60})

    class Meta:
        db_table = "backlog_counts"
        db_table_comment = "pending deliveries by client, counted about once a second"

    def __str__(self) -> str:
        return f"{self.client_id}: {self.events}"
