"""The tables of sessions and session groups, and of the positions that sessions acknowledged.
Django module.

A session here is one of READY's: a durable resource of a client. Django's sessions are logins.
"""

from typing import Any

from django.contrib.postgres.fields import ArrayField
from django.contrib.postgres.functions import TransactionNow
from django.db import models
from django.db.models import (
    BigIntegerField,
    BooleanField,
    CheckConstraint,
    DateTimeField,
    Index,
    IntegerField,
    JSONField,
    OneToOneField,
    Q,
    TextField,
    UniqueConstraint,
    UUIDField,
    Value,
)

from eventhub.access.models import Client, Zone
from eventhub.base import limits
from eventhub.eventlog.models import NEVER, Stream
from eventhub.postgresql.tables import LiveManager, Reference, TableStorage

LIVE = Q(deleted_at__isnull=True)
EMPTY_OBJECT = Value({}, JSONField())
EMPTY_LIST = Value([], JSONField())


class Kind(models.TextChoices):
    """What a session is for (RDY-01)."""

    ADMIN = "admin"
    SUPPLIER = "supplier"
    CONSUMER = "consumer"
    GROUP = "group"  # of a session group that shares: it has the position, and no client uses it

    @classmethod
    def of_clients(cls) -> list[str]:
        """Return the kinds that clients create."""
        return [kind for kind in cls.values if kind != cls.GROUP]


class Quality(models.TextChoices):
    """Whether unacknowledged events are delivered again after a loss (RDY-48)."""

    RELIABLE = "reliable"
    BEST_EFFORT = "best_effort"


class DeliveryOrder(models.TextChoices):
    """The order in which the events held for a session are delivered (RDY-49, FOX-21)."""

    NONE = "none"
    FIFO = "fifo"
    PRIORITY = "priority"
    VALIDITY = "validity"
    SUPPLIER = "supplier"
    TYPE = "type"
    TIMESTAMP = "timestamp"
    CAUSAL = "causal"


class Sharing(models.TextChoices):
    """Which members of a session group get an event."""

    EVERY = "every"
    ONE = "one"


class DeliverySettings(models.Model):
    """Settings of the delivery to a consumer session. Those of a group apply to its members."""

    disconnected = BooleanField(
        db_default=False, db_comment="delivery is disabled on request; matching goes on"
    )
    quality = TextField(choices=Quality, db_default=Quality.RELIABLE)
    order = TextField(
        choices=DeliveryOrder,
        db_default=DeliveryOrder.FIFO,
        db_column="delivery_order",
        db_comment="the order in which held events are delivered",
    )
    order_options = JSONField(
        default=dict,
        db_default=EMPTY_OBJECT,
        db_comment="parameters of the order: occur_delay_ms, hold_ms, types, suppliers",
    )
    window = IntegerField(
        db_default=limits.SESSION_WINDOW_DEFAULT,
        db_column="window_events",
        db_comment="events that may be delivered and not acknowledged",
    )
    attempts_max = IntegerField(
        null=True,
        db_comment="how often an event is handed out before it is skipped; null: without end",
    )

    class Meta:
        abstract = True


class SessionGroup(DeliverySettings):
    """Consumer sessions with the same registrations: each member gets every matching event, or, if
    they share, one of them does. Of a group that shares a session of kind `group` is a member.
    """

    id = models.BigAutoField(primary_key=True)
    zone = Reference(Zone)
    client = Reference(Client, db_comment="the owner")
    name = TextField(db_comment="unique among the zone's live session groups")
    sharing = TextField(
        choices=Sharing,
        db_default=Sharing.EVERY,
        db_comment="whether every member gets an event, or one; immutable",
    )
    share_by = TextField(
        db_default="",
        db_comment="path of a key: the events of one go to one member at a time; empty: none",
    )
    suspended = BooleanField(
        db_default=False, db_comment="the registrations of the group match nothing"
    )
    created_at = DateTimeField(db_default=TransactionNow())
    deleted_at = DateTimeField(null=True)

    objects = LiveManager()

    class Meta:
        db_table = "session_groups"
        db_table_comment = "groups of consumer sessions that share registrations"
        constraints = (
            UniqueConstraint(
                fields=["zone", "name"], condition=LIVE, name="session_groups_by_name"
            ),
            CheckConstraint(condition=Q(quality__in=Quality.values), name="session_groups_quality"),
            CheckConstraint(condition=Q(sharing__in=Sharing.values), name="session_groups_sharing"),
            CheckConstraint(
                condition=Q(order__in=DeliveryOrder.values), name="session_groups_order"
            ),
        )
        indexes = (
            Index(fields=["zone", "id"], condition=LIVE, name="session_groups_by_zone"),
            Index(fields=["client", "id"], condition=LIVE, name="session_groups_by_client"),
        )

    def __str__(self) -> str:
        return self.name


class Session(DeliverySettings):
    """A session of a client. Attaching a connection to it changes no indexed column."""

    id = models.BigAutoField(primary_key=True)
    zone = Reference(Zone)
    client = Reference(Client)
    name = TextField(db_comment="unique among the client's live sessions")
    kind = TextField(choices=Kind)
    group = Reference(
        SessionGroup,
        null=True,
        related_name="members",
        db_comment="of a consumer session; its delivery settings apply instead of the session's",
    )
    supplies = JSONField(
        default=list,
        db_default=EMPTY_LIST,
        db_comment="the types that a supplier session emits: objects with domain and type",
    )
    suspended = BooleanField(
        db_default=False,
        db_comment="the session emits nothing, and its registrations match nothing",
    )
    attachment = UUIDField(
        null=True, db_comment="the connection that serves it now; each one has its own"
    )
    attached_process = TextField(null=True, db_comment="the process of that connection")
    attached_at = DateTimeField(null=True)
    acknowledgements = BigIntegerField(
        db_default=0,
        db_comment="acknowledgements over HTTP so far; a connection that does not know all of them"
        " saves no positions",
    )
    created_at = DateTimeField(db_default=TransactionNow())
    deleted_at = DateTimeField(null=True)

    objects = LiveManager()
    storage = TableStorage(parameters={"fillfactor": 70})

    class Meta:
        db_table = "sessions"
        db_table_comment = "admin, supplier and consumer sessions of clients"
        constraints = (
            UniqueConstraint(fields=["client", "name"], condition=LIVE, name="sessions_by_name"),
            CheckConstraint(condition=Q(kind__in=Kind.values), name="sessions_kind"),
            CheckConstraint(condition=Q(quality__in=Quality.values), name="sessions_quality"),
            CheckConstraint(condition=Q(order__in=DeliveryOrder.values), name="sessions_order"),
        )
        indexes = (
            Index(fields=["zone", "id"], condition=LIVE, name="sessions_by_zone"),
            Index(fields=["client", "id"], condition=LIVE, name="sessions_by_client"),
            Index(
                fields=["group"], condition=LIVE & Q(group__isnull=False), name="sessions_by_group"
            ),
        )

    def __str__(self) -> str:
        return self.name

    @property
    def delivery(self) -> dict[str, Any] | None:
        """The settings of delivery that apply: of a member those of its group."""
        if self.kind != Kind.CONSUMER:
            return None
        found = self.group or self
        return {
            "disconnected": self.disconnected or found.disconnected,
            "quality": found.quality,
            "order": found.order,
            "order_options": found.order_options,
            "window": found.window,
            "attempts_max": found.attempts_max,
        }


class SessionCursor(models.Model):
    """A consumer session's position in a stream of its registrations: it has acknowledged every
    event that matches them up to `sequence`, and those of `acknowledged` above it.
    """

    pk = models.CompositePrimaryKey("session_id", "stream_id")
    session = Reference(Session)
    stream = Reference(Stream)
    segment = UUIDField(db_comment="UUID of the segment of `sequence`")
    sequence = BigIntegerField(
        db_comment="every matching event up to it is acknowledged; none before the first one counts"
    )
    acknowledged = ArrayField(
        BigIntegerField(),
        default=list,
        db_default=Value([], ArrayField(BigIntegerField())),
        db_comment="acknowledged sequences above it, ascending",
    )
    claimed_segment = UUIDField(null=True, db_comment="UUID of the segment of `claimed_sequence`")
    claimed_sequence = BigIntegerField(
        null=True,
        db_comment="each matching event up to it is acknowledged or claimed; null: none is claimed",
    )
    redeliver = ArrayField(
        BigIntegerField(),
        default=list,
        db_default=Value([], ArrayField(BigIntegerField())),
        db_comment="events that the connection has to deliver again at once",
    )
    saved_at = DateTimeField(db_default=TransactionNow())

    storage = TableStorage(parameters={"fillfactor": 50})

    class Meta:
        db_table = "session_cursors"
        db_table_comment = "positions of consumer sessions in streams"
        indexes = (Index(fields=["stream"], name="session_cursors_by_stream"),)

    def __str__(self) -> str:
        return f"{self.session_id} in {self.stream_id}: {self.sequence}"


class SessionClaim(models.Model):
    """An event of a session that was handed out and is not acknowledged. Nobody else gets it until
    `claimed_until`; then it is handed out again.
    """

    id = models.BigAutoField(primary_key=True, db_comment="ascends in the order of first claims")
    session = Reference(Session, related_name="claims")
    stream = Reference(Stream)
    segment = UUIDField(db_comment="UUID of the segment of `sequence`")
    sequence = BigIntegerField()
    order_key = BigIntegerField(
        null=True, db_comment="hash of the stream and the key; null: not ordered by key"
    )
    holder = Reference(Session, related_name="held_claims", db_comment="who has it")
    claimed_until = DateTimeField(db_comment="by the clock of the database")
    attempts = IntegerField(db_default=1, db_comment="how often it was handed out")

    storage = TableStorage(parameters={"fillfactor": 70})

    class Meta:
        db_table = "session_claims"
        db_table_comment = "events of sessions that were handed out and are not acknowledged"
        constraints = (
            UniqueConstraint(
                fields=["session", "stream", "sequence"], name="session_claims_by_event"
            ),
        )
        indexes = (
            Index(fields=["session", "id"], name="session_claims_by_session"),
            Index(fields=["stream"], name="session_claims_by_stream"),
            Index(fields=["holder"], name="session_claims_by_holder"),
            Index(
                fields=["session", "order_key"],
                condition=Q(order_key__isnull=False),
                name="session_claims_by_key",
            ),
        )

    def __str__(self) -> str:
        return f"{self.session_id} in {self.stream_id}: {self.sequence}"


class SessionSkip(models.Model):
    """Events of a session that were skipped, because they were handed out as often as its settings
    allow, and that are not announced yet. Of a group that shares, its own session has the row.
    """

    session = OneToOneField(Session, models.DO_NOTHING, primary_key=True)
    events = BigIntegerField(db_comment="events since the last announcement")
    skipped = JSONField(
        default=list,
        db_default=EMPTY_LIST,
        db_comment="the first of them: stream, segment, sequence, attempts",
    )
    since = DateTimeField(null=True)
    announced_at = DateTimeField(db_default=NEVER)

    storage = TableStorage(parameters={"fillfactor": 60})

    class Meta:
        db_table = "session_skips"
        db_table_comment = "events that sessions did not process, until they are announced"

    def __str__(self) -> str:
        return f"{self.session_id}: {self.events}"
