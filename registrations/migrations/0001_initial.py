"""The tables of sessions, registrations, their versions and endpoints."""

import django.contrib.postgres.fields
import django.contrib.postgres.functions
import django.contrib.postgres.indexes
import django.db.models.deletion
from django.db import migrations, models

import eventhub.postgresql.tables


class Migration(migrations.Migration):
    initial = True
    release = "0.1"

    dependencies = [
        ("access", "0001_initial"),
        ("eventlog", "0001_initial"),
    ]

    operations = [
        migrations.CreateModel(
            name="Endpoint",
            fields=[
                ("id", models.BigAutoField(primary_key=True, serialize=False)),
                (
                    "zone",
                    models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.DO_NOTHING,
                        to="access.zone",
                    ),
                ),
                (
                    "client",
                    models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.DO_NOTHING,
                        to="access.client",
                    ),
                ),
                ("url", models.TextField()),
                ("description", models.TextField(db_default="")),
                (
                    "secret",
                    models.BinaryField(
                        db_comment="signs callbacks; encrypted under a key derived from the hub's secret key"
                    ),
                ),
                (
                    "ordered",
                    models.BooleanField(
                        db_comment="deliver one event of a stream at a time, in the stream's order",
                        db_default=False,
                    ),
                ),
                (
                    "format",
                    models.TextField(
                        choices=[
                            ("native", "Native"),
                            ("cloudevents_structured", "Cloudevents Structured"),
                            ("cloudevents_binary", "Cloudevents Binary"),
                        ],
                        db_comment="format of the callbacks' bodies",
                        db_default="native",
                    ),
                ),
                ("enabled", models.BooleanField(db_default=True)),
                (
                    "reason",
                    models.TextField(db_comment="why it is disabled: request, gone", null=True),
                ),
                (
                    "created_at",
                    models.DateTimeField(
                        db_default=django.contrib.postgres.functions.TransactionNow()
                    ),
                ),
                (
                    "changed_at",
                    models.DateTimeField(
                        db_default=django.contrib.postgres.functions.TransactionNow()
                    ),
                ),
                ("deleted_at", models.DateTimeField(null=True)),
            ],
            options={
                "db_table": "endpoints",
                "db_table_comment": "URLs to which the hub posts events",
                "indexes": [
                    models.Index(
                        condition=models.Q(("deleted_at__isnull", True)),
                        fields=["zone", "id"],
                        name="endpoints_by_zone",
                    ),
                    models.Index(
                        condition=models.Q(("deleted_at__isnull", True)),
                        fields=["client", "url"],
                        name="endpoints_by_url",
                    ),
                ],
                "constraints": [
                    models.CheckConstraint(
                        condition=models.Q(
                            (
                                "format__in",
                                ["native", "cloudevents_structured", "cloudevents_binary"],
                            )
                        ),
                        name="endpoints_format",
                    )
                ],
            },
        ),
        migrations.CreateModel(
            name="IndexBuild",
            fields=[
                (
                    "stream",
                    models.OneToOneField(
                        db_constraint=False,
                        on_delete=django.db.models.deletion.DO_NOTHING,
                        primary_key=True,
                        serialize=False,
                        to="eventlog.stream",
                    ),
                ),
                (
                    "requested_at",
                    models.DateTimeField(db_comment="set while a build is requested", null=True),
                ),
                (
                    "again",
                    models.BooleanField(
                        db_comment="requested after the running build started, so another one follows",
                        db_default=False,
                    ),
                ),
                (
                    "attempts",
                    models.IntegerField(
                        db_comment="started since the last success; a killed one counts",
                        db_default=0,
                    ),
                ),
                ("started_at", models.DateTimeField(null=True)),
                (
                    "heartbeat_at",
                    models.DateTimeField(db_comment="last heartbeat of the builder", null=True),
                ),
                (
                    "ended_at",
                    models.DateTimeField(
                        db_comment="null: the builder is running, or died", null=True
                    ),
                ),
                ("stage", models.TextField(db_comment="stage of the build", db_default="")),
                (
                    "done",
                    models.BigIntegerField(db_comment="registrations processed", db_default=0),
                ),
                (
                    "expected",
                    models.BigIntegerField(
                        db_comment="approximate number of registrations to process", null=True
                    ),
                ),
                (
                    "reason",
                    models.TextField(db_comment="error code of a failure", db_default=""),
                ),
                (
                    "detail",
                    models.TextField(db_comment="error message of a failure", db_default=""),
                ),
            ],
            options={
                "db_table": "index_builds",
                "db_table_comment": "last build of each stream's match index",
            },
        ),
        migrations.CreateModel(
            name="PurgedVersion",
            fields=[
                (
                    "stream",
                    models.OneToOneField(
                        db_constraint=False,
                        on_delete=django.db.models.deletion.DO_NOTHING,
                        primary_key=True,
                        serialize=False,
                        to="eventlog.stream",
                    ),
                ),
                ("xid", eventhub.postgresql.tables.Xid8Field()),
                (
                    "history",
                    models.UUIDField(
                        db_comment="history of the database (log_state) in which the transaction id is valid"
                    ),
                ),
            ],
            options={
                "db_table": "purged_versions",
                "db_table_comment": "newest transaction that ended a since deleted version, by stream",
            },
        ),
        migrations.CreateModel(
            name="Barrier",
            fields=[
                ("id", models.BigAutoField(primary_key=True, serialize=False)),
                (
                    "streams",
                    django.contrib.postgres.fields.ArrayField(
                        base_field=models.BigIntegerField(),
                        db_comment="ascending; parallel to segments and sequences",
                        size=None,
                    ),
                ),
                (
                    "segments",
                    django.contrib.postgres.fields.ArrayField(
                        base_field=models.UUIDField(),
                        db_comment="open segment of each stream",
                        size=None,
                    ),
                ),
                (
                    "sequences",
                    django.contrib.postgres.fields.ArrayField(
                        base_field=models.BigIntegerField(),
                        db_comment="last sequence of each stream",
                        size=None,
                    ),
                ),
                (
                    "created_at",
                    models.DateTimeField(
                        db_default=django.contrib.postgres.functions.TransactionNow()
                    ),
                ),
                (
                    "xid",
                    eventhub.postgresql.tables.Xid8Field(
                        db_comment="finds the changes that a snapshot did not see, by its oldest transaction",
                        db_default=eventhub.postgresql.tables.CurrentXid(),
                    ),
                ),
            ],
            options={
                "db_table": "barriers",
                "db_table_comment": "heads of some streams at the moment of a change",
                "indexes": [models.Index(fields=["xid"], name="barriers_by_xid")],
            },
        ),
        migrations.CreateModel(
            name="ListenInterest",
            fields=[
                (
                    "pk",
                    models.CompositePrimaryKey(
                        "stream_id",
                        "client_id",
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
                ("client_id", models.BigIntegerField(db_comment="negative: an operator")),
                ("digest", models.UUIDField(db_comment="hash of the filter")),
                ("filter", models.TextField(db_comment="in predicate form")),
                ("expires_at", models.DateTimeField()),
            ],
            options={
                "db_table": "listen_interests",
                "db_table_comment": "filters of listeners on streams that may be quenched",
            },
        ),
        migrations.CreateModel(
            name="Session",
            fields=[
                ("id", models.BigAutoField(primary_key=True, serialize=False)),
                (
                    "client",
                    models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.DO_NOTHING,
                        to="access.client",
                    ),
                ),
                ("name", models.TextField()),
                (
                    "registrations",
                    models.IntegerField(
                        db_comment="live ones; creating or ending one locks the row",
                        db_default=0,
                    ),
                ),
                (
                    "created_at",
                    models.DateTimeField(
                        db_default=django.contrib.postgres.functions.TransactionNow()
                    ),
                ),
            ],
            options={
                "db_table": "sessions",
                "db_table_comment": "owners of registrations",
                "constraints": [
                    models.UniqueConstraint(fields=("client", "name"), name="sessions_by_name")
                ],
            },
        ),
        migrations.CreateModel(
            name="RegistrationGroup",
            fields=[
                ("id", models.BigAutoField(primary_key=True, serialize=False)),
                (
                    "zone",
                    models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.DO_NOTHING,
                        to="access.zone",
                    ),
                ),
                (
                    "client",
                    models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.DO_NOTHING,
                        to="access.client",
                    ),
                ),
                ("name", models.TextField()),
                (
                    "registrations",
                    models.IntegerField(
                        db_comment="live ones in the group; updated with each barrier",
                        db_default=0,
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
                "db_table": "registration_groups",
                "db_table_comment": "registrations that are suspended and resumed together",
                "indexes": [
                    models.Index(
                        condition=models.Q(("deleted_at__isnull", True)),
                        fields=["zone", "id"],
                        name="groups_by_zone",
                    )
                ],
                "constraints": [
                    models.UniqueConstraint(
                        condition=models.Q(("deleted_at__isnull", True)),
                        fields=("client", "name"),
                        name="groups_by_name",
                    )
                ],
            },
        ),
        eventhub.postgresql.tables.CreateTable(
            name="EndpointHealth",
            fields=[
                (
                    "endpoint",
                    models.OneToOneField(
                        db_constraint=False,
                        on_delete=django.db.models.deletion.DO_NOTHING,
                        primary_key=True,
                        related_name="health",
                        serialize=False,
                        to="registrations.endpoint",
                    ),
                ),
                (
                    "attempted_at",
                    models.DateTimeField(db_comment="time of the last recorded attempt"),
                ),
                ("outcome", models.TextField(db_comment="outcome of that attempt, as in attempts")),
                (
                    "status",
                    models.IntegerField(
                        db_comment="HTTP status of its answer, if there was one", null=True
                    ),
                ),
                (
                    "delivered_at",
                    models.DateTimeField(
                        db_comment="time of the last attempt that was answered with 2xx", null=True
                    ),
                ),
                (
                    "failing_since",
                    models.DateTimeField(
                        db_comment="time of the first failed attempt since then; null: the last one succeeded",
                        null=True,
                    ),
                ),
            ],
            options={
                "verbose_name_plural": "endpoint health",
                "db_table": "endpoint_health",
                "db_table_comment": "latest results of endpoints' callbacks",
            },
            storage={"parameters": {"fillfactor": 60}},
        ),
        migrations.CreateModel(
            name="Registration",
            fields=[
                (
                    "id",
                    models.BigAutoField(db_comment="ticket", primary_key=True, serialize=False),
                ),
                (
                    "zone",
                    models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.DO_NOTHING,
                        to="access.zone",
                    ),
                ),
                (
                    "client",
                    models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.DO_NOTHING,
                        to="access.client",
                    ),
                ),
                (
                    "session",
                    models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.DO_NOTHING,
                        to="registrations.session",
                    ),
                ),
                (
                    "key",
                    models.TextField(
                        db_comment="the client's own name for it, an idempotency key",
                        null=True,
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
                "db_table": "registrations",
                "db_table_comment": "subscriptions of clients",
                "indexes": [
                    models.Index(
                        condition=models.Q(("deleted_at__isnull", True)),
                        fields=["zone", "id"],
                        name="registrations_by_zone",
                    ),
                    models.Index(
                        condition=models.Q(("deleted_at__isnull", True)),
                        fields=["client", "id"],
                        name="registrations_by_client",
                    ),
                    models.Index(
                        condition=models.Q(("key__isnull", False)),
                        fields=["client", "key", "id"],
                        name="registrations_ever_by_key",
                    ),
                ],
                "constraints": [
                    models.UniqueConstraint(
                        condition=models.Q(("key__isnull", False), ("deleted_at__isnull", True)),
                        fields=("client", "key"),
                        name="registrations_by_key",
                    )
                ],
            },
        ),
        migrations.CreateModel(
            name="GroupStream",
            fields=[
                (
                    "pk",
                    models.CompositePrimaryKey(
                        "group_id",
                        "stream_id",
                        blank=True,
                        editable=False,
                        primary_key=True,
                        serialize=False,
                    ),
                ),
                (
                    "group",
                    models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.DO_NOTHING,
                        to="registrations.registrationgroup",
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
                    "registrations",
                    models.IntegerField(
                        db_comment="live ones of the group that name the stream now"
                    ),
                ),
            ],
            options={
                "db_table": "group_streams",
                "db_table_comment": "streams that a group's registrations name or ever named",
            },
        ),
        migrations.CreateModel(
            name="Suspension",
            fields=[
                ("id", models.BigAutoField(primary_key=True, serialize=False)),
                (
                    "group",
                    models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.DO_NOTHING,
                        to="registrations.registrationgroup",
                    ),
                ),
                (
                    "from_barrier",
                    models.ForeignKey(
                        db_column="from_barrier",
                        db_index=False,
                        on_delete=django.db.models.deletion.DO_NOTHING,
                        related_name="+",
                        to="registrations.barrier",
                    ),
                ),
                (
                    "until_barrier",
                    models.ForeignKey(
                        db_column="until_barrier",
                        db_index=False,
                        null=True,
                        on_delete=django.db.models.deletion.DO_NOTHING,
                        related_name="+",
                        to="registrations.barrier",
                    ),
                ),
            ],
            options={
                "db_table": "suspensions",
                "db_table_comment": "barriers between which a group's registrations match nothing",
                "indexes": [
                    models.Index(fields=["group"], name="suspensions_by_group"),
                    models.Index(fields=["from_barrier"], name="suspensions_by_from"),
                    models.Index(
                        condition=models.Q(("until_barrier__isnull", False)),
                        fields=["until_barrier"],
                        name="suspensions_by_until",
                    ),
                ],
                "constraints": [
                    models.UniqueConstraint(
                        condition=models.Q(("until_barrier__isnull", True)),
                        fields=("group",),
                        name="suspensions_open",
                    )
                ],
            },
        ),
        migrations.CreateModel(
            name="ExpensiveFilter",
            fields=[
                (
                    "pk",
                    models.CompositePrimaryKey(
                        "client_id",
                        "stream_id",
                        "registration_id",
                        blank=True,
                        editable=False,
                        primary_key=True,
                        serialize=False,
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
                    "registration",
                    models.ForeignKey(
                        db_constraint=False,
                        db_index=False,
                        on_delete=django.db.models.deletion.DO_NOTHING,
                        to="registrations.registration",
                    ),
                ),
                (
                    "cost",
                    models.IntegerField(db_comment="in units of registrations/matching/budget.py"),
                ),
            ],
            options={
                "db_table": "expensive_filters",
                "db_table_comment": "filters that are evaluated for every event",
                "indexes": [
                    models.Index(fields=["registration"], name="expensive_by_registration")
                ],
            },
        ),
        migrations.CreateModel(
            name="RegistrationVersion",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        db_comment="id in matchers", primary_key=True, serialize=False
                    ),
                ),
                (
                    "registration",
                    models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.DO_NOTHING,
                        to="registrations.registration",
                    ),
                ),
                ("number", models.IntegerField(db_comment="1, 2, 3, ...")),
                (
                    "streams",
                    django.contrib.postgres.fields.ArrayField(
                        base_field=models.BigIntegerField(),
                        db_comment="ids in the order of the request, each once",
                        size=None,
                    ),
                ),
                ("language", models.TextField(db_comment="one of registrations.filters.languages")),
                (
                    "filter",
                    eventhub.postgresql.tables.JsonTextField(
                        db_comment="as the client wrote it; jsonb would refuse \\u0000"
                    ),
                ),
                (
                    "endpoint",
                    models.ForeignKey(
                        db_index=False,
                        null=True,
                        on_delete=django.db.models.deletion.DO_NOTHING,
                        to="registrations.endpoint",
                    ),
                ),
                (
                    "suspended",
                    models.BooleanField(
                        db_comment="the registration itself (not its group) is suspended",
                        db_default=False,
                    ),
                ),
                (
                    "group",
                    models.ForeignKey(
                        db_index=False,
                        null=True,
                        on_delete=django.db.models.deletion.DO_NOTHING,
                        to="registrations.registrationgroup",
                    ),
                ),
                (
                    "report",
                    eventhub.postgresql.tables.JsonTextField(
                        db_comment="fields of an event that are delivered; null: the whole event",
                        null=True,
                    ),
                ),
                (
                    "variable",
                    models.TextField(
                        db_comment="the event variable that a READY filter binds", null=True
                    ),
                ),
                (
                    "digest",
                    models.UUIDField(
                        db_comment="hash of the client, the streams and the filter's normal form",
                        null=True,
                    ),
                ),
                (
                    "from_barrier",
                    models.ForeignKey(
                        db_column="from_barrier",
                        db_index=False,
                        on_delete=django.db.models.deletion.DO_NOTHING,
                        related_name="+",
                        to="registrations.barrier",
                    ),
                ),
                (
                    "until_barrier",
                    models.ForeignKey(
                        db_column="until_barrier",
                        db_comment="null: the current version",
                        db_index=False,
                        null=True,
                        on_delete=django.db.models.deletion.DO_NOTHING,
                        related_name="+",
                        to="registrations.barrier",
                    ),
                ),
            ],
            options={
                "db_table": "registration_versions",
                "db_table_comment": "definitions of registrations, each from one barrier to another",
                "indexes": [
                    django.contrib.postgres.indexes.GinIndex(
                        fields=["streams"], name="versions_by_stream"
                    ),
                    models.Index(fields=["from_barrier"], name="versions_by_from"),
                    models.Index(
                        condition=models.Q(("until_barrier__isnull", False)),
                        fields=["until_barrier", "id"],
                        name="versions_by_until",
                    ),
                    models.Index(
                        condition=models.Q(("group__isnull", False)),
                        fields=["group"],
                        name="versions_by_group",
                    ),
                    models.Index(
                        condition=models.Q(("until_barrier__isnull", True)),
                        fields=["digest", "registration"],
                        name="versions_by_digest",
                    ),
                    models.Index(
                        condition=models.Q(("until_barrier__isnull", True)),
                        fields=["endpoint"],
                        name="versions_by_endpoint",
                    ),
                ],
                "constraints": [
                    models.UniqueConstraint(
                        fields=("registration", "number"), name="versions_by_number"
                    ),
                    models.UniqueConstraint(
                        condition=models.Q(("until_barrier__isnull", True)),
                        fields=("registration",),
                        name="versions_current",
                    ),
                ],
            },
        ),
    ]
