"""The tables of forwarding, deliveries, attempts and listeners."""

import datetime
from pathlib import Path

import django.contrib.postgres.fields
import django.contrib.postgres.functions
import django.db.models.deletion
from django.db import migrations, models

import eventhub.postgresql.tables

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
        eventhub.postgresql.tables.CreateTable(
            name="CallbackWorker",
            fields=[
                (
                    "id",
                    models.UUIDField(
                        db_comment="the second half is zero; tokens of claims start with the first half",
                        primary_key=True,
                        serialize=False,
                    ),
                ),
                ("last_seen_at", models.DateTimeField()),
            ],
            options={
                "db_table": "callback_workers",
                "db_table_comment": "workers that post callbacks",
            },
            storage={"parameters": {"fillfactor": 60}},
        ),
        eventhub.postgresql.tables.CreateTable(
            name="Forwarder",
            fields=[
                ("id", models.UUIDField(primary_key=True, serialize=False)),
                (
                    "started_at",
                    models.DateTimeField(
                        db_default=django.contrib.postgres.functions.TransactionNow()
                    ),
                ),
                (
                    "last_seen_at",
                    models.DateTimeField(
                        db_default=django.contrib.postgres.functions.TransactionNow()
                    ),
                ),
            ],
            options={
                "db_table": "forwarders",
                "db_table_comment": "processes that match events for endpoints",
            },
            storage={"parameters": {"fillfactor": 60}},
        ),
        eventhub.postgresql.tables.CreateTable(
            name="Forwarding",
            fields=[
                (
                    "stream",
                    models.OneToOneField(
                        on_delete=django.db.models.deletion.DO_NOTHING,
                        primary_key=True,
                        serialize=False,
                        to="eventlog.stream",
                    ),
                ),
                (
                    "owner",
                    models.UUIDField(
                        db_comment="the forwarder that holds the lease until `expires_at`",
                        null=True,
                    ),
                ),
                (
                    "epoch",
                    models.BigIntegerField(
                        db_comment="increases with every change of the owner", db_default=0
                    ),
                ),
                (
                    "expires_at",
                    models.DateTimeField(
                        db_default=datetime.datetime(1970, 1, 1, 0, 0, tzinfo=datetime.UTC)
                    ),
                ),
                (
                    "segment",
                    models.UUIDField(
                        db_comment="segment of the last event that is matched and whose deliveries are written"
                    ),
                ),
                ("sequence", models.BigIntegerField()),
                (
                    "endpoint_id",
                    models.BigIntegerField(
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
        eventhub.postgresql.tables.CreateTable(
            name="ComponentHeartbeat",
            fields=[
                ("part", models.TextField(primary_key=True, serialize=False)),
                (
                    "last_seen_at",
                    models.DateTimeField(
                        db_default=django.contrib.postgres.functions.TransactionNow()
                    ),
                ),
            ],
            options={
                "db_table": "heartbeats",
                "db_table_comment": "last heartbeats of the timetable, periodic tasks and workers",
            },
            storage={"parameters": {"fillfactor": 60}},
        ),
        migrations.CreateModel(
            name="RetiredPartition",
            fields=[
                ("id", models.BigAutoField(primary_key=True, serialize=False)),
                ("parent", models.TextField(db_comment="deliveries, attempts, listeners")),
                ("name", models.TextField(db_comment="such as deliveries_p7, attempts_20261122")),
                ("rows", models.BigIntegerField()),
                (
                    "retired_at",
                    models.DateTimeField(
                        db_default=django.contrib.postgres.functions.TransactionNow()
                    ),
                ),
                (
                    "archive_path",
                    models.TextField(
                        db_comment="path of its manifest in the archive; null: not archived",
                        null=True,
                    ),
                ),
                (
                    "reason",
                    models.TextField(
                        db_comment="why it is not archived: empty, no_archive, or an error's code",
                        db_default="",
                    ),
                ),
                (
                    "segments",
                    eventhub.postgresql.tables.MultirangeField(
                        db_comment="ids of the segments whose deliveries it held", null=True
                    ),
                ),
            ],
            options={
                "db_table": "retired_partitions",
                "db_table_comment": "partitions that were dropped from the database",
            },
        ),
        eventhub.postgresql.tables.CreateTable(
            name="Attempt",
            fields=[
                (
                    "pk",
                    models.CompositePrimaryKey(
                        "endpoint_id",
                        "segment_id",
                        "sequence",
                        "run",
                        "attempted_at",
                        "number",
                        blank=True,
                        editable=False,
                        primary_key=True,
                        serialize=False,
                    ),
                ),
                ("attempted_at", models.DateTimeField(db_comment="when the request was sent")),
                ("partition_id", models.IntegerField()),
                (
                    "endpoint",
                    models.ForeignKey(
                        db_constraint=False,
                        db_index=False,
                        on_delete=django.db.models.deletion.DO_NOTHING,
                        to="registrations.endpoint",
                    ),
                ),
                (
                    "segment",
                    models.ForeignKey(
                        db_constraint=False,
                        db_index=False,
                        on_delete=django.db.models.deletion.DO_NOTHING,
                        to="eventlog.segment",
                    ),
                ),
                ("sequence", models.BigIntegerField()),
                ("run", models.IntegerField()),
                ("number", models.IntegerField(db_comment="1, 2, 3, ...")),
                (
                    "outcome",
                    models.TextField(
                        db_comment="delivered, or the failure: status, timeout, refused_address, ..."
                    ),
                ),
                (
                    "status",
                    models.IntegerField(db_comment="status of the response, if any", null=True),
                ),
                ("duration_ms", models.IntegerField()),
                ("url", models.TextField()),
                (
                    "request",
                    models.TextField(db_comment="the request's headers, without the signature"),
                ),
                (
                    "response",
                    models.TextField(
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
        eventhub.postgresql.tables.CreateTable(
            name="Backoff",
            fields=[
                (
                    "endpoint",
                    models.OneToOneField(
                        db_constraint=False,
                        on_delete=django.db.models.deletion.DO_NOTHING,
                        primary_key=True,
                        serialize=False,
                        to="registrations.endpoint",
                    ),
                ),
                ("failures", models.IntegerField(db_comment="failed attempts in a row")),
                (
                    "failing_since",
                    models.DateTimeField(db_comment="when the first of these was written"),
                ),
                (
                    "single_delivery",
                    models.BooleanField(db_comment="all of these were attempts of one delivery"),
                ),
                (
                    "segment",
                    models.ForeignKey(
                        db_comment="segment of the first event that failed",
                        db_constraint=False,
                        db_index=False,
                        on_delete=django.db.models.deletion.DO_NOTHING,
                        to="eventlog.segment",
                    ),
                ),
                ("sequence", models.BigIntegerField()),
                (
                    "retry_after_s",
                    models.FloatField(db_comment="Retry-After of the last response; 0: none"),
                ),
                (
                    "pause_s",
                    models.FloatField(db_comment="upper bound of the pause; 0: not in backoff"),
                ),
                ("paused_until", models.DateTimeField()),
                (
                    "probing",
                    models.BooleanField(db_comment="a probe is under way", db_default=False),
                ),
                (
                    "recorded_at",
                    models.DateTimeField(
                        db_comment="time of the last failure or probe; an endpoint changed later is called at once",
                        db_default=django.contrib.postgres.functions.TransactionNow(),
                    ),
                ),
            ],
            options={
                "db_table": "backoffs",
                "db_table_comment": "endpoints that failed since their last successful delivery",
            },
            storage={"parameters": {"fillfactor": 60}},
        ),
        eventhub.postgresql.tables.CreateTable(
            name="Fanout",
            fields=[
                (
                    "pk",
                    models.CompositePrimaryKey(
                        "stream_id",
                        "sequence",
                        blank=True,
                        editable=False,
                        primary_key=True,
                        serialize=False,
                    ),
                ),
                ("partition_id", models.IntegerField()),
                (
                    "stream",
                    models.ForeignKey(
                        db_constraint=False,
                        db_index=False,
                        on_delete=django.db.models.deletion.DO_NOTHING,
                        to="eventlog.stream",
                    ),
                ),
                (
                    "segment",
                    models.ForeignKey(
                        db_constraint=False,
                        db_index=False,
                        on_delete=django.db.models.deletion.DO_NOTHING,
                        to="eventlog.segment",
                    ),
                ),
                ("sequence", models.BigIntegerField()),
                (
                    "endpoints",
                    django.contrib.postgres.fields.ArrayField(
                        base_field=models.BigIntegerField(), db_comment="ascending", size=None
                    ),
                ),
                (
                    "registrations",
                    django.contrib.postgres.fields.ArrayField(
                        base_field=models.BigIntegerField(),
                        db_comment="matching registrations of the first endpoint, the second, ...",
                        size=None,
                    ),
                ),
                (
                    "ends",
                    django.contrib.postgres.fields.ArrayField(
                        base_field=models.BigIntegerField(),
                        db_comment="end of each endpoint's part of `registrations`",
                        size=None,
                    ),
                ),
                (
                    "version_ids",
                    django.contrib.postgres.fields.ArrayField(
                        base_field=models.TextField(),
                        db_comment="version ids of each endpoint, as arrays; empty: none",
                        db_default=[],
                        size=None,
                    ),
                ),
                ("total", models.IntegerField(db_comment="number of endpoints")),
                (
                    "done",
                    models.IntegerField(
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
        eventhub.postgresql.tables.CreateTable(
            name="Lane",
            fields=[
                (
                    "pk",
                    models.CompositePrimaryKey(
                        "endpoint_id",
                        "stream_id",
                        "run",
                        blank=True,
                        editable=False,
                        primary_key=True,
                        serialize=False,
                    ),
                ),
                (
                    "endpoint",
                    models.ForeignKey(
                        db_constraint=False,
                        db_index=False,
                        on_delete=django.db.models.deletion.DO_NOTHING,
                        to="registrations.endpoint",
                    ),
                ),
                (
                    "stream",
                    models.ForeignKey(
                        db_constraint=False,
                        db_index=False,
                        on_delete=django.db.models.deletion.DO_NOTHING,
                        to="eventlog.stream",
                    ),
                ),
                ("run", models.IntegerField()),
                ("token", models.UUIDField()),
                ("expires_at", models.DateTimeField()),
            ],
            options={
                "db_table": "lanes",
                "db_table_comment": "ordered lanes that workers hold",
            },
            storage={"parameters": {"fillfactor": 60}},
        ),
        eventhub.postgresql.tables.CreateTable(
            name="Delivery",
            fields=[
                (
                    "pk",
                    models.CompositePrimaryKey(
                        "partition_id",
                        "endpoint_id",
                        "segment_id",
                        "sequence",
                        "run",
                        blank=True,
                        editable=False,
                        primary_key=True,
                        serialize=False,
                    ),
                ),
                ("partition_id", models.IntegerField(db_comment="the partition")),
                (
                    "endpoint",
                    models.ForeignKey(
                        db_constraint=False,
                        db_index=False,
                        on_delete=django.db.models.deletion.DO_NOTHING,
                        to="registrations.endpoint",
                    ),
                ),
                (
                    "segment",
                    models.ForeignKey(
                        db_constraint=False,
                        db_index=False,
                        on_delete=django.db.models.deletion.DO_NOTHING,
                        to="eventlog.segment",
                    ),
                ),
                ("sequence", models.BigIntegerField()),
                ("run", models.IntegerField(db_comment="0: live", db_default=0)),
                (
                    "stream",
                    models.ForeignKey(
                        db_constraint=False,
                        db_index=False,
                        on_delete=django.db.models.deletion.DO_NOTHING,
                        to="eventlog.stream",
                    ),
                ),
                (
                    "zone",
                    models.ForeignKey(
                        db_comment="zone of the endpoint; null: there never was such an endpoint",
                        db_constraint=False,
                        db_index=False,
                        null=True,
                        on_delete=django.db.models.deletion.DO_NOTHING,
                        to="access.zone",
                    ),
                ),
                (
                    "ordered",
                    models.BooleanField(
                        db_comment="the endpoint's setting when the row was written",
                        db_default=False,
                    ),
                ),
                (
                    "registrations",
                    django.contrib.postgres.fields.ArrayField(
                        base_field=models.BigIntegerField(),
                        db_comment="ids of the registrations that matched, ascending",
                        size=None,
                    ),
                ),
                (
                    "version_ids",
                    django.contrib.postgres.fields.ArrayField(
                        base_field=models.BigIntegerField(),
                        db_comment="versions whose reports and variables count; null: none",
                        null=True,
                        size=None,
                    ),
                ),
                (
                    "state",
                    models.TextField(
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
                ("attempts", models.IntegerField(db_default=0)),
                (
                    "uncounted_attempts",
                    models.IntegerField(
                        db_comment="attempts that do not count: the endpoint as a whole was failing",
                        db_default=0,
                    ),
                ),
                (
                    "retry_after_s",
                    models.IntegerField(db_comment="Retry-After of the last response", null=True),
                ),
                (
                    "next_attempt_at",
                    models.DateTimeField(
                        db_comment="while claimed: when the claim expires",
                        db_default=django.contrib.postgres.functions.TransactionNow(),
                    ),
                ),
                (
                    "claim",
                    models.UUIDField(
                        db_comment="token of the claim; results are written only under it",
                        null=True,
                    ),
                ),
                (
                    "payload",
                    models.BinaryField(
                        db_comment="copy of the event's stored bytes, once the event left the database",
                        null=True,
                    ),
                ),
                (
                    "gap_first",
                    models.BigIntegerField(
                        db_comment="set: a gap notice for dropped events, from here to `sequence`",
                        null=True,
                    ),
                ),
                (
                    "gap_reason",
                    models.TextField(
                        db_comment="why they were dropped: the removal reason, or backlog",
                        null=True,
                    ),
                ),
                (
                    "created_at",
                    models.DateTimeField(
                        db_default=django.contrib.postgres.functions.TransactionNow()
                    ),
                ),
                ("finished_at", models.DateTimeField(null=True)),
            ],
            options={
                "verbose_name_plural": "deliveries",
                "db_table": "deliveries",
                "db_table_comment": "deliveries of events to endpoints",
                "indexes": [
                    models.Index(
                        condition=models.Q(("state", "pending"), ("ordered", False)),
                        fields=["endpoint", "next_attempt_at"],
                        name="deliveries_parallel",
                    ),
                    models.Index(
                        condition=models.Q(("state", "pending"), ("ordered", True)),
                        fields=["endpoint", "stream", "run", "sequence"],
                        name="deliveries_ordered",
                    ),
                    models.Index(
                        condition=models.Q(("state", "dead_lettered")),
                        fields=["endpoint"],
                        name="deliveries_dead_lettered",
                    ),
                    models.Index(
                        condition=models.Q(("state", "pending"), ("gap_first__isnull", False)),
                        fields=["endpoint", "stream", "run"],
                        name="deliveries_notices",
                    ),
                    models.Index(
                        condition=models.Q(("state__in", ["pending", "delivered"]), _negated=True),
                        fields=[
                            "zone",
                            "state",
                            "partition_id",
                            "segment",
                            "sequence",
                            "endpoint",
                            "run",
                        ],
                        name="deliveries_ended",
                    ),
                ],
                "constraints": [
                    models.CheckConstraint(
                        condition=models.Q(
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
        eventhub.postgresql.tables.CreateTable(
            name="EndpointLoss",
            fields=[
                (
                    "pk",
                    models.CompositePrimaryKey(
                        "endpoint_id",
                        "kind",
                        blank=True,
                        editable=False,
                        primary_key=True,
                        serialize=False,
                    ),
                ),
                (
                    "endpoint",
                    models.ForeignKey(
                        db_constraint=False,
                        db_index=False,
                        on_delete=django.db.models.deletion.DO_NOTHING,
                        to="registrations.endpoint",
                    ),
                ),
                (
                    "kind",
                    models.TextField(
                        choices=[("dead_lettered", "Dead Lettered"), ("dropped", "Dropped")],
                        db_comment="dropped: the backlog exceeded its bounds",
                    ),
                ),
                (
                    "deliveries",
                    models.BigIntegerField(db_comment="deliveries since the last announcement"),
                ),
                (
                    "first",
                    django.contrib.postgres.fields.ArrayField(
                        base_field=models.BigIntegerField(),
                        db_comment="lowest segment and sequence of these",
                        null=True,
                        size=None,
                    ),
                ),
                (
                    "last",
                    django.contrib.postgres.fields.ArrayField(
                        base_field=models.BigIntegerField(),
                        db_comment="highest segment and sequence of these",
                        null=True,
                        size=None,
                    ),
                ),
                (
                    "reason",
                    models.TextField(
                        db_comment="bound that was exceeded last, if dropped", db_default=""
                    ),
                ),
                ("since", models.DateTimeField(null=True)),
                (
                    "announced_at",
                    models.DateTimeField(
                        db_default=datetime.datetime(1970, 1, 1, 0, 0, tzinfo=datetime.UTC)
                    ),
                ),
            ],
            options={
                "verbose_name_plural": "endpoint losses",
                "db_table": "endpoint_losses",
                "db_table_comment": "deliveries that endpoints did not receive, until they are announced",
                "constraints": [
                    models.CheckConstraint(
                        condition=models.Q(("kind__in", ["dead_lettered", "dropped"])),
                        name="endpoint_losses_kind",
                    )
                ],
            },
            storage={"parameters": {"fillfactor": 60}},
        ),
        eventhub.postgresql.tables.CreateTable(
            name="Listener",
            fields=[
                (
                    "pk",
                    models.CompositePrimaryKey(
                        "started_at",
                        "id",
                        blank=True,
                        editable=False,
                        primary_key=True,
                        serialize=False,
                    ),
                ),
                ("started_at", models.DateTimeField()),
                ("id", models.BigIntegerField(db_comment="from the sequence listener_ids")),
                (
                    "zone",
                    models.ForeignKey(
                        db_comment="the client's zone",
                        db_constraint=False,
                        db_index=False,
                        on_delete=django.db.models.deletion.DO_NOTHING,
                        to="access.zone",
                    ),
                ),
                (
                    "client",
                    models.ForeignKey(
                        db_constraint=False,
                        db_index=False,
                        on_delete=django.db.models.deletion.DO_NOTHING,
                        to="access.client",
                    ),
                ),
                (
                    "stream",
                    models.ForeignKey(
                        db_constraint=False,
                        db_index=False,
                        on_delete=django.db.models.deletion.DO_NOTHING,
                        to="eventlog.stream",
                    ),
                ),
                (
                    "node",
                    models.TextField(
                        db_comment="random name of the process that served it; new at each start of a process"
                    ),
                ),
                (
                    "transport",
                    models.TextField(
                        db_comment="websocket, sse, poll, lines, local; unrecorded: later listeners of the hour have no row"
                    ),
                ),
                (
                    "name",
                    models.TextField(
                        db_comment="the listener's name on its websocket; empty for other transports"
                    ),
                ),
                (
                    "start",
                    models.TextField(
                        db_comment="kind of start: cursor (the client names the last event it has), now, oldest, boot, time, gap (after missing events), state, continued"
                    ),
                ),
                (
                    "segment",
                    models.UUIDField(
                        db_comment="segment of the event after which it starts", null=True
                    ),
                ),
                (
                    "sequence",
                    models.BigIntegerField(
                        db_comment="sequence of the event after which it starts"
                    ),
                ),
                ("mask", models.BigIntegerField(db_comment="requested channels, 64 bits")),
                (
                    "filter",
                    models.TextField(
                        db_comment="its filter in predicate form; null: it names registrations, or the filter is too long",
                        null=True,
                    ),
                ),
                (
                    "registrations",
                    django.contrib.postgres.fields.ArrayField(
                        base_field=models.BigIntegerField(),
                        db_comment="registrations named by the listener",
                        size=None,
                    ),
                ),
                (
                    "request_digest",
                    models.TextField(
                        db_comment="digest of mask, filter and registrations: equal for equal requests"
                    ),
                ),
                (
                    "delivered_segment",
                    models.UUIDField(
                        db_comment="segment of the event up to which all that match were delivered, as of updated_at",
                        null=True,
                    ),
                ),
                ("delivered_sequence", models.BigIntegerField(db_comment="sequence of that event")),
                (
                    "delivered_events",
                    models.BigIntegerField(db_comment="number of events delivered"),
                ),
                ("updated_at", models.DateTimeField()),
                (
                    "ended_at",
                    models.DateTimeField(
                        db_comment="null: it is still open, or its process was killed", null=True
                    ),
                ),
                (
                    "end_reason",
                    models.TextField(
                        db_comment="stopped, disconnected, slow_reader, gap, continued, or an error code",
                        null=True,
                    ),
                ),
            ],
            options={
                "db_table": "listeners",
                "db_table_comment": "listeners and what was delivered to them, partitioned by day (UTC)",
                "indexes": [
                    models.Index(
                        fields=["client", "-started_at", "-id"], name="listeners_of_client"
                    )
                ],
            },
            storage={"partition_by": "RANGE (started_at)"},
        ),
        migrations.RunSQL("CREATE SEQUENCE listener_ids", "DROP SEQUENCE listener_ids"),
        migrations.RunSQL((SQL / "functions" / "due.v1.sql").read_text(), "DROP FUNCTION is_due"),
    ]
