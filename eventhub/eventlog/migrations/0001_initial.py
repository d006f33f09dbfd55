"""The tables of the log, its functions, and what it begins with."""

import datetime
from pathlib import Path

import django.contrib.postgres.fields
import django.contrib.postgres.functions
import django.db.models.deletion
from django.db import migrations, models

import eventhub.postgresql.tables

SQL = Path(__file__).parent.parent / "sql"
_DROP_APPEND = """
DROP FUNCTION append_events, roll_segments, proven_life, prove_continuity, holds_event, shows_loss
"""


class Migration(migrations.Migration):
    initial = True
    release = "0.1"

    dependencies = [
        ("access", "0001_initial"),
    ]

    operations = [
        migrations.CreateModel(
            name="Stream",
            fields=[
                ("id", models.BigAutoField(primary_key=True, serialize=False)),
                (
                    "zone",
                    models.ForeignKey(
                        db_comment="null: the stream `system` of the whole hub",
                        db_constraint=False,
                        db_index=False,
                        null=True,
                        on_delete=django.db.models.deletion.DO_NOTHING,
                        to="access.zone",
                    ),
                ),
                ("name", models.TextField()),
                (
                    "segment_events_max",
                    models.BigIntegerField(db_comment="a segment is sealed when it holds so many"),
                ),
                ("segment_bytes_max", models.BigIntegerField(db_comment="or so many stored bytes")),
                (
                    "segment_age_s_max",
                    models.BigIntegerField(
                        db_comment="or is so old and not empty; null: no age limit", null=True
                    ),
                ),
                (
                    "durability",
                    models.TextField(
                        choices=[("sync", "Sync"), ("async", "Async"), ("transient", "Transient")],
                        db_comment="never changed",
                        db_default="sync",
                    ),
                ),
                (
                    "keyed",
                    models.BooleanField(
                        db_comment="the latest event of each key is retained in keyed_state",
                        db_default=False,
                    ),
                ),
                (
                    "restate",
                    models.BooleanField(
                        db_comment="and appended again at each start of the hub (EMC-18)",
                        db_default=False,
                    ),
                ),
                (
                    "retain_events",
                    models.BigIntegerField(
                        db_comment="the oldest sealed segments beyond so many events are dropped",
                        null=True,
                    ),
                ),
                (
                    "retain_bytes",
                    models.BigIntegerField(db_comment="beyond so many stored bytes", null=True),
                ),
                (
                    "retain_age_s",
                    models.BigIntegerField(
                        db_comment="sealed segments that are older are dropped", null=True
                    ),
                ),
                (
                    "on_lag",
                    models.TextField(
                        choices=[("keep", "Keep"), ("drop", "Drop")],
                        db_comment="whether segments that a durable cursor needs are kept",
                        db_default="keep",
                    ),
                ),
                (
                    "hold",
                    models.TextField(
                        db_comment="the reason of a legal hold, under which nothing is dropped; null: none",
                        null=True,
                    ),
                ),
                (
                    "archive",
                    models.BooleanField(
                        db_comment="sealed segments are archived, and dropped only when they are",
                        db_default=False,
                    ),
                ),
                (
                    "undeclared",
                    models.TextField(
                        choices=[("accept", "Accept"), ("refuse", "Refuse")],
                        db_comment="events of undeclared types",
                        db_default="accept",
                    ),
                ),
                (
                    "matching",
                    models.TextField(
                        db_comment="the strategy that matches its events to registrations",
                        db_default="auto",
                    ),
                ),
                (
                    "quench",
                    models.BooleanField(
                        db_comment="emitters may omit events that have no listener",
                        db_default=False,
                    ),
                ),
                (
                    "unquenched_at",
                    models.DateTimeField(
                        db_comment="when its policy last changed while quench was on",
                        db_default=datetime.datetime(1970, 1, 1, 0, 0, tzinfo=datetime.UTC),
                    ),
                ),
                (
                    "boot_segment",
                    models.UUIDField(
                        db_comment="of the last event before the hub's last start; null: created since",
                        null=True,
                    ),
                ),
                ("boot_sequence", models.BigIntegerField(null=True)),
                (
                    "created_at",
                    models.DateTimeField(
                        db_default=django.contrib.postgres.functions.TransactionNow()
                    ),
                ),
                (
                    "deletes_at",
                    models.DateTimeField(
                        db_comment="the end of the grace period of its deletion; null: not scheduled",
                        null=True,
                    ),
                ),
                (
                    "deleted_at",
                    models.DateTimeField(
                        db_comment="when that ended; the name is free, and the row has no head",
                        null=True,
                    ),
                ),
                (
                    "ended_registrations",
                    models.BigIntegerField(
                        db_comment="registrations that its deletion ended or changed so far",
                        db_default=0,
                    ),
                ),
                (
                    "erased_at",
                    models.DateTimeField(
                        db_comment="when the last of its data was removed", null=True
                    ),
                ),
                (
                    "erased_events",
                    models.BigIntegerField(
                        db_comment="events that were removed so far", db_default=0
                    ),
                ),
                (
                    "erased_deliveries",
                    models.BigIntegerField(
                        db_comment="deliveries that were removed so far", db_default=0
                    ),
                ),
                (
                    "erased_pending",
                    models.BigIntegerField(
                        db_comment="the part of these that was neither delivered nor dead-lettered",
                        db_default=0,
                    ),
                ),
            ],
            options={
                "db_table": "streams",
                "db_table_comment": "named logs with their policies",
                "indexes": [
                    models.Index(
                        condition=models.Q(
                            ("deletes_at__isnull", False), ("erased_at__isnull", True)
                        ),
                        fields=["deletes_at"],
                        name="streams_deleting",
                    )
                ],
                "constraints": [
                    models.UniqueConstraint(
                        condition=models.Q(("deleted_at__isnull", True)),
                        fields=("zone", "name"),
                        name="streams_by_name",
                        nulls_distinct=False,
                    ),
                    models.CheckConstraint(
                        condition=models.Q(("durability__in", ["sync", "async", "transient"])),
                        name="streams_durability",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(("on_lag__in", ["keep", "drop"])), name="streams_on_lag"
                    ),
                    models.CheckConstraint(
                        condition=models.Q(("undeclared__in", ["accept", "refuse"])),
                        name="streams_undeclared",
                    ),
                ],
            },
        ),
        migrations.CreateModel(
            name="EventPartition",
            fields=[
                ("id", models.IntegerField(primary_key=True, serialize=False)),
                (
                    "created_at",
                    models.DateTimeField(
                        db_default=django.contrib.postgres.functions.TransactionNow()
                    ),
                ),
                (
                    "moved_bytes",
                    models.BigIntegerField(
                        db_comment="of segments that were moved to others, while this one is still as large",
                        db_default=0,
                    ),
                ),
            ],
            options={
                "db_table": "event_partitions",
                "db_table_comment": "partitions of events",
            },
        ),
        migrations.CreateModel(
            name="ArchiverLease",
            fields=[
                (
                    "singleton",
                    models.BooleanField(db_default=True, primary_key=True, serialize=False),
                ),
                ("owner", models.UUIDField(null=True)),
                ("until", models.DateTimeField(null=True)),
            ],
            options={
                "verbose_name_plural": "archiver",
                "db_table": "archiver",
                "db_table_comment": "the lease of the archiver",
                "constraints": [
                    models.CheckConstraint(
                        condition=models.Q(("singleton", True)), name="archiver_one"
                    )
                ],
            },
        ),
        eventhub.postgresql.tables.CreateTable(
            name="Incarnation",
            fields=[
                (
                    "singleton",
                    models.BooleanField(db_default=True, primary_key=True, serialize=False),
                ),
                ("life", models.UUIDField()),
                ("database", eventhub.postgresql.tables.OidField()),
                ("started", models.DateTimeField(db_comment="the start of the server")),
                ("written_by", eventhub.postgresql.tables.XidField()),
                (
                    "since",
                    models.DateTimeField(
                        db_default=django.contrib.postgres.functions.TransactionNow()
                    ),
                ),
            ],
            options={
                "db_table": "incarnation",
                "db_table_comment": "the life of the server for which the log was proved; emptied by a crash",
                "constraints": [
                    models.CheckConstraint(
                        condition=models.Q(("singleton", True)), name="incarnation_one"
                    )
                ],
            },
            storage={"unlogged": True},
        ),
        migrations.CreateModel(
            name="ResourceChange",
            fields=[
                (
                    "pk",
                    models.CompositePrimaryKey(
                        "kind",
                        "zone_id",
                        "name",
                        blank=True,
                        editable=False,
                        primary_key=True,
                        serialize=False,
                    ),
                ),
                (
                    "kind",
                    models.TextField(
                        db_comment="client, key, channel, stream, type, registration, endpoint, ..."
                    ),
                ),
                (
                    "zone",
                    models.ForeignKey(
                        db_constraint=False,
                        db_index=False,
                        on_delete=django.db.models.deletion.DO_NOTHING,
                        to="access.zone",
                    ),
                ),
                ("name", models.TextField(db_comment="its name or id")),
                ("segment", models.UUIDField()),
                ("sequence", models.BigIntegerField()),
            ],
            options={
                "db_table": "resource_changes",
                "db_table_comment": "the last change of each resource, as a position in `system`",
            },
        ),
        migrations.CreateModel(
            name="Segment",
            fields=[
                ("id", models.BigAutoField(primary_key=True, serialize=False)),
                ("uuid", models.UUIDField(unique=True)),
                (
                    "stream",
                    models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.DO_NOTHING,
                        to="eventlog.stream",
                    ),
                ),
                ("partition_id", models.IntegerField(db_comment="the partition of its events")),
                ("first", models.BigIntegerField()),
                ("last", models.BigIntegerField(db_comment="null while open", null=True)),
                (
                    "bytes",
                    models.BigIntegerField(db_comment="stored bytes; null while open", null=True),
                ),
                (
                    "tier",
                    models.TextField(
                        choices=[
                            ("live", "Live"),
                            ("archived", "Archived"),
                            ("dropped", "Dropped"),
                        ],
                        db_comment="live: in the database, archived: in the archive only, dropped: deleted",
                        db_default="live",
                    ),
                ),
                (
                    "opened_at",
                    models.DateTimeField(
                        db_default=django.contrib.postgres.functions.TransactionNow()
                    ),
                ),
                ("sealed_at", models.DateTimeField(null=True)),
                (
                    "archive_path",
                    models.TextField(
                        db_comment="the path of its manifest, once it is archived; also while live",
                        null=True,
                    ),
                ),
                (
                    "removed_at",
                    models.DateTimeField(db_comment="when it was no longer live", null=True),
                ),
                (
                    "removal_reason",
                    models.TextField(
                        db_comment="age, size, count, quota, disk, plan, deleted (with the stream), or continuity (lost in a crash)",
                        null=True,
                    ),
                ),
            ],
            options={
                "db_table": "segments",
                "db_table_comment": "segments of streams; never deleted",
                "indexes": [
                    models.Index(fields=["stream", "first"], name="segments_by_stream"),
                    models.Index(
                        condition=models.Q(("tier", "dropped"), _negated=True),
                        fields=["stream", "first", "id"],
                        name="segments_readable",
                    ),
                    models.Index(fields=["partition_id"], name="segments_by_partition"),
                    models.Index(
                        condition=models.Q(
                            ("archive_path__isnull", True),
                            ("last__isnull", False),
                            ("tier", "live"),
                        ),
                        fields=["sealed_at", "id"],
                        name="segments_unarchived",
                    ),
                ],
                "constraints": [
                    models.CheckConstraint(
                        condition=models.Q(("tier__in", ["live", "archived", "dropped"])),
                        name="segments_tier",
                    )
                ],
            },
        ),
        eventhub.postgresql.tables.CreateTable(
            name="StreamHead",
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
                ("segment_id", models.BigIntegerField(db_comment="the open segment")),
                ("segment", models.UUIDField(db_comment="its UUID")),
                ("partition_id", models.IntegerField(db_comment="its partition")),
                ("first", models.BigIntegerField(db_comment="its first sequence")),
                (
                    "sequence",
                    models.BigIntegerField(
                        db_comment="the last sequence; first - 1 while the open segment is empty"
                    ),
                ),
                ("bytes", models.BigIntegerField(db_comment="stored bytes in the open segment")),
                (
                    "watchers",
                    django.contrib.postgres.fields.ArrayField(
                        base_field=models.IntegerField(),
                        db_comment="backends on which processes listen that follow the stream;"
                        " null: none",
                        null=True,
                        size=None,
                    ),
                ),
            ],
            options={
                "db_table": "heads",
                "db_table_comment": "the last position of each stream; locked by every append",
            },
            storage={"parameters": {"fillfactor": 40}},
        ),
        eventhub.postgresql.tables.CreateTable(
            name="IdempotencyDigest",
            fields=[
                (
                    "pk",
                    models.CompositePrimaryKey(
                        "slot",
                        "stream_id",
                        "digest",
                        blank=True,
                        editable=False,
                        primary_key=True,
                        serialize=False,
                    ),
                ),
                ("slot", models.IntegerField(db_comment="days since 1970 modulo 4")),
                (
                    "stream",
                    models.ForeignKey(
                        db_constraint=False,
                        db_index=False,
                        on_delete=django.db.models.deletion.DO_NOTHING,
                        to="eventlog.stream",
                    ),
                ),
                ("digest", models.BinaryField(db_comment="a digest of the owner and the id")),
                ("segment", models.UUIDField()),
                ("sequence", models.BigIntegerField()),
            ],
            options={
                "db_table": "idempotency_digests",
                "db_table_comment": "the positions of events with a text for an id",
            },
            storage={"partition_by": "LIST (slot)"},
        ),
        eventhub.postgresql.tables.CreateTable(
            name="KeyedState",
            fields=[
                (
                    "pk",
                    models.CompositePrimaryKey(
                        "stream_id",
                        "digest",
                        blank=True,
                        editable=False,
                        primary_key=True,
                        serialize=False,
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
                    "digest",
                    models.BinaryField(
                        db_comment="sha256 of the key, which may be too long for an index"
                    ),
                ),
                ("key", models.TextField()),
                ("segment", models.UUIDField()),
                ("sequence", models.BigIntegerField()),
                (
                    "mask",
                    models.BigIntegerField(
                        db_comment="of the copy; null while the event is in events", null=True
                    ),
                ),
                ("appended_at", models.DateTimeField(null=True)),
                ("payload", models.BinaryField(null=True)),
            ],
            options={
                "db_table": "keyed_state",
                "db_table_comment": "the latest event of each key",
            },
            storage={
                "external": ("payload",),
                "parameters": {"autovacuum_vacuum_scale_factor": 0.05, "fillfactor": 50},
            },
        ),
        eventhub.postgresql.tables.CreateTable(
            name="Producer",
            fields=[
                (
                    "pk",
                    models.CompositePrimaryKey(
                        "stream_id",
                        "client_id",
                        "incarnation",
                        blank=True,
                        editable=False,
                        primary_key=True,
                        serialize=False,
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
                    "client",
                    models.ForeignKey(
                        db_constraint=False,
                        db_index=False,
                        on_delete=django.db.models.deletion.DO_NOTHING,
                        to="access.client",
                    ),
                ),
                ("incarnation", models.BigIntegerField()),
                ("highest_number", models.BigIntegerField()),
                (
                    "last_seen_at",
                    models.DateTimeField(
                        db_default=django.contrib.postgres.functions.TransactionNow()
                    ),
                ),
            ],
            options={
                "db_table": "producers",
                "db_table_comment": "the highest number of each incarnation of a client",
            },
            storage={"parameters": {"fillfactor": 60}},
        ),
        eventhub.postgresql.tables.CreateTable(
            name="ProducerNumber",
            fields=[
                (
                    "pk",
                    models.CompositePrimaryKey(
                        "stream_id",
                        "client_id",
                        "incarnation",
                        "slot",
                        blank=True,
                        editable=False,
                        primary_key=True,
                        serialize=False,
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
                    "client",
                    models.ForeignKey(
                        db_constraint=False,
                        db_index=False,
                        on_delete=django.db.models.deletion.DO_NOTHING,
                        to="access.client",
                    ),
                ),
                ("incarnation", models.BigIntegerField()),
                ("slot", models.IntegerField(db_comment="the number modulo the window")),
                ("number", models.BigIntegerField()),
                ("segment", models.UUIDField()),
                ("sequence", models.BigIntegerField()),
            ],
            options={
                "db_table": "producer_numbers",
                "db_table_comment": "the positions of recent numbers of producers",
            },
            storage={"parameters": {"fillfactor": 80}},
        ),
        migrations.CreateModel(
            name="LogState",
            fields=[
                (
                    "singleton",
                    models.BooleanField(db_default=True, primary_key=True, serialize=False),
                ),
                (
                    "current_partition",
                    models.ForeignKey(
                        db_column="current_partition",
                        db_comment="the partition that new segments go to",
                        db_index=False,
                        on_delete=django.db.models.deletion.DO_NOTHING,
                        related_name="+",
                        to="eventlog.eventpartition",
                    ),
                ),
                (
                    "quota_bytes",
                    models.BigIntegerField(
                        db_comment="for all events, set by an operator; null: the hub's setting",
                        null=True,
                    ),
                ),
                ("booted_at", models.DateTimeField(db_comment="the hub's last start", null=True)),
                (
                    "system_identifier",
                    models.BigIntegerField(
                        db_comment="of the server that wrote last; a different one means a restore",
                        null=True,
                    ),
                ),
                (
                    "timeline",
                    models.IntegerField(
                        db_comment="of that server; a different one means a restore", null=True
                    ),
                ),
                (
                    "life",
                    models.UUIDField(
                        db_comment="of the server, as in incarnation; null: nothing was ever appended",
                        null=True,
                    ),
                ),
                (
                    "history",
                    models.UUIDField(
                        db_comment="a new one after every restore, because sequences may be assigned again",
                        db_default=django.contrib.postgres.functions.RandomUUID(),
                    ),
                ),
                (
                    "disk_full_until",
                    models.DateTimeField(
                        db_comment="the end of the last announced episode of a full disk",
                        null=True,
                    ),
                ),
            ],
            options={
                "verbose_name_plural": "log state",
                "db_table": "log_state",
                "db_table_comment": "the global state of the log",
                "constraints": [
                    models.CheckConstraint(
                        condition=models.Q(("singleton", True)), name="log_state_one"
                    )
                ],
            },
        ),
        migrations.CreateModel(
            name="ArchiveAttempt",
            fields=[
                (
                    "segment",
                    models.OneToOneField(
                        on_delete=django.db.models.deletion.DO_NOTHING,
                        primary_key=True,
                        serialize=False,
                        to="eventlog.segment",
                    ),
                ),
                ("attempts", models.IntegerField()),
                ("reason", models.TextField(db_comment="an error's code, or `unfinished`")),
                ("detail", models.TextField(db_default="")),
                (
                    "attempted_at",
                    models.DateTimeField(
                        db_default=django.contrib.postgres.functions.TransactionNow()
                    ),
                ),
                ("retry_at", models.DateTimeField()),
            ],
            options={
                "db_table": "archive_attempts",
                "db_table_comment": "segments whose archiving was started and not finished",
            },
        ),
        eventhub.postgresql.tables.CreateTable(
            name="EventRow",
            fields=[
                (
                    "pk",
                    models.CompositePrimaryKey(
                        "partition_id",
                        "segment_id",
                        "sequence",
                        blank=True,
                        editable=False,
                        primary_key=True,
                        serialize=False,
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
                    "mask",
                    models.BigIntegerField(db_comment="64 channel bits, as a signed number"),
                ),
                ("appended_at", models.DateTimeField()),
                ("partition_id", models.IntegerField()),
                (
                    "payload",
                    models.BinaryField(db_comment="protobuf, as in eventhub/event/event.proto"),
                ),
            ],
            options={
                "db_table": "events",
                "db_table_comment": "stored events, partitioned by groups of segments",
            },
            storage={"external": ("payload",), "partition_by": "LIST (partition_id)"},
        ),
        migrations.RunSQL(
            (SQL / "functions" / "clock.v1.sql").read_text(), "DROP FUNCTION is_over"
        ),
        migrations.RunSQL((SQL / "functions" / "append.v1.sql").read_text(), _DROP_APPEND),
        migrations.RunSQL((SQL / "first_rows.sql").read_text(), migrations.RunSQL.noop),
    ]
