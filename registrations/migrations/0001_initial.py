"""The tables of registrations, their versions and endpoints."""

from django.contrib.postgres.fields import ArrayField
from django.contrib.postgres.functions import TransactionNow
from django.contrib.postgres.indexes import GinIndex
from django.db import migrations
from django.db.migrations import CreateModel
from django.db.models import (
    DO_NOTHING,
    BigAutoField,
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

from eventhub.postgresql.tables import CreateTable, CurrentXid, JsonTextField, Reference, Xid8Field


class Migration(migrations.Migration):
    initial = True
    release = "0.1"

    dependencies = [("access", "0001_initial"), ("eventlog", "0001_initial")]

    operations = [
        CreateModel(
            name="Endpoint",
            fields=[
                ("id", BigAutoField(primary_key=True, serialize=False)),
                ("zone", ForeignKey(db_index=False, on_delete=DO_NOTHING, to="access.zone")),
                ("client", ForeignKey(db_index=False, on_delete=DO_NOTHING, to="access.client")),
                ("url", TextField()),
                ("description", TextField(db_default="")),
                (
                    "secret",
                    BinaryField(
                        db_comment="signs callbacks; encrypted under a key derived from the hub's secret key"
                    ),
                ),
                (
                    "ordered",
                    BooleanField(
                        db_comment="deliver one event of a stream at a time, in the stream's order",
                        db_default=False,
                    ),
                ),
                (
                    "format",
                    TextField(
                        choices=[
                            ("native", "Native"),
                            ("cloudevents_structured", "Cloudevents Structured"),
                            ("cloudevents_binary", "Cloudevents Binary"),
                        ],
                        db_comment="format of the callbacks' bodies",
                        db_default="native",
                    ),
                ),
                ("enabled", BooleanField(db_default=True)),
                ("reason", TextField(db_comment="why it is disabled: request, gone", null=True)),
                ("created_at", DateTimeField(db_default=TransactionNow())),
                ("changed_at", DateTimeField(db_default=TransactionNow())),
                ("deleted_at", DateTimeField(null=True)),
            ],
            options={
                "db_table": "endpoints",
                "db_table_comment": "URLs to which the hub posts events",
                "indexes": [
                    Index(
                        condition=Q(("deleted_at__isnull", True)),
                        fields=["zone", "id"],
                        name="endpoints_by_zone",
                    ),
                    Index(
                        condition=Q(("deleted_at__isnull", True)),
                        fields=["client", "url"],
                        name="endpoints_by_url",
                    ),
                ],
                "constraints": [
                    CheckConstraint(
                        condition=Q(
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
        CreateModel(
            name="IndexBuild",
            fields=[
                (
                    "stream",
                    OneToOneField(
                        db_constraint=False,
                        on_delete=DO_NOTHING,
                        primary_key=True,
                        serialize=False,
                        to="eventlog.stream",
                    ),
                ),
                (
                    "requested_at",
                    DateTimeField(db_comment="set while a build is requested", null=True),
                ),
                (
                    "again",
                    BooleanField(
                        db_comment="requested after the running build started, so another one follows",
                        db_default=False,
                    ),
                ),
                (
                    "attempts",
                    IntegerField(
                        db_comment="started since the last success; a killed one counts",
                        db_default=0,
                    ),
                ),
                ("started_at", DateTimeField(null=True)),
                (
                    "heartbeat_at",
                    DateTimeField(db_comment="last heartbeat of the builder", null=True),
                ),
                (
                    "ended_at",
                    DateTimeField(db_comment="null: the builder is running, or died", null=True),
                ),
                ("stage", TextField(db_comment="stage of the build", db_default="")),
                ("done", BigIntegerField(db_comment="registrations processed", db_default=0)),
                (
                    "expected",
                    BigIntegerField(
                        db_comment="approximate number of registrations to process", null=True
                    ),
                ),
                ("reason", TextField(db_comment="error code of a failure", db_default="")),
                ("detail", TextField(db_comment="error message of a failure", db_default="")),
            ],
            options={
                "db_table": "index_builds",
                "db_table_comment": "last build of each stream's match index",
            },
        ),
        CreateModel(
            name="PurgedVersion",
            fields=[
                (
                    "stream",
                    OneToOneField(
                        db_constraint=False,
                        on_delete=DO_NOTHING,
                        primary_key=True,
                        serialize=False,
                        to="eventlog.stream",
                    ),
                ),
                ("xid", Xid8Field()),
                (
                    "history",
                    UUIDField(
                        db_comment="history of the database (log_state) in which the transaction id is valid"
                    ),
                ),
            ],
            options={
                "db_table": "purged_versions",
                "db_table_comment": "newest transaction that ended a since deleted version, by stream",
            },
        ),
        CreateModel(
            name="Barrier",
            fields=[
                ("id", BigAutoField(primary_key=True, serialize=False)),
                (
                    "streams",
                    ArrayField(
                        base_field=BigIntegerField(),
                        db_comment="ascending; parallel to segments and sequences",
                    ),
                ),
                (
                    "segments",
                    ArrayField(base_field=UUIDField(), db_comment="open segment of each stream"),
                ),
                (
                    "sequences",
                    ArrayField(
                        base_field=BigIntegerField(), db_comment="last sequence of each stream"
                    ),
                ),
                ("created_at", DateTimeField(db_default=TransactionNow())),
                (
                    "xid",
                    Xid8Field(
                        db_comment="finds the changes that a snapshot did not see, by its oldest transaction",
                        db_default=CurrentXid(),
                    ),
                ),
            ],
            options={
                "db_table": "barriers",
                "db_table_comment": "heads of some streams at the moment of a change",
                "indexes": [Index(fields=["xid"], name="barriers_by_xid")],
            },
        ),
        CreateModel(
            name="ListenInterest",
            fields=[
                (
                    "pk",
                    CompositePrimaryKey(
                        "stream_id",
                        "client_id",
                        "digest",
                        blank=True,
                        editable=False,
                        primary_key=True,
                        serialize=False,
                    ),
                ),
                ("stream", Reference(to="eventlog.stream")),
                ("client_id", BigIntegerField(db_comment="negative: an operator")),
                ("digest", UUIDField(db_comment="hash of the filter")),
                ("filter", TextField(db_comment="in predicate form")),
                ("expires_at", DateTimeField()),
            ],
            options={
                "db_table": "listen_interests",
                "db_table_comment": "filters of listeners on streams that may be quenched",
            },
        ),
        CreateModel(
            name="RegistrationOwner",
            fields=[
                (
                    "client",
                    OneToOneField(
                        on_delete=DO_NOTHING, primary_key=True, serialize=False, to="access.client"
                    ),
                ),
                ("registrations", IntegerField(db_comment="live ones", db_default=0)),
            ],
            options={
                "db_table": "registration_owners",
                "db_table_comment": "clients with registrations or endpoints",
            },
        ),
        CreateModel(
            name="RegistrationGroup",
            fields=[
                ("id", BigAutoField(primary_key=True, serialize=False)),
                ("zone", ForeignKey(db_index=False, on_delete=DO_NOTHING, to="access.zone")),
                ("client", ForeignKey(db_index=False, on_delete=DO_NOTHING, to="access.client")),
                ("name", TextField()),
                (
                    "registrations",
                    IntegerField(
                        db_comment="live ones in the group; updated with each barrier", db_default=0
                    ),
                ),
                ("created_at", DateTimeField(db_default=TransactionNow())),
                ("deleted_at", DateTimeField(null=True)),
            ],
            options={
                "db_table": "registration_groups",
                "db_table_comment": "registrations that are suspended and resumed together",
                "indexes": [
                    Index(
                        condition=Q(("deleted_at__isnull", True)),
                        fields=["zone", "id"],
                        name="groups_by_zone",
                    )
                ],
                "constraints": [
                    UniqueConstraint(
                        condition=Q(("deleted_at__isnull", True)),
                        fields=("client", "name"),
                        name="groups_by_name",
                    )
                ],
            },
        ),
        CreateTable(
            name="EndpointHealth",
            fields=[
                (
                    "endpoint",
                    OneToOneField(
                        db_constraint=False,
                        on_delete=DO_NOTHING,
                        primary_key=True,
                        related_name="health",
                        serialize=False,
                        to="registrations.endpoint",
                    ),
                ),
                ("attempted_at", DateTimeField(db_comment="time of the last recorded attempt")),
                ("outcome", TextField(db_comment="outcome of that attempt, as in attempts")),
                (
                    "status",
                    IntegerField(
                        db_comment="HTTP status of its answer, if there was one", null=True
                    ),
                ),
                (
                    "delivered_at",
                    DateTimeField(
                        db_comment="time of the last attempt that was answered with 2xx", null=True
                    ),
                ),
                (
                    "failing_since",
                    DateTimeField(
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
        CreateModel(
            name="Registration",
            fields=[
                ("id", BigAutoField(primary_key=True, serialize=False)),
                ("zone", ForeignKey(db_index=False, on_delete=DO_NOTHING, to="access.zone")),
                ("client", ForeignKey(db_index=False, on_delete=DO_NOTHING, to="access.client")),
                (
                    "key",
                    TextField(
                        db_comment="the client's own name for it, an idempotency key", null=True
                    ),
                ),
                ("created_at", DateTimeField(db_default=TransactionNow())),
                ("deleted_at", DateTimeField(null=True)),
            ],
            options={
                "db_table": "registrations",
                "db_table_comment": "subscriptions of clients",
                "indexes": [
                    Index(
                        condition=Q(("deleted_at__isnull", True)),
                        fields=["zone", "id"],
                        name="registrations_by_zone",
                    ),
                    Index(
                        condition=Q(("deleted_at__isnull", True)),
                        fields=["client", "id"],
                        name="registrations_by_client",
                    ),
                    Index(
                        condition=Q(("key__isnull", False)),
                        fields=["client", "key", "id"],
                        name="registrations_ever_by_key",
                    ),
                ],
                "constraints": [
                    UniqueConstraint(
                        condition=Q(("key__isnull", False), ("deleted_at__isnull", True)),
                        fields=("client", "key"),
                        name="registrations_by_key",
                    )
                ],
            },
        ),
        CreateModel(
            name="GroupStream",
            fields=[
                (
                    "pk",
                    CompositePrimaryKey(
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
                    ForeignKey(
                        db_index=False, on_delete=DO_NOTHING, to="registrations.registrationgroup"
                    ),
                ),
                ("stream", Reference(to="eventlog.stream")),
                (
                    "registrations",
                    IntegerField(db_comment="live ones of the group that name the stream now"),
                ),
            ],
            options={
                "db_table": "group_streams",
                "db_table_comment": "streams that a group's registrations name or ever named",
            },
        ),
        CreateModel(
            name="Suspension",
            fields=[
                ("id", BigAutoField(primary_key=True, serialize=False)),
                (
                    "group",
                    ForeignKey(
                        db_index=False, on_delete=DO_NOTHING, to="registrations.registrationgroup"
                    ),
                ),
                (
                    "from_barrier",
                    ForeignKey(
                        db_column="from_barrier",
                        db_index=False,
                        on_delete=DO_NOTHING,
                        related_name="+",
                        to="registrations.barrier",
                    ),
                ),
                (
                    "until_barrier",
                    ForeignKey(
                        db_column="until_barrier",
                        db_index=False,
                        null=True,
                        on_delete=DO_NOTHING,
                        related_name="+",
                        to="registrations.barrier",
                    ),
                ),
            ],
            options={
                "db_table": "suspensions",
                "db_table_comment": "barriers between which a group's registrations match nothing",
                "indexes": [
                    Index(fields=["group"], name="suspensions_by_group"),
                    Index(fields=["from_barrier"], name="suspensions_by_from"),
                    Index(
                        condition=Q(("until_barrier__isnull", False)),
                        fields=["until_barrier"],
                        name="suspensions_by_until",
                    ),
                ],
                "constraints": [
                    UniqueConstraint(
                        condition=Q(("until_barrier__isnull", True)),
                        fields=("group",),
                        name="suspensions_open",
                    )
                ],
            },
        ),
        CreateModel(
            name="ExpensiveFilter",
            fields=[
                (
                    "pk",
                    CompositePrimaryKey(
                        "client_id",
                        "stream_id",
                        "registration_id",
                        blank=True,
                        editable=False,
                        primary_key=True,
                        serialize=False,
                    ),
                ),
                ("client", Reference(to="access.client")),
                ("stream", Reference(to="eventlog.stream")),
                ("registration", Reference(to="registrations.registration")),
                ("cost", IntegerField(db_comment="in units of registrations/matching/cost.py")),
            ],
            options={
                "db_table": "expensive_filters",
                "db_table_comment": "filters that are evaluated for every event",
                "indexes": [Index(fields=["registration"], name="expensive_by_registration")],
            },
        ),
        CreateModel(
            name="RegistrationVersion",
            fields=[
                (
                    "id",
                    BigAutoField(db_comment="id in matchers", primary_key=True, serialize=False),
                ),
                (
                    "registration",
                    ForeignKey(
                        db_index=False, on_delete=DO_NOTHING, to="registrations.registration"
                    ),
                ),
                ("number", IntegerField(db_comment="1, 2, 3, ...")),
                (
                    "streams",
                    ArrayField(
                        base_field=BigIntegerField(),
                        db_comment="ids in the order of the request, each once",
                    ),
                ),
                ("language", TextField(db_comment="one of registrations.filters.languages")),
                (
                    "filter",
                    JsonTextField(db_comment="as the client wrote it; jsonb would refuse \\u0000"),
                ),
                (
                    "endpoint",
                    ForeignKey(
                        db_index=False, null=True, on_delete=DO_NOTHING, to="registrations.endpoint"
                    ),
                ),
                (
                    "suspended",
                    BooleanField(
                        db_comment="the registration itself (not its group) is suspended",
                        db_default=False,
                    ),
                ),
                (
                    "group",
                    ForeignKey(
                        db_index=False,
                        null=True,
                        on_delete=DO_NOTHING,
                        to="registrations.registrationgroup",
                    ),
                ),
                (
                    "report",
                    JsonTextField(
                        db_comment="fields of an event that are delivered; null: the whole event",
                        null=True,
                    ),
                ),
                (
                    "variable",
                    TextField(db_comment="the event variable that a READY filter binds", null=True),
                ),
                (
                    "digest",
                    UUIDField(
                        db_comment="hash of the client, the streams and the filter's normal form",
                        null=True,
                    ),
                ),
                (
                    "from_barrier",
                    ForeignKey(
                        db_column="from_barrier",
                        db_index=False,
                        on_delete=DO_NOTHING,
                        related_name="+",
                        to="registrations.barrier",
                    ),
                ),
                (
                    "until_barrier",
                    ForeignKey(
                        db_column="until_barrier",
                        db_comment="null: the current version",
                        db_index=False,
                        null=True,
                        on_delete=DO_NOTHING,
                        related_name="+",
                        to="registrations.barrier",
                    ),
                ),
            ],
            options={
                "db_table": "registration_versions",
                "db_table_comment": "definitions of registrations, each from one barrier to another",
                "indexes": [
                    GinIndex(fields=["streams"], name="versions_by_stream"),
                    Index(fields=["from_barrier"], name="versions_by_from"),
                    Index(
                        condition=Q(("until_barrier__isnull", False)),
                        fields=["until_barrier", "id"],
                        name="versions_by_until",
                    ),
                    Index(
                        condition=Q(("group__isnull", False)),
                        fields=["group"],
                        name="versions_by_group",
                    ),
                    Index(
                        condition=Q(("until_barrier__isnull", True)),
                        fields=["digest", "registration"],
                        name="versions_by_digest",
                    ),
                    Index(
                        condition=Q(("until_barrier__isnull", True)),
                        fields=["endpoint"],
                        name="versions_by_endpoint",
                    ),
                ],
                "constraints": [
                    UniqueConstraint(fields=("registration", "number"), name="versions_by_number"),
                    UniqueConstraint(
                        condition=Q(("until_barrier__isnull", True)),
                        fields=("registration",),
                        name="versions_current",
                    ),
                ],
            },
        ),
    ]
