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
                        db_comment="its second half is zero", primary_key=True, serialize=False
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
                        db_comment="the forwarder that holds the lease until it expires", null=True
                    ),
                ),
                (
                    "epoch",
                    models.BigIntegerField(
                        db_comment="rises with every change of the owner", db_default=0
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
                        db_comment="events up to this one are matched, their deliveries written"
                    ),
                ),
                ("sequence", models.BigIntegerField()),
                (
                    "endpoint_id",
                    models.BigIntegerField(
                        db_comment="and of the next event those up to this endpoint (0: none)",
                        db_default=0,
                    ),
                ),
            ],
            options={
                "verbose_name_plural": "forwarding",
                "db_table": "forwarding",
                "db_table_comment": "how far each stream is matched for endpoints, and by whom",
            },
            storage={"parameters": {"fillfactor": 40}},
        ),
        eventhub.postgresql.tables.CreateTable(
            name="Heartbeat",
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
                "db_table_comment": "when what there is one of was seen",
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
                        db_comment="the path of its manifest in the archive; null: its rows are nowhere",
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
                        db_comment="of which segments it held deliveries when it left", null=True
                    ),
                ),
            ],
            options={
                "db_table": "retired_partitions",
                "db_table_comment": "partitions that left the database",
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
                        db_comment="delivered, or why not: status, timeout, refused_address, ..."
                    ),
                ),
                (
                    "status",
                    models.IntegerField(db_comment="of the answer, if there was one", null=True),
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
                        db_comment="the answer's headers and the beginning of its body, or the error"
                    ),
                ),
            ],
            options={
                "db_table": "attempts",
                "db_table_comment": "tries of deliveries, partitioned by day (UTC)",
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
                ("failures", models.IntegerField(db_comment="tries in a row")),
                (
                    "failing_since",
                    models.DateTimeField(db_comment="when the first of them was written"),
                ),
                (
                    "single_delivery",
                    models.BooleanField(db_comment="all of them were of one delivery"),
                ),
                (
                    "segment",
                    models.ForeignKey(
                        db_comment="of the first event that failed",
                        db_constraint=False,
                        db_index=False,
                        on_delete=django.db.models.deletion.DO_NOTHING,
                        to="eventlog.segment",
                    ),
                ),
                ("sequence", models.BigIntegerField()),
                (
                    "retry_after_s",
                    models.FloatField(
                        db_comment="what the last answer's Retry-After asked for; 0: nothing"
                    ),
                ),
                (
                    "pause_s",
                    models.FloatField(
                        db_comment="the longest that the pause may take; 0: not backing off"
                    ),
                ),
                ("paused_until", models.DateTimeField()),
                (
                    "probing",
                    models.BooleanField(
                        db_comment="the one request is under way", db_default=False
                    ),
                ),
                (
                    "recorded_at",
                    models.DateTimeField(
                        db_comment="the last failure or probe: an endpoint changed since is called at once",
                        db_default=django.contrib.postgres.functions.TransactionNow(),
                    ),
                ),
            ],
            options={
                "db_table": "backoffs",
                "db_table_comment": "endpoints that failed since they last took a delivery",
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
                        db_comment="those that matched, of the first endpoint, the second, ...",
                        size=None,
                    ),
                ),
                (
                    "ends",
                    django.contrib.postgres.fields.ArrayField(
                        base_field=models.BigIntegerField(),
                        db_comment="where in it each endpoint's last one is",
                        size=None,
                    ),
                ),
                (
                    "version_ids",
                    django.contrib.postgres.fields.ArrayField(
                        base_field=models.TextField(),
                        db_comment="of each endpoint, as arrays; empty: nobody is told less than the event",
                        db_default=[],
                        size=None,
                    ),
                ),
                ("total", models.IntegerField(db_comment="so many endpoints")),
                (
                    "done",
                    models.IntegerField(
                        db_comment="so many have their delivery; the row goes when all have",
                        db_default=0,
                    ),
                ),
            ],
            options={
                "db_table": "fanouts",
                "db_table_comment": "events whose deliveries are written in pieces",
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
                "db_table_comment": "ordered lanes in work",
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
                        db_comment="the endpoint's; null: there never was such an endpoint",
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
                        db_comment="those that matched, ascending",
                        size=None,
                    ),
                ),
                (
                    "version_ids",
                    django.contrib.postgres.fields.ArrayField(
                        base_field=models.BigIntegerField(),
                        db_comment="their versions, whose reports say what is told; null: the whole event",
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
                        db_comment="of these, tries of an endpoint that failed as a whole: they do not count",
                        db_default=0,
                    ),
                ),
                (
                    "retry_after_s",
                    models.IntegerField(
                        db_comment="what the last answer's Retry-After asked for", null=True
                    ),
                ),
                (
                    "next_attempt_at",
                    models.DateTimeField(
                        db_comment="while claimed: when the claim ends",
                        db_default=django.contrib.postgres.functions.TransactionNow(),
                    ),
                ),
                (
                    "claim",
                    models.UUIDField(
                        db_comment="results are written only by whoever still holds it", null=True
                    ),
                ),
                (
                    "payload",
                    models.BinaryField(
                        db_comment="the event's stored bytes, once the delivery has outlived its group",
                        null=True,
                    ),
                ),
                (
                    "gap_first",
                    models.BigIntegerField(
                        db_comment="no event is owed, but word that those from here on were dropped",
                        null=True,
                    ),
                ),
                (
                    "gap_reason",
                    models.TextField(
                        db_comment="unmatched, or as too much waited (backlog)", null=True
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
                "db_table_comment": "events owed to endpoints",
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
                        db_comment="dropped: more waited than may wait",
                    ),
                ),
                ("deliveries", models.BigIntegerField(db_comment="since the last announcement")),
                (
                    "first",
                    django.contrib.postgres.fields.ArrayField(
                        base_field=models.BigIntegerField(),
                        db_comment="of these the lowest segment and sequence",
                        null=True,
                        size=None,
                    ),
                ),
                (
                    "last",
                    django.contrib.postgres.fields.ArrayField(
                        base_field=models.BigIntegerField(),
                        db_comment="and the highest",
                        null=True,
                        size=None,
                    ),
                ),
                (
                    "reason",
                    models.TextField(db_comment="of the last, if they were dropped", db_default=""),
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
                "db_table_comment": "what endpoints did not get and nobody has announced yet",
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
