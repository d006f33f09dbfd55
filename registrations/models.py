"""The tables of who wants what: sessions own registrations, a registration has immutable versions,
and an endpoint is where the hub calls back. Django module.

Versions, barriers and suspensions are written by SQL (sql/), under the heads' locks.
"""

from django.contrib.postgres.fields import ArrayField
from django.contrib.postgres.functions import TransactionNow
from django.contrib.postgres.indexes import GinIndex
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

from eventhub.access.models import Client, Zone
from eventhub.eventlog.models import Stream
from eventhub.postgresql.tables import CurrentXid, JsonTextField, TableStorage, Xid8Field

LIVE = Q(deleted_at__isnull=True)
CURRENT = Q(until_barrier__isnull=True)
ENDED = Q(until_barrier__isnull=False)


class LiveManager(models.Manager):
    """Of what is deleted by a time."""

    def live(self) -> models.QuerySet:
        """Those that are not deleted."""
        return self.filter(LIVE)


class Session(models.Model):
    """What a client's registrations belong to. Every client has a session `default` from its first
    registration on.
    """

    id = models.BigAutoField(primary_key=True)
    client = ForeignKey(Client, models.DO_NOTHING, db_index=False)
    name = TextField()
    registrations = IntegerField(
        db_default=0, db_comment="live ones; the row is locked by whoever adds or ends one"
    )
    created_at = DateTimeField(db_default=TransactionNow())

    class Meta:
        db_table = "sessions"
        db_table_comment = "what registrations belong to"
        constraints = (UniqueConstraint(fields=["client", "name"], name="sessions_by_name"),)

    def __str__(self) -> str:
        return self.name


class Endpoint(models.Model):
    """Where the hub calls back."""

    class Format(models.TextChoices):
        NATIVE = "native"
        CLOUDEVENTS_STRUCTURED = "cloudevents_structured"
        CLOUDEVENTS_BINARY = "cloudevents_binary"

    id = models.BigAutoField(primary_key=True)
    zone = ForeignKey(Zone, models.DO_NOTHING, db_index=False)
    client = ForeignKey(Client, models.DO_NOTHING, db_index=False)
    url = TextField()
    description = TextField(db_default="")
    secret = BinaryField(
        db_comment="of the signature, encrypted under a key derived from the hub's secret"
    )
    ordered = BooleanField(
        db_default=False, db_comment="one delivery of a stream at a time, in the stream's order"
    )
    format = TextField(
        choices=Format, db_default=Format.NATIVE, db_comment="of the callbacks' bodies"
    )
    enabled = BooleanField(db_default=True)
    reason = TextField(null=True, db_comment="why it is not enabled: request, gone")
    created_at = DateTimeField(db_default=TransactionNow())
    changed_at = DateTimeField(db_default=TransactionNow())
    deleted_at = DateTimeField(null=True)

    objects = LiveManager()

    class Meta:
        db_table = "endpoints"
        db_table_comment = "where the hub calls back"
        constraints = (
            CheckConstraint(
                condition=Q(format__in=["native", "cloudevents_structured", "cloudevents_binary"]),
                name="endpoints_format",
            ),
        )
        indexes = (
            Index(fields=["zone", "id"], condition=LIVE, name="endpoints_by_zone"),
            Index(fields=["client", "url"], condition=LIVE, name="endpoints_by_url"),
        )

    def __str__(self) -> str:
        return f"{self.pk}"


class EndpointHealth(models.Model):
    """How an endpoint answers, written with the results of its callbacks: when the outcome changes,
    else now and then.
    """

    endpoint = OneToOneField(
        Endpoint,
        models.DO_NOTHING,
        primary_key=True,
        db_constraint=False,
        related_name="health",
    )
    attempted_at = DateTimeField(db_comment="the last attempt that is known here")
    outcome = TextField(db_comment="how it ended, as in attempts")
    status = IntegerField(null=True, db_comment="of its answer, if there was one")
    delivered_at = DateTimeField(
        null=True, db_comment="the last attempt that was answered with 2xx"
    )
    failing_since = DateTimeField(
        null=True, db_comment="the first attempt that failed since; null: the last one did not"
    )

    storage = TableStorage(parameters={"fillfactor": 60})

    class Meta:
        db_table = "endpoint_health"
        verbose_name_plural = "endpoint health"
        db_table_comment = "how endpoints answer"

    def __str__(self) -> str:
        return self.outcome


class Barrier(models.Model):
    """The heads of some streams at the moment of a change: what is above was appended after the
    change was visible. The row is made empty before anything refers to it, and filled under the
    heads' locks, so that they are held briefly.
    """

    id = models.BigAutoField(primary_key=True)
    streams = ArrayField(BigIntegerField(), db_comment="ascending, and in the same places")
    segments = ArrayField(UUIDField(), db_comment="the open segment")
    sequences = ArrayField(BigIntegerField(), db_comment="the last sequence given")
    created_at = DateTimeField(db_default=TransactionNow())
    xid = Xid8Field(
        db_default=CurrentXid(),
        db_comment="what a snapshot did not see is found by its oldest transaction",
    )

    class Meta:
        db_table = "barriers"
        db_table_comment = "the heads of some streams at the moment of a change"
        indexes = (Index(fields=["xid"], name="barriers_by_xid"),)

    def __str__(self) -> str:
        return f"{self.pk}"


class RegistrationGroup(models.Model):
    """Registrations that are suspended and resumed in one act. The row is locked by whoever does
    that, and shared by whoever makes or changes a registration of the group.
    """

    id = models.BigAutoField(primary_key=True)
    zone = ForeignKey(Zone, models.DO_NOTHING, db_index=False)
    client = ForeignKey(Client, models.DO_NOTHING, db_index=False)
    name = TextField()
    registrations = IntegerField(
        db_default=0, db_comment="live ones that name it; with each barrier of these"
    )
    created_at = DateTimeField(db_default=TransactionNow())
    deleted_at = DateTimeField(null=True)

    objects = LiveManager()

    class Meta:
        db_table = "registration_groups"
        db_table_comment = "registrations that are suspended and resumed in one act"
        constraints = (
            UniqueConstraint(fields=["client", "name"], condition=LIVE, name="groups_by_name"),
        )
        indexes = (Index(fields=["zone", "id"], condition=LIVE, name="groups_by_zone"),)

    def __str__(self) -> str:
        return self.name


class GroupStream(models.Model):
    """A stream on which a group's registrations are or ever were."""

    pk = CompositePrimaryKey("group_id", "stream_id")
    group = ForeignKey(RegistrationGroup, models.DO_NOTHING, db_index=False)
    stream = ForeignKey(Stream, models.DO_NOTHING, db_constraint=False, db_index=False)
    registrations = IntegerField(db_comment="live ones that are on it now")

    class Meta:
        db_table = "group_streams"
        db_table_comment = "the streams on which a group's registrations are or ever were"

    def __str__(self) -> str:
        return f"{self.group_id}/{self.stream_id}"


class Suspension(models.Model):
    """When a group's registrations match nothing: from one barrier (exclusive) to another
    (inclusive). A barrier of these has every stream on which a version of the group ever was, so a
    stream without a place in it had none by then.
    """

    id = models.BigAutoField(primary_key=True)
    group = ForeignKey(RegistrationGroup, models.DO_NOTHING, db_index=False)
    from_barrier = ForeignKey(
        Barrier,
        models.DO_NOTHING,
        db_column="from_barrier",
        db_index=False,
        related_name="+",
    )
    until_barrier = ForeignKey(
        Barrier,
        models.DO_NOTHING,
        null=True,
        db_column="until_barrier",
        db_index=False,
        related_name="+",
    )

    class Meta:
        db_table = "suspensions"
        db_table_comment = "from one barrier to another, a group's registrations match nothing"
        constraints = (
            UniqueConstraint(fields=["group"], condition=CURRENT, name="suspensions_open"),
        )
        indexes = (
            Index(fields=["group"], name="suspensions_by_group"),
            Index(fields=["from_barrier"], name="suspensions_by_from"),
            Index(fields=["until_barrier"], condition=ENDED, name="suspensions_by_until"),
        )

    def __str__(self) -> str:
        return f"{self.pk}"


class Registration(models.Model):
    """A wish of a client; what it asks for is in its versions."""

    id = models.BigAutoField(primary_key=True, db_comment="the ticket")
    zone = ForeignKey(Zone, models.DO_NOTHING, db_index=False)
    client = ForeignKey(Client, models.DO_NOTHING, db_index=False)
    session = ForeignKey(Session, models.DO_NOTHING, db_index=False)
    key = TextField(
        null=True, db_comment="the client's own name for it, so that it can repeat itself"
    )
    created_at = DateTimeField(db_default=TransactionNow())
    deleted_at = DateTimeField(null=True)

    objects = LiveManager()

    class Meta:
        db_table = "registrations"
        db_table_comment = "wishes of clients"
        constraints = (
            UniqueConstraint(
                fields=["client", "key"],
                condition=Q(key__isnull=False) & LIVE,
                name="registrations_by_key",
            ),
        )
        indexes = (
            Index(fields=["zone", "id"], condition=LIVE, name="registrations_by_zone"),
            Index(fields=["client", "id"], condition=LIVE, name="registrations_by_client"),
            Index(
                fields=["client", "key", "id"],
                condition=Q(key__isnull=False),
                name="registrations_ever_by_key",
            ),
        )

    def __str__(self) -> str:
        return f"{self.pk}"


class RegistrationVersion(models.Model):
    """What a registration asks for, from one barrier (exclusive) to another (inclusive). A version
    never changes but by getting its end.
    """

    id = models.BigAutoField(primary_key=True, db_comment="the matcher's id")
    registration = ForeignKey(Registration, models.DO_NOTHING, db_index=False)
    number = IntegerField(db_comment="1, 2, 3, ...")
    streams = ArrayField(BigIntegerField(), db_comment="as named, each once")
    language = TextField(db_comment="of registrations.filters")
    filter = JsonTextField(db_comment="as it was written; jsonb would refuse \\u0000")
    endpoint = ForeignKey(Endpoint, models.DO_NOTHING, null=True, db_index=False)
    suspended = BooleanField(db_default=False, db_comment="by itself: nothing matches it")
    group = ForeignKey(RegistrationGroup, models.DO_NOTHING, null=True, db_index=False)
    report = JsonTextField(null=True, db_comment="what of an event is told; null: the whole")
    digest = UUIDField(
        null=True, db_comment="of the client, the streams and the filter's normal form"
    )
    from_barrier = ForeignKey(
        Barrier,
        models.DO_NOTHING,
        db_column="from_barrier",
        db_index=False,
        related_name="+",
    )
    until_barrier = ForeignKey(
        Barrier,
        models.DO_NOTHING,
        null=True,
        db_column="until_barrier",
        db_index=False,
        related_name="+",
        db_comment="null: it is the current one",
    )

    class Meta:
        db_table = "registration_versions"
        db_table_comment = "what registrations ask for, from one barrier to another"
        constraints = (
            UniqueConstraint(fields=["registration", "number"], name="versions_by_number"),
            UniqueConstraint(fields=["registration"], condition=CURRENT, name="versions_current"),
        )
        indexes = (
            GinIndex(fields=["streams"], name="versions_by_stream"),
            Index(fields=["from_barrier"], name="versions_by_from"),
            Index(fields=["until_barrier", "id"], condition=ENDED, name="versions_by_until"),
            Index(fields=["group"], condition=Q(group__isnull=False), name="versions_by_group"),
            Index(fields=["digest", "registration"], condition=CURRENT, name="versions_by_digest"),
            Index(fields=["endpoint"], condition=CURRENT, name="versions_by_endpoint"),
        )

    def __str__(self) -> str:
        return f"{self.registration_id} version {self.number}"


class PurgedVersion(models.Model):
    """Of a stream, the last transaction in which a version ended that has an endpoint and was
    deleted since. A match index whose snapshot may not have seen it may hold that version as one
    that has not ended, so it is not used.
    """

    stream = OneToOneField(Stream, models.DO_NOTHING, primary_key=True, db_constraint=False)
    xid = Xid8Field()
    history = UUIDField(
        db_comment="of the database (log_state): transactions of another one say nothing"
    )

    class Meta:
        db_table = "purged_versions"
        db_table_comment = "the newest end of the versions that were deleted, by stream"

    def __str__(self) -> str:
        return f"{self.stream_id}"


class ListenInterest(models.Model):
    """What is listened for on a stream that may be quenched: of each client and filter when the
    last such listen that is known of will have been over for long. The web processes of live
    listens renew it.
    """

    pk = CompositePrimaryKey("stream_id", "client_id", "digest")
    stream = ForeignKey(Stream, models.DO_NOTHING, db_constraint=False, db_index=False)
    client_id = BigIntegerField(db_comment="below zero: an operator")
    digest = UUIDField(db_comment="of the filter")
    filter = TextField(db_comment="in predicate form")
    expires_at = DateTimeField()

    class Meta:
        db_table = "listen_interests"
        db_table_comment = "what is listened for on streams that may be quenched"

    def __str__(self) -> str:
        return self.filter


class IndexBuild(models.Model):
    """The last build of a stream's match index, and whether somebody waits for one. What an index
    is says its own manifest in the data folder.
    """

    stream = OneToOneField(Stream, models.DO_NOTHING, primary_key=True, db_constraint=False)
    requested_at = DateTimeField(null=True, db_comment="somebody waits for one")
    again = BooleanField(
        db_default=False,
        db_comment="asked for after the last one began: that one is not enough",
    )
    attempts = IntegerField(
        db_default=0, db_comment="begun since one ended well; one that is killed has had its try"
    )
    started_at = DateTimeField(null=True)
    heartbeat_at = DateTimeField(null=True, db_comment="the builder's last word")
    ended_at = DateTimeField(
        null=True, db_comment="null: it is at work, or has gone without a word"
    )
    stage = TextField(db_default="", db_comment="what the builder is at")
    done = BigIntegerField(db_default=0, db_comment="registrations taken in")
    expected = BigIntegerField(null=True, db_comment="of about so many")
    reason = TextField(db_default="", db_comment="why it failed, an error's code")
    detail = TextField(db_default="", db_comment="and in words")

    class Meta:
        db_table = "index_builds"
        db_table_comment = "builds of match indexes, the last of each stream"

    def __str__(self) -> str:
        return f"{self.stream_id} {self.stage}"


class ExpensiveFilter(models.Model):
    """What a client's live registrations that are not suspended by themselves take of every event
    of a stream; those that take nothing, nearly all, have no row. Written with the versions, under
    the lock of the client's session.
    """

    pk = CompositePrimaryKey("client_id", "stream_id", "registration_id")
    client = ForeignKey(Client, models.DO_NOTHING, db_constraint=False, db_index=False)
    stream = ForeignKey(Stream, models.DO_NOTHING, db_constraint=False, db_index=False)
    registration = ForeignKey(Registration, models.DO_NOTHING, db_constraint=False, db_index=False)
    cost = IntegerField(db_comment="of registrations/matching/budget.py")

    class Meta:
        db_table = "expensive_filters"
        db_table_comment = "filters that are tried for every event"
        indexes = (Index(fields=["registration"], name="expensive_by_registration"),)

    def __str__(self) -> str:
        return f"{self.registration_id}: {self.cost}"
