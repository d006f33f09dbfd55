"""The tables of registrations: a client owns registrations, a registration has immutable versions,
and an endpoint receives callbacks. Django module.

SQL (sql/) writes versions, barriers and suspensions under the locks of the stream heads.
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
    FloatField,
    ForeignKey,
    Index,
    IntegerField,
    JSONField,
    OneToOneField,
    Q,
    TextField,
    UniqueConstraint,
    UUIDField,
)

from eventhub.access.models import Client, Zone
from eventhub.base import limits
from eventhub.eventlog.models import NEVER, Segment, Stream
from eventhub.postgresql.tables import (
    CurrentXid,
    JsonTextField,
    LiveManager,
    Reference,
    TableStorage,
    Xid8Field,
)
from eventhub.sessions.models import Session, SessionGroup

LIVE = Q(deleted_at__isnull=True)
CURRENT = Q(until_barrier__isnull=True)
ENDED = Q(until_barrier__isnull=False)
OF_SESSION = Q(session__isnull=False)
OF_GROUP = Q(session_group__isnull=False)
ORDERED_BY_KEY = Q(ordered=True) & ~Q(order_by="")
EXPIRING = Q(deleted_at__isnull=True, expires_at__isnull=False)  # endpoints


class RegistrationOwner(models.Model):
    """A client with registrations or endpoints. Adding, changing or ending one locks the row."""

    client = OneToOneField(Client, models.DO_NOTHING, primary_key=True)
    registrations = IntegerField(db_default=0, db_comment="live ones")

    class Meta:
        db_table = "registration_owners"
        db_table_comment = "clients with registrations or endpoints"

    def __str__(self) -> str:
        return f"{self.client_id}: {self.registrations}"


class Endpoint(models.Model):
    """A URL of a client to which the hub posts events, or a sink in which it stores them."""

    class Format(models.TextChoices):
        NATIVE = "native"
        CLOUDEVENTS_STRUCTURED = "cloudevents_structured"
        CLOUDEVENTS_BINARY = "cloudevents_binary"
        MCP = "mcp"

    class Signature(models.TextChoices):
        V1 = "v1"
        V1A = "v1a"
        BOTH = "both"

    class Handshake(models.TextChoices):
        NONE = "none"
        CLOUDEVENTS = "cloudevents"
        CHALLENGE = "challenge"
        CHECK = "check"
        MCP = "mcp"

    id = models.BigAutoField(primary_key=True)
    zone = ForeignKey(Zone, models.DO_NOTHING, db_index=False)
    client = ForeignKey(Client, models.DO_NOTHING, db_index=False)
    kind = TextField(
        db_default="https", db_comment="https: events are posted; else the kind of sink they go to"
    )
    url = TextField()
    settings = JSONField(db_default={}, db_comment="settings of the kind of sink")
    description = TextField(db_default="")
    secret = BinaryField(
        db_comment="the current secret in endpoint_secrets, for processes of release 0.1 or older"
    )
    ordered = BooleanField(
        db_default=False,
        db_comment="deliver one event of a stream, or of a key, at a time, in the stream's order",
    )
    order_by = TextField(
        db_default="",
        db_comment="path of the key by whose value events are ordered; empty: the whole stream",
    )
    batch_events_max = IntegerField(
        null=True, db_comment="events in one request at most; null: one event, not as a batch"
    )
    batch_bytes_max = IntegerField(
        db_default=limits.BATCH_BYTES_DEFAULT, db_comment="bytes of the body of a batch at most"
    )
    batch_linger_ms = IntegerField(
        db_default=0, db_comment="how long an event waits for others of its batch at most"
    )
    format = TextField(
        choices=Format, db_default=Format.NATIVE, db_comment="format of the callbacks' bodies"
    )
    signature = TextField(
        choices=Signature,
        db_default=Signature.V1,
        db_comment="signatures of the callbacks: v1 (HMAC-SHA256), v1a (Ed25519) or both",
    )
    retry_schedule = ArrayField(
        IntegerField(),
        null=True,
        db_comment="pauses before the first retry, the second, ..., in seconds; null: the default",
    )
    rate_limit = FloatField(
        null=True, db_comment="requests per second at most, of all workers; null: unlimited"
    )
    concurrency = IntegerField(
        null=True, db_comment="requests at a time at most, of all workers; null: unlimited"
    )
    timeout_s = IntegerField(
        null=True, db_comment="seconds until an answer counts as missing; null: 12"
    )
    disable_after_s = IntegerField(
        null=True,
        db_comment="seconds of failing without a success after which it is disabled; 0: never;"
        " null: the default",
    )
    enabled = BooleanField(db_default=True)
    reason = TextField(
        null=True, db_comment="why it is disabled: request, gone, failing, unverified"
    )
    handshake = TextField(
        choices=Handshake,
        db_default=Handshake.NONE,
        db_comment="how the receiver must agree to callbacks before the first one",
    )
    verified_at = DateTimeField(
        null=True, db_comment="time at which the receiver at this URL agreed last"
    )
    allowed_rate = IntegerField(
        null=True, db_comment="requests per minute that it agreed to; null: it named no bound"
    )
    expires_at = DateTimeField(
        null=True, db_comment="when the hub deletes it, with its registrations; null: never"
    )
    created_at = DateTimeField(db_default=TransactionNow())
    changed_at = DateTimeField(db_default=TransactionNow())
    deleted_at = DateTimeField(null=True)

    objects = LiveManager()

    class Meta:
        db_table = "endpoints"
        db_table_comment = "URLs to which the hub posts events"
        constraints = (
            CheckConstraint(
                condition=Q(
                    format__in=["native", "cloudevents_structured", "cloudevents_binary", "mcp"]
                ),
                name="endpoints_format",
            ),
            CheckConstraint(
                condition=Q(handshake__in=["none", "cloudevents", "challenge", "check", "mcp"]),
                name="endpoints_handshake",
            ),
        )
        indexes = (
            Index(fields=["zone", "id"], condition=LIVE, name="endpoints_by_zone"),
            Index(fields=["client", "url"], condition=LIVE, name="endpoints_by_url"),
            Index(fields=["id"], condition=ORDERED_BY_KEY, name="endpoints_by_key"),
            Index(fields=["expires_at"], condition=EXPIRING, name="endpoints_by_expiry"),
        )

    def __str__(self) -> str:
        return f"{self.pk}"


class EndpointSecret(models.Model):
    """A secret of an endpoint, encrypted under a key derived from the hub's secret key. Of each
    kind one is current; the ones before it expire.
    """

    class Kind(models.TextChoices):
        V1 = "v1"
        V1A = "v1a"
        HEADERS = "headers"
        AUTHENTICATION = "authentication"
        TLS = "tls"

    id = models.BigAutoField(primary_key=True)
    endpoint = ForeignKey(Endpoint, models.DO_NOTHING, db_index=False, related_name="secrets")
    kind = TextField(
        choices=Kind, db_comment="what it is for: signatures v1 or v1a, or a kind of credentials"
    )
    sealed = BinaryField(db_comment="encrypted under a key derived from the hub's secret key")
    public = TextField(
        null=True, db_comment="what may be shown: the public key of v1a, or JSON about credentials"
    )
    created_at = DateTimeField(db_default=TransactionNow())
    expires_at = DateTimeField(null=True, db_comment="null: it is the current one of its kind")

    class Meta:
        db_table = "endpoint_secrets"
        db_table_comment = "secrets of endpoints"
        constraints = (
            CheckConstraint(
                condition=Q(kind__in=["v1", "v1a", "headers", "authentication", "tls"]),
                name="endpoint_secrets_kind",
            ),
            UniqueConstraint(
                fields=["endpoint", "kind"],
                condition=Q(expires_at__isnull=True),
                name="endpoint_secrets_current",
            ),
        )
        indexes = (
            Index(fields=["endpoint"], name="endpoint_secrets_by_endpoint"),
            Index(
                fields=["expires_at"],
                condition=Q(expires_at__isnull=False),
                name="endpoint_secrets_by_expiry",
            ),
        )

    def __str__(self) -> str:
        return f"{self.kind} of {self.endpoint_id}"


class EndpointToken(models.Model):
    """The access token of an endpoint that authenticates with OAuth 2.0, shared by all workers. One
    of them claims the row to request the next token.
    """

    endpoint = OneToOneField(
        Endpoint, models.DO_NOTHING, primary_key=True, db_constraint=False, related_name="token"
    )
    secret = Reference(
        EndpointSecret, related_name="+", db_comment="the authentication that it was requested with"
    )
    sealed = BinaryField(
        null=True, db_comment="encrypted under a key derived from the hub's secret key"
    )
    obtained_at = DateTimeField(null=True)
    expires_at = DateTimeField(null=True)
    claim = UUIDField(null=True, db_comment="of the worker that requests the next token")
    claimed_until = DateTimeField(
        null=True,
        db_comment="until then no other worker requests one: during a request and after a failure",
    )
    error = TextField(null=True, db_comment="why the last request for a token failed")

    class Meta:
        db_table = "endpoint_tokens"
        db_table_comment = "access tokens of endpoints (OAuth 2.0)"

    def __str__(self) -> str:
        return f"{self.endpoint_id}"


class EndpointHealth(models.Model):
    """The latest results of an endpoint's callbacks, written with them when the outcome changes,
    otherwise at intervals.
    """

    endpoint = OneToOneField(
        Endpoint,
        models.DO_NOTHING,
        primary_key=True,
        db_constraint=False,
        related_name="health",
    )
    attempted_at = DateTimeField(db_comment="time of the last recorded attempt")
    outcome = TextField(db_comment="outcome of that attempt, as in attempts")
    status = IntegerField(null=True, db_comment="HTTP status of its answer, if there was one")
    delivered_at = DateTimeField(
        null=True, db_comment="time of the last attempt that was answered with 2xx"
    )
    failing_since = DateTimeField(
        null=True,
        db_comment="time of the first failed attempt since then; null: the last one succeeded",
    )

    storage = TableStorage(parameters={"fillfactor": 60})

    class Meta:
        db_table = "endpoint_health"
        verbose_name_plural = "endpoint health"
        db_table_comment = "latest results of endpoints' callbacks"

    def __str__(self) -> str:
        return self.outcome


class Circuit(models.Model):
    """The circuit breaker of an endpoint that fails, or has failed lately (endpoints/circuit.py),
    shared by all workers. While it is open, no worker calls the endpoint until the pause is over,
    and then one request probes it.
    """

    class State(models.TextChoices):
        CLOSED = "closed"
        OPEN = "open"
        HALF_OPEN = "half_open"

    endpoint = OneToOneField(
        Endpoint,
        models.DO_NOTHING,
        primary_key=True,
        db_constraint=False,
        related_name="circuit",
    )
    state = TextField(choices=State, db_default=State.CLOSED)
    failures = IntegerField(db_comment="failed attempts in a row; 0: the last one succeeded")
    failing_since = DateTimeField(db_comment="when the first of the last failures was written")
    failed_at = DateTimeField(db_comment="when the last failure was written")
    opened_at = DateTimeField(null=True, db_comment="when it opened last")
    openings = IntegerField(db_default=0, db_comment="since the last announcement")
    pause_s = FloatField(db_comment="upper bound of the pause while it is open")
    retry_at = DateTimeField(
        db_comment="end of the pause; while half open, when the probe counts as lost"
    )
    recorded_at = DateTimeField(
        db_default=TransactionNow(),
        db_comment="time of the last change; an endpoint changed later is called at once",
    )
    outcome = TextField(db_comment="outcome of the last failure, as in attempts")
    status = IntegerField(null=True, db_comment="HTTP status of its answer, if there was one")
    segment = Reference(Segment, db_comment="segment of the event of the last failure")
    sequence = BigIntegerField()
    announced_open = BooleanField(db_default=False, db_comment="it was announced as open")
    announced_at = DateTimeField(db_default=NEVER)
    warned_percent = IntegerField(
        db_default=0,
        db_comment="share of the time until it is disabled, as of the last announcement",
    )

    storage = TableStorage(parameters={"fillfactor": 60})

    class Meta:
        db_table = "circuits"
        db_table_comment = "circuit breakers of endpoints that failed lately"
        constraints = (
            CheckConstraint(
                condition=Q(state__in=["closed", "open", "half_open"]), name="circuits_state"
            ),
        )

    def __str__(self) -> str:
        return f"{self.endpoint_id}: {self.state}"


class EndpointVerification(models.Model):
    """The last verification of an endpoint, in which its receiver is asked whether it agrees to
    callbacks. A worker claims it, asks, and writes the outcome.
    """

    endpoint = OneToOneField(
        Endpoint, models.DO_NOTHING, primary_key=True, related_name="verification"
    )
    number = IntegerField(db_default=1, db_comment="of the request; rises with each")
    requested_at = DateTimeField(db_default=TransactionNow())
    claimed_until = DateTimeField(null=True, db_comment="until then a worker is at it")
    ended_at = DateTimeField(null=True, db_comment="null: pending")
    outcome = TextField(null=True, db_comment="verified, or why not, as in attempts")
    status = IntegerField(null=True, db_comment="HTTP status of the answer, if there was one")
    detail = TextField(null=True, db_comment="what was wrong with the answer")
    farewell = TextField(
        null=True,
        db_comment="the message to a receiver whose subscription of MCP has ended; null: a"
        " challenge",
    )

    class Meta:
        db_table = "endpoint_verifications"
        db_table_comment = "last verifications of endpoints"
        indexes = (
            Index(
                fields=["requested_at"],
                condition=Q(ended_at__isnull=True),
                name="endpoint_verifications_pending",
            ),
        )

    def __str__(self) -> str:
        return self.outcome or "pending"


class Barrier(models.Model):
    """The heads of some streams at the moment of a change. Events above a barrier were appended
    after the change became visible. The row is inserted empty, so that other rows can refer to it,
    and filled under the locks of the heads, so that these are held briefly.
    """

    id = models.BigAutoField(primary_key=True)
    streams = ArrayField(
        BigIntegerField(), db_comment="ascending; parallel to segments and sequences"
    )
    segments = ArrayField(UUIDField(), db_comment="open segment of each stream")
    sequences = ArrayField(BigIntegerField(), db_comment="last sequence of each stream")
    created_at = DateTimeField(db_default=TransactionNow())
    xid = Xid8Field(
        db_default=CurrentXid(),
        db_comment="finds the changes that a snapshot did not see, by its oldest transaction",
    )

    class Meta:
        db_table = "barriers"
        db_table_comment = "heads of some streams at the moment of a change"
        indexes = (Index(fields=["xid"], name="barriers_by_xid"),)

    def __str__(self) -> str:
        return f"{self.pk}"


class RegistrationGroup(models.Model):
    """Registrations that are suspended and resumed together, also with their parent. Suspending or
    resuming locks the row; creating or changing a registration locks it and its parent FOR SHARE.
    """

    id = models.BigAutoField(primary_key=True)
    zone = ForeignKey(Zone, models.DO_NOTHING, db_index=False)
    client = ForeignKey(Client, models.DO_NOTHING, db_index=False)
    name = TextField()
    registrations = IntegerField(
        db_default=0, db_comment="live ones in the group; updated with each barrier"
    )
    session = Reference(Session, null=True, db_comment="the session that it belongs to")
    session_group = Reference(SessionGroup, null=True, db_comment="or the session group")
    root = BooleanField(
        db_default=False, db_comment="it holds all registrations of its session or session group"
    )
    parent = Reference(
        "self", null=True, db_comment="the root of its session; suspended with it, not by itself"
    )
    created_at = DateTimeField(db_default=TransactionNow())
    deleted_at = DateTimeField(null=True)

    objects = LiveManager()

    class Meta:
        db_table = "registration_groups"
        db_table_comment = "registrations that are suspended and resumed together"
        constraints = (
            UniqueConstraint(fields=["client", "name"], condition=LIVE, name="groups_by_name"),
        )
        indexes = (
            Index(fields=["zone", "id"], condition=LIVE, name="groups_by_zone"),
            Index(fields=["session"], condition=OF_SESSION, name="groups_by_session"),
            Index(fields=["session_group"], condition=OF_GROUP, name="groups_by_session_group"),
            Index(fields=["parent"], condition=Q(parent__isnull=False), name="groups_by_parent"),
        )

    def __str__(self) -> str:
        return self.name


class GroupStream(models.Model):
    """A stream that a group's registrations name or ever named."""

    pk = CompositePrimaryKey("group_id", "stream_id")
    group = ForeignKey(RegistrationGroup, models.DO_NOTHING, db_index=False)
    stream = Reference(Stream)
    registrations = IntegerField(db_comment="live ones of the group that name the stream now")

    class Meta:
        db_table = "group_streams"
        db_table_comment = "streams that a group's registrations name or ever named"


class Suspension(models.Model):
    """The time in which a group's registrations match nothing: from one barrier (exclusive) to
    another (inclusive). These barriers hold every stream that a version of the group ever named:
    a stream that is absent from a barrier had no version of the group before it.
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
        db_table_comment = "barriers between which a group's registrations match nothing"
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
    """A subscription of a client; its versions say what it matches."""

    id = models.BigAutoField(primary_key=True)
    zone = ForeignKey(Zone, models.DO_NOTHING, db_index=False)
    client = ForeignKey(Client, models.DO_NOTHING, db_index=False)
    key = TextField(null=True, db_comment="the client's own name for it, an idempotency key")
    session = Reference(
        Session, null=True, db_comment="the consumer session that it belongs to; immutable"
    )
    session_group = Reference(SessionGroup, null=True, db_comment="or the session group")
    created_at = DateTimeField(db_default=TransactionNow())
    deleted_at = DateTimeField(null=True)

    objects = LiveManager()

    class Meta:
        db_table = "registrations"
        db_table_comment = "subscriptions of clients"
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
            Index(
                fields=["session", "id"],
                condition=LIVE & OF_SESSION,
                name="registrations_by_session",
            ),
            Index(
                fields=["session_group", "id"],
                condition=LIVE & OF_GROUP,
                name="registrations_by_session_group",
            ),
        )

    def __str__(self) -> str:
        return f"{self.pk}"


class RegistrationVersion(models.Model):
    """The definition of a registration from one barrier (exclusive) to another (inclusive). The
    only change to a version is that it ends.
    """

    id = models.BigAutoField(primary_key=True, db_comment="id in matchers")
    registration = ForeignKey(Registration, models.DO_NOTHING, db_index=False)
    number = IntegerField(db_comment="1, 2, 3, ...")
    streams = ArrayField(BigIntegerField(), db_comment="ids in the order of the request, each once")
    language = TextField(db_comment="one of registrations.filters.languages")
    filter = JsonTextField(db_comment="as the client wrote it; jsonb would refuse \\u0000")
    endpoint = ForeignKey(Endpoint, models.DO_NOTHING, null=True, db_index=False)
    suspended = BooleanField(
        db_default=False, db_comment="the registration itself (not its group) is suspended"
    )
    group = ForeignKey(RegistrationGroup, models.DO_NOTHING, null=True, db_index=False)
    report = JsonTextField(
        null=True, db_comment="fields of an event that are delivered; null: the whole event"
    )
    variable = TextField(null=True, db_comment="the event variable that a READY filter binds")
    digest = UUIDField(
        null=True, db_comment="hash of the client, the streams and the filter's normal form"
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
        db_comment="null: the current version",
    )

    class Meta:
        db_table = "registration_versions"
        db_table_comment = "definitions of registrations, each from one barrier to another"
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
    """The last transaction of a stream in which a version with an endpoint ended that has been
    deleted since. A match index whose snapshot may not have seen that transaction may hold the
    version as current, so the index is not used.
    """

    stream = OneToOneField(Stream, models.DO_NOTHING, primary_key=True, db_constraint=False)
    xid = Xid8Field()
    history = UUIDField(
        db_comment="history of the database (log_state) in which the transaction id is valid"
    )

    class Meta:
        db_table = "purged_versions"
        db_table_comment = "newest transaction that ended a since deleted version, by stream"

    def __str__(self) -> str:
        return f"{self.stream_id}"


class ListenInterest(models.Model):
    """A filter with which a client's listeners read a stream that may be quenched. It expires some
    time after the last such listener; the web processes of live listeners renew it.
    """

    pk = CompositePrimaryKey("stream_id", "client_id", "digest")
    stream = Reference(Stream)
    client_id = BigIntegerField(db_comment="negative: an operator")
    digest = UUIDField(db_comment="hash of the filter")
    filter = TextField(db_comment="in predicate form")
    expires_at = DateTimeField()

    class Meta:
        db_table = "listen_interests"
        db_table_comment = "filters of listeners on streams that may be quenched"


class IndexBuild(models.Model):
    """The last build of a stream's match index, and whether another one is requested. The manifest
    in the data folder describes the index itself.
    """

    stream = OneToOneField(Stream, models.DO_NOTHING, primary_key=True, db_constraint=False)
    requested_at = DateTimeField(null=True, db_comment="set while a build is requested")
    again = BooleanField(
        db_default=False,
        db_comment="requested after the running build started, so another one follows",
    )
    attempts = IntegerField(
        db_default=0, db_comment="started since the last success; a killed one counts"
    )
    started_at = DateTimeField(null=True)
    heartbeat_at = DateTimeField(null=True, db_comment="last heartbeat of the builder")
    ended_at = DateTimeField(null=True, db_comment="null: the builder is running, or died")
    stage = TextField(db_default="", db_comment="stage of the build")
    done = BigIntegerField(db_default=0, db_comment="registrations processed")
    expected = BigIntegerField(
        null=True, db_comment="approximate number of registrations to process"
    )
    reason = TextField(db_default="", db_comment="error code of a failure")
    detail = TextField(db_default="", db_comment="error message of a failure")

    class Meta:
        db_table = "index_builds"
        db_table_comment = "last build of each stream's match index"

    def __str__(self) -> str:
        return f"{self.stream_id} {self.stage}"


class ExpensiveFilter(models.Model):
    """The part of a client's budget that a registration takes for every event of a stream. A
    registration that takes nothing (nearly every one) or is itself suspended has no row. Rows are
    written with the versions, under the lock of the client's row of `registration_owners`.
    """

    pk = CompositePrimaryKey("client_id", "stream_id", "registration_id")
    client = Reference(Client)
    stream = Reference(Stream)
    registration = Reference(Registration)
    cost = IntegerField(db_comment="in units of registrations/matching/cost.py")

    class Meta:
        db_table = "expensive_filters"
        db_table_comment = "filters that are evaluated for every event"
        indexes = (Index(fields=["registration"], name="expensive_by_registration"),)
