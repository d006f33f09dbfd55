"""The tables of forwarding, deliveries, attempts and listeners."""

import datetime
from pathlib import Path

from django.contrib.postgres.fields import ArrayField
from django.contrib.postgres.functions import TransactionNow
from django.db import migrations
from django.db.migrations import CreateModel, RunSQL
from django.db.models import (
    DO_NOTHING,
    BigAutoField,
    BigIntegerField,
    BinaryField,
    BooleanField,
    CheckConstraint,
    CompositePrimaryKey,
    DateTimeField,
    FloatField,
    Index,
    IntegerField,
    OneToOneField,
    Q,
    TextField,
    UUIDField,
)

from eventhub.postgresql.tables import CreateTable, MultirangeField, Reference

SQL = Path(__file__).parent.parent / "sql"


class Migration(migrations.Migration):
    initial = True
    release = "0.1"

    dependencies = [
        ("access", "0001_initial"),
        ("eventlog", "0001_initial"),
        ("registrations", "0001_initial"),
    ]

    operations = [
        CreateTable(
            name="CallbackWorker",
            fields=[
                (
                    "id",
                    UUIDField(
                        db_comment="the second half is zero; tokens of claims start with the first half",
                        primary_key=True,
                        serialize=False,
                    ),
                ),
                ("last_seen_at", DateTimeField()),
            ],
            options={
                "db_table": "callback_workers",
                "db_table_comment": "workers that post callbacks",
            },
            storage={"parameters": {"fillfactor": 60}},
        ),
        CreateTable(
            name="Forwarder",
            fields=[
                ("id", UUIDField(primary_key=True, serialize=False)),
                ("started_at", DateTimeField(db_default=TransactionNow())),
                ("last_seen_at", DateTimeField(db_default=TransactionNow())),
            ],
            options={
                "db_table": "forwarders",
                "db_table_comment": "processes that match events for endpoints",
            },
            storage={"parameters": {"fillfactor": 60}},
        ),
        CreateTable(
            name="Forwarding",
            fields=[
                (
                    "stream",
                    OneToOneField(
                        on_delete=DO_NOTHING,
                        primary_key=True,
                        serialize=False,
                        to="eventlog.stream",
                    ),
                ),
                (
                    "owner",
                    UUIDField(
                        db_comment="the forwarder that holds the lease until `expires_at`",
                        null=True,
                    ),
                ),
                (
                    "epoch",
                    BigIntegerField(
                        db_comment="increases with every change of the owner", db_default=0
                    ),
                ),
                (
                    "expires_at",
                    DateTimeField(
                        db_default=datetime.datetime(1970, 1, 1, 0, 0, tzinfo=datetime.UTC)
                    ),
                ),
                (
                    "segment",
                    UUIDField(
                        db_comment="segment of the last event that is matched and whose deliveries are written"
                    ),
                ),
                ("sequence", BigIntegerField()),
                (
                    "endpoint_id",
                    BigIntegerField(
                        db_comment="of the next event, deliveries up to this endpoint are written (0: none)",
                        db_default=0,
                    ),
                ),
            ],
            options={
                "verbose_name_plural": "forwarding",
                "db_table": "forwarding",
                "db_table_comment": "the lease and the checkpoint of each stream with callbacks",
            },
            storage={"parameters": {"fillfactor": 40}},
        ),
        CreateTable(
            name="ComponentHeartbeat",
            fields=[
                ("part", TextField(primary_key=True, serialize=False)),
                ("last_seen_at", DateTimeField(db_default=TransactionNow())),
            ],
            options={
                "db_table": "heartbeats",
                "db_table_comment": "last heartbeats of the timetable, periodic tasks and workers",
            },
            storage={"parameters": {"fillfactor": 60}},
        ),
        CreateModel(
            name="RetiredPartition",
            fields=[
                ("id", BigAutoField(primary_key=True, serialize=False)),
                ("parent", TextField(db_comment="deliveries, attempts, listeners")),
                ("name", TextField(db_comment="such as deliveries_p7, attempts_20261122")),
                ("rows", BigIntegerField()),
                ("retired_at", DateTimeField(db_default=TransactionNow())),
                (
                    "archive_path",
                    TextField(
                        db_comment="path of its manifest in the archive; null: not archived",
                        null=True,
                    ),
                ),
                (
                    "reason",
                    TextField(
                        db_comment="why it is not archived: empty, no_archive, or an error's code",
                        db_default="",
                    ),
                ),
                (
                    "segments",
                    MultirangeField(
                        db_comment="ids of the segments whose deliveries it held", null=True
                    ),
                ),
            ],
            options={
                "db_table": "retired_partitions",
                "db_table_comment": "partitions that were dropped from the database",
            },
        ),
        CreateTable(
            name="Attempt",
            fields=[
                (
                    "pk",
                    CompositePrimaryKey(
                        "endpoint_id",
                        "segment_id",
                        "sequence",
                        "attempted_at",
                        "number",
                        blank=True,
                        editable=False,
                        primary_key=True,
                        serialize=False,
                    ),
                ),
                ("attempted_at", DateTimeField(db_comment="when the request was sent")),
                ("partition_id", IntegerField()),
                ("endpoint", Reference(to="registrations.endpoint")),
                ("segment", Reference(to="eventlog.segment")),
                ("sequence", BigIntegerField()),
                ("number", IntegerField(db_comment="1, 2, 3, ...")),
                (
                    "outcome",
                    TextField(
                        db_comment="delivered, or the failure: status, timeout, refused_address, ..."
                    ),
                ),
                ("status", IntegerField(db_comment="status of the response, if any", null=True)),
                ("duration_ms", IntegerField()),
                ("url", TextField()),
                ("request", TextField(db_comment="the request's headers, without the signature")),
                (
                    "response",
                    TextField(
                        db_comment="the response's headers and the start of its body, or the error"
                    ),
                ),
            ],
            options={
                "db_table": "attempts",
                "db_table_comment": "attempts of deliveries, partitioned by day (UTC)",
            },
            storage={"partition_by": "RANGE (attempted_at)"},
        ),
        CreateTable(
            name="Backoff",
            fields=[
                (
                    "endpoint",
                    OneToOneField(
                        db_constraint=False,
                        on_delete=DO_NOTHING,
                        primary_key=True,
                        serialize=False,
                        to="registrations.endpoint",
                    ),
                ),
                ("failures", IntegerField(db_comment="failed attempts in a row")),
                ("failing_since", DateTimeField(db_comment="when the first of these was written")),
                (
                    "single_delivery",
                    BooleanField(db_comment="all of these were attempts of one delivery"),
                ),
                (
                    "segment",
                    Reference(
                        db_comment="segment of the first event that failed", to="eventlog.segment"
                    ),
                ),
                ("sequence", BigIntegerField()),
                (
                    "retry_after_s",
                    FloatField(db_comment="Retry-After of the last response; 0: none"),
                ),
                ("pause_s", FloatField(db_comment="upper bound of the pause; 0: not in backoff")),
                ("paused_until", DateTimeField()),
                ("probing", BooleanField(db_comment="a probe is under way", db_default=False)),
                (
                    "recorded_at",
                    DateTimeField(
                        db_comment="time of the last failure or probe; an endpoint changed later is called at once",
                        db_default=TransactionNow(),
                    ),
                ),
            ],
            options={
                "db_table": "backoffs",
                "db_table_comment": "endpoints that failed since their last successful delivery",
            },
            storage={"parameters": {"fillfactor": 60}},
        ),
        CreateTable(
            name="Fanout",
            fields=[
                (
                    "pk",
                    CompositePrimaryKey(
                        "stream_id",
                        "sequence",
                        blank=True,
                        editable=False,
                        primary_key=True,
                        serialize=False,
                    ),
                ),
                ("partition_id", IntegerField()),
                ("stream", Reference(to="eventlog.stream")),
                ("segment", Reference(to="eventlog.segment")),
                ("sequence", BigIntegerField()),
                ("endpoints", ArrayField(base_field=BigIntegerField(), db_comment="ascending")),
                (
                    "registrations",
                    ArrayField(
                        base_field=BigIntegerField(),
                        db_comment="matching registrations of the first endpoint, the second, ...",
                    ),
                ),
                (
                    "ends",
                    ArrayField(
                        base_field=BigIntegerField(),
                        db_comment="end of each endpoint's part of `registrations`",
                    ),
                ),
                (
                    "version_ids",
                    ArrayField(
                        base_field=TextField(),
                        db_comment="version ids of each endpoint, as arrays; empty: none",
                        db_default=[],
                    ),
                ),
                ("total", IntegerField(db_comment="number of endpoints")),
                (
                    "done",
                    IntegerField(
                        db_comment="endpoints whose delivery is written; the row is deleted with the last",
                        db_default=0,
                    ),
                ),
            ],
            options={
                "db_table": "fanouts",
                "db_table_comment": "events whose deliveries are written in batches",
            },
            storage={"external": ("endpoints", "registrations", "ends")},
        ),
        CreateTable(
            name="Lane",
            fields=[
                (
                    "pk",
                    CompositePrimaryKey(
                        "endpoint_id",
                        "stream_id",
                        blank=True,
                        editable=False,
                        primary_key=True,
                        serialize=False,
                    ),
                ),
                ("endpoint", Reference(to="registrations.endpoint")),
                ("stream", Reference(to="eventlog.stream")),
                ("token", UUIDField()),
                ("expires_at", DateTimeField()),
            ],
            options={"db_table": "lanes", "db_table_comment": "ordered lanes that workers hold"},
            storage={"parameters": {"fillfactor": 60}},
        ),
        CreateTable(
            name="Delivery",
            fields=[
                (
                    "pk",
                    CompositePrimaryKey(
                        "partition_id",
                        "endpoint_id",
                        "segment_id",
                        "sequence",
                        blank=True,
                        editable=False,
                        primary_key=True,
                        serialize=False,
                    ),
                ),
                ("partition_id", IntegerField(db_comment="the partition")),
                ("endpoint", Reference(to="registrations.endpoint")),
                ("segment", Reference(to="eventlog.segment")),
                ("sequence", BigIntegerField()),
                ("stream", Reference(to="eventlog.stream")),
                (
                    "zone",
                    Reference(
                        db_comment="zone of the endpoint; null: there never was such an endpoint",
                        null=True,
                        to="access.zone",
                    ),
                ),
                (
                    "ordered",
                    BooleanField(
                        db_comment="the endpoint's setting when the row was written",
                        db_default=False,
                    ),
                ),
                (
                    "registrations",
                    ArrayField(
                        base_field=BigIntegerField(),
                        db_comment="ids of the registrations that matched, ascending",
                    ),
                ),
                (
                    "version_ids",
                    ArrayField(
                        base_field=BigIntegerField(),
                        db_comment="versions whose reports and variables count; null: none",
                        null=True,
                    ),
                ),
                (
                    "state",
                    TextField(
                        choices=[
                            ("pending", "Pending"),
                            ("delivered", "Delivered"),
                            ("dead_lettered", "Dead Lettered"),
                            ("cancelled", "Cancelled"),
                            ("dropped", "Dropped"),
                            ("expired", "Expired"),
                        ],
                        db_default="pending",
                    ),
                ),
                ("attempts", IntegerField(db_default=0)),
                (
                    "uncounted_attempts",
                    IntegerField(
                        db_comment="attempts that do not count: the endpoint as a whole was failing",
                        db_default=0,
                    ),
                ),
                (
                    "retry_after_s",
                    IntegerField(db_comment="Retry-After of the last response", null=True),
                ),
                (
                    "next_attempt_at",
                    DateTimeField(
                        db_comment="while claimed: when the claim expires",
                        db_default=TransactionNow(),
                    ),
                ),
                (
                    "claim",
                    UUIDField(
                        db_comment="token of the claim; results are written only under it",
                        null=True,
                    ),
                ),
                (
                    "payload",
                    BinaryField(
                        db_comment="copy of the event's stored bytes, once the event left the database",
                        null=True,
                    ),
                ),
                (
                    "gap_first",
                    BigIntegerField(
                        db_comment="set: a gap notice for dropped events, from here to `sequence`",
                        null=True,
                    ),
                ),
                (
                    "gap_reason",
                    TextField(
                        db_comment="why they were dropped: the removal reason, or backlog",
                        null=True,
                    ),
                ),
                ("created_at", DateTimeField(db_default=TransactionNow())),
                ("finished_at", DateTimeField(null=True)),
            ],
            options={
                "verbose_name_plural": "deliveries",
                "db_table": "deliveries",
                "db_table_comment": "deliveries of events to endpoints",
                "indexes": [
                    Index(
                        condition=Q(("state", "pending"), ("ordered", False)),
                        fields=["endpoint", "next_attempt_at"],
                        name="deliveries_parallel",
                    ),
                    Index(
                        condition=Q(("state", "pending"), ("ordered", True)),
                        fields=["endpoint", "stream", "sequence"],
                        name="deliveries_ordered",
                    ),
                    Index(
                        condition=Q(("state", "dead_lettered")),
                        fields=["endpoint"],
                        name="deliveries_dead_lettered",
                    ),
                    Index(
                        condition=Q(("state", "pending"), ("gap_first__isnull", False)),
                        fields=["endpoint", "stream"],
                        name="deliveries_notices",
                    ),
                    Index(
                        condition=Q(("state__in", ["pending", "delivered"]), _negated=True),
                        fields=["zone", "state", "partition_id", "segment", "sequence", "endpoint"],
                        name="deliveries_ended",
                    ),
                ],
                "constraints": [
                    CheckConstraint(
                        condition=Q(
                            (
                                "state__in",
                                [
                                    "pending",
                                    "delivered",
                                    "dead_lettered",
                                    "cancelled",
                                    "dropped",
                                    "expired",
                                ],
                            )
                        ),
                        name="deliveries_state",
                    )
                ],
            },
            storage={"partition_by": "LIST (partition_id)"},
        ),
        CreateTable(
            name="EndpointLoss",
            fields=[
                (
                    "pk",
                    CompositePrimaryKey(
                        "endpoint_id",
                        "kind",
                        blank=True,
                        editable=False,
                        primary_key=True,
                        serialize=False,
                    ),
                ),
                ("endpoint", Reference(to="registrations.endpoint")),
                (
                    "kind",
                    TextField(
                        choices=[("dead_lettered", "Dead Lettered"), ("dropped", "Dropped")],
                        db_comment="dropped: the backlog exceeded its bounds",
                    ),
                ),
                (
                    "deliveries",
                    BigIntegerField(db_comment="deliveries since the last announcement"),
                ),
                (
                    "first",
                    ArrayField(
                        base_field=BigIntegerField(),
                        db_comment="lowest segment and sequence of these",
                        null=True,
                    ),
                ),
                (
                    "last",
                    ArrayField(
                        base_field=BigIntegerField(),
                        db_comment="highest segment and sequence of these",
                        null=True,
                    ),
                ),
                (
                    "reason",
                    TextField(db_comment="bound that was exceeded last, if dropped", db_default=""),
                ),
                ("since", DateTimeField(null=True)),
                (
                    "announced_at",
                    DateTimeField(
                        db_default=datetime.datetime(1970, 1, 1, 0, 0, tzinfo=datetime.UTC)
                    ),
                ),
            ],
            options={
                "verbose_name_plural": "endpoint losses",
                "db_table": "endpoint_losses",
                "db_table_comment": "deliveries that endpoints did not receive, until they are announced",
                "constraints": [
                    CheckConstraint(
                        condition=Q(("kind__in", ["dead_lettered", "dropped"])),
                        name="endpoint_losses_kind",
                    )
                ],
            },
            storage={"parameters": {"fillfactor": 60}},
        ),
        CreateTable(
            name="Listener",
            fields=[
                (
                    "pk",
                    CompositePrimaryKey(
                        "started_at",
                        "id",
                        blank=True,
                        editable=False,
                        primary_key=True,
                        serialize=False,
                    ),
                ),
                ("started_at", DateTimeField()),
                ("id", BigIntegerField(db_comment="from the sequence listener_ids")),
                ("zone", Reference(db_comment="the client's zone", to="access.zone")),
                ("client", Reference(to="access.client")),
                ("stream", Reference(to="eventlog.stream")),
                (
                    "node",
                    TextField(
                        db_comment="random name of the process that served it; new at each start of a process"
                    ),
                ),
                (
                    "transport",
                    TextField(
                        db_comment="websocket, sse, poll, lines, local; unrecorded: later listeners of the hour have no row"
                    ),
                ),
                (
                    "name",
                    TextField(
                        db_comment="the listener's name on its websocket; empty for other transports"
                    ),
                ),
                (
                    "start",
                    TextField(
                        db_comment="kind of start: cursor (the client names the last event it has), now, oldest, boot, time, gap (after missing events), state, continued"
                    ),
                ),
                (
                    "segment",
                    UUIDField(db_comment="segment of the event after which it starts", null=True),
                ),
                (
                    "sequence",
                    BigIntegerField(db_comment="sequence of the event after which it starts"),
                ),
                ("mask", BigIntegerField(db_comment="requested channels, 64 bits")),
                (
                    "filter",
                    TextField(
                        db_comment="its filter in predicate form; null: it names registrations, or the filter is too long",
                        null=True,
                    ),
                ),
                (
                    "registrations",
                    ArrayField(
                        base_field=BigIntegerField(),
                        db_comment="registrations named by the listener",
                    ),
                ),
                (
                    "request_digest",
                    TextField(
                        db_comment="digest of mask, filter and registrations: equal for equal requests"
                    ),
                ),
                (
                    "delivered_segment",
                    UUIDField(
                        db_comment="segment of the event up to which all that match were delivered, as of updated_at",
                        null=True,
                    ),
                ),
                ("delivered_sequence", BigIntegerField(db_comment="sequence of that event")),
                ("delivered_events", BigIntegerField(db_comment="number of events delivered")),
                ("updated_at", DateTimeField()),
                (
                    "ended_at",
                    DateTimeField(
                        db_comment="null: it is still open, or its process was killed", null=True
                    ),
                ),
                (
                    "end_reason",
                    TextField(
                        db_comment="stopped, disconnected, slow_reader, gap, continued, or an error code",
                        null=True,
                    ),
                ),
            ],
            options={
                "db_table": "listeners",
                "db_table_comment": "listeners and what was delivered to them, partitioned by day (UTC)",
                "indexes": [
                    Index(fields=["client", "-started_at", "-id"], name="listeners_of_client")
                ],
            },
            storage={"partition_by": "RANGE (started_at)"},
        ),
        RunSQL("CREATE SEQUENCE listener_ids", "DROP SEQUENCE listener_ids"),
        RunSQL((SQL / "functions" / "due.v1.sql").read_text(), "DROP FUNCTION is_due"),
    ]
