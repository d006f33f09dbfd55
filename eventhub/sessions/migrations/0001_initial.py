"""The sessions of clients and their positions in streams."""

import django.contrib.postgres.fields
import django.contrib.postgres.functions
from django.db import migrations, models

import eventhub.postgresql.tables


class Migration(migrations.Migration):
    release = "0.1.0"

    initial = True

    dependencies = [
        ("access", "0003_more_quotas"),
        ("eventlog", "0001_initial"),
    ]

    operations = [
        migrations.CreateModel(
            name="SessionGroup",
            fields=[
                (
                    "disconnected",
                    models.BooleanField(
                        db_comment="delivery is disabled on request; matching goes on",
                        db_default=False,
                    ),
                ),
                (
                    "quality",
                    models.TextField(
                        choices=[("reliable", "Reliable"), ("best_effort", "Best Effort")],
                        db_default="reliable",
                    ),
                ),
                (
                    "order",
                    models.TextField(
                        choices=[
                            ("none", "None"),
                            ("fifo", "Fifo"),
                            ("priority", "Priority"),
                            ("validity", "Validity"),
                            ("supplier", "Supplier"),
                            ("type", "Type"),
                            ("timestamp", "Timestamp"),
                            ("causal", "Causal"),
                        ],
                        db_column="delivery_order",
                        db_comment="the order in which held events are delivered",
                        db_default="fifo",
                    ),
                ),
                (
                    "order_options",
                    models.JSONField(
                        db_comment="parameters of the order: occur_delay_ms, hold_ms, types, suppliers",
                        db_default=models.Value({}, models.JSONField()),
                        default=dict,
                    ),
                ),
                (
                    "window",
                    models.IntegerField(
                        db_column="window_events",
                        db_comment="events that may be delivered and not acknowledged",
                        db_default=100,
                    ),
                ),
                ("id", models.BigAutoField(primary_key=True, serialize=False)),
                ("zone", eventhub.postgresql.tables.Reference(to="access.zone")),
                (
                    "client",
                    eventhub.postgresql.tables.Reference(
                        db_comment="the owner", to="access.client"
                    ),
                ),
                (
                    "name",
                    models.TextField(db_comment="unique among the zone's live session groups"),
                ),
                (
                    "suspended",
                    models.BooleanField(
                        db_comment="the registrations of the group match nothing", db_default=False
                    ),
                ),
                (
                    "created_at",
                    models.DateTimeField(
                        db_default=django.contrib.postgres.functions.TransactionNow()
                    ),
                ),
                ("deleted_at", models.DateTimeField(null=True)),
            ],
            options={
                "db_table": "session_groups",
                "db_table_comment": "groups of consumer sessions that share registrations",
                "indexes": [
                    models.Index(
                        condition=models.Q(("deleted_at__isnull", True)),
                        fields=["zone", "id"],
                        name="session_groups_by_zone",
                    ),
                    models.Index(
                        condition=models.Q(("deleted_at__isnull", True)),
                        fields=["client", "id"],
                        name="session_groups_by_client",
                    ),
                ],
                "constraints": [
                    models.UniqueConstraint(
                        condition=models.Q(("deleted_at__isnull", True)),
                        fields=("zone", "name"),
                        name="session_groups_by_name",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(("quality__in", ["reliable", "best_effort"])),
                        name="session_groups_quality",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            (
                                "order__in",
                                [
                                    "none",
                                    "fifo",
                                    "priority",
                                    "validity",
                                    "supplier",
                                    "type",
                                    "timestamp",
                                    "causal",
                                ],
                            )
                        ),
                        name="session_groups_order",
                    ),
                ],
            },
        ),
        eventhub.postgresql.tables.CreateTable(
            name="Session",
            fields=[
                (
                    "disconnected",
                    models.BooleanField(
                        db_comment="delivery is disabled on request; matching goes on",
                        db_default=False,
                    ),
                ),
                (
                    "quality",
                    models.TextField(
                        choices=[("reliable", "Reliable"), ("best_effort", "Best Effort")],
                        db_default="reliable",
                    ),
                ),
                (
                    "order",
                    models.TextField(
                        choices=[
                            ("none", "None"),
                            ("fifo", "Fifo"),
                            ("priority", "Priority"),
                            ("validity", "Validity"),
                            ("supplier", "Supplier"),
                            ("type", "Type"),
                            ("timestamp", "Timestamp"),
                            ("causal", "Causal"),
                        ],
                        db_column="delivery_order",
                        db_comment="the order in which held events are delivered",
                        db_default="fifo",
                    ),
                ),
                (
                    "order_options",
                    models.JSONField(
                        db_comment="parameters of the order: occur_delay_ms, hold_ms, types, suppliers",
                        db_default=models.Value({}, models.JSONField()),
                        default=dict,
                    ),
                ),
                (
                    "window",
                    models.IntegerField(
                        db_column="window_events",
                        db_comment="events that may be delivered and not acknowledged",
                        db_default=100,
                    ),
                ),
                ("id", models.BigAutoField(primary_key=True, serialize=False)),
                ("zone", eventhub.postgresql.tables.Reference(to="access.zone")),
                ("client", eventhub.postgresql.tables.Reference(to="access.client")),
                ("name", models.TextField(db_comment="unique among the client's live sessions")),
                (
                    "kind",
                    models.TextField(
                        choices=[
                            ("admin", "Admin"),
                            ("supplier", "Supplier"),
                            ("consumer", "Consumer"),
                        ]
                    ),
                ),
                (
                    "group",
                    eventhub.postgresql.tables.Reference(
                        db_comment="of a consumer session; its delivery settings apply instead of the session's",
                        null=True,
                        related_name="members",
                        to="hub_sessions.sessiongroup",
                    ),
                ),
                (
                    "supplies",
                    models.JSONField(
                        db_comment="the types that a supplier session emits: objects with domain and type",
                        db_default=models.Value([], models.JSONField()),
                        default=list,
                    ),
                ),
                (
                    "suspended",
                    models.BooleanField(
                        db_comment="the session emits nothing, and its registrations match nothing",
                        db_default=False,
                    ),
                ),
                (
                    "attachment",
                    models.UUIDField(
                        db_comment="the connection that serves it now; each one has its own",
                        null=True,
                    ),
                ),
                (
                    "attached_process",
                    models.TextField(db_comment="the process of that connection", null=True),
                ),
                ("attached_at", models.DateTimeField(null=True)),
                (
                    "created_at",
                    models.DateTimeField(
                        db_default=django.contrib.postgres.functions.TransactionNow()
                    ),
                ),
                ("deleted_at", models.DateTimeField(null=True)),
            ],
            options={
                "db_table": "sessions",
                "db_table_comment": "admin, supplier and consumer sessions of clients",
                "indexes": [
                    models.Index(
                        condition=models.Q(("deleted_at__isnull", True)),
                        fields=["zone", "id"],
                        name="sessions_by_zone",
                    ),
                    models.Index(
                        condition=models.Q(("deleted_at__isnull", True)),
                        fields=["client", "id"],
                        name="sessions_by_client",
                    ),
                    models.Index(
                        condition=models.Q(("deleted_at__isnull", True), ("group__isnull", False)),
                        fields=["group"],
                        name="sessions_by_group",
                    ),
                ],
                "constraints": [
                    models.UniqueConstraint(
                        condition=models.Q(("deleted_at__isnull", True)),
                        fields=("client", "name"),
                        name="sessions_by_name",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(("kind__in", ["admin", "supplier", "consumer"])),
                        name="sessions_kind",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(("quality__in", ["reliable", "best_effort"])),
                        name="sessions_quality",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            (
                                "order__in",
                                [
                                    "none",
                                    "fifo",
                                    "priority",
                                    "validity",
                                    "supplier",
                                    "type",
                                    "timestamp",
                                    "causal",
                                ],
                            )
                        ),
                        name="sessions_order",
                    ),
                ],
            },
            storage={"parameters": {"fillfactor": 70}},
        ),
        eventhub.postgresql.tables.CreateTable(
            name="SessionCursor",
            fields=[
                (
                    "pk",
                    models.CompositePrimaryKey(
                        "session_id",
                        "stream_id",
                        blank=True,
                        editable=False,
                        primary_key=True,
                        serialize=False,
                    ),
                ),
                ("session", eventhub.postgresql.tables.Reference(to="hub_sessions.session")),
                ("stream", eventhub.postgresql.tables.Reference(to="eventlog.stream")),
                ("segment", models.UUIDField(db_comment="UUID of the segment of `sequence`")),
                (
                    "sequence",
                    models.BigIntegerField(
                        db_comment="every matching event up to it is acknowledged; none before the first one counts"
                    ),
                ),
                (
                    "acknowledged",
                    django.contrib.postgres.fields.ArrayField(
                        base_field=models.BigIntegerField(),
                        db_comment="acknowledged sequences above it, ascending",
                        db_default=models.Value(
                            [],
                            django.contrib.postgres.fields.ArrayField(
                                base_field=models.BigIntegerField(), size=None
                            ),
                        ),
                        default=list,
                        size=None,
                    ),
                ),
                (
                    "saved_at",
                    models.DateTimeField(
                        db_default=django.contrib.postgres.functions.TransactionNow()
                    ),
                ),
            ],
            options={
                "db_table": "session_cursors",
                "db_table_comment": "positions of consumer sessions in streams",
                "indexes": [models.Index(fields=["stream"], name="session_cursors_by_stream")],
            },
            storage={"parameters": {"fillfactor": 50}},
        ),
    ]
