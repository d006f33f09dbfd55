"""The tables of pattern groups: a client owns groups, a group has patterns over its streams, and a
pattern has immutable versions. Django module.

The API writes groups, patterns and versions. The forwarder that has a group's lease writes the
other tables, each row in the transaction that appends the outputs. A deletion of the group removes
its rows from all of those.
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
    JSONField,
    OneToOneField,
    Q,
    TextField,
    UniqueConstraint,
    UUIDField,
)

from eventhub.access.models import Client, Zone
from eventhub.eventlog.models import NEVER, Stream
from eventhub.postgresql.tables import JsonTextField, LiveManager, Reference, TableStorage
from registrations.models import CURRENT, ENDED, LIVE, Barrier


class PatternGroup(models.Model):
    """Patterns over the same streams, which one process runs: the unit of lease, order and state.
    Adding, changing or ending one of its patterns locks the row.
    """

    id = models.BigAutoField(primary_key=True)
    zone = ForeignKey(Zone, models.DO_NOTHING, db_index=False)
    client = ForeignKey(Client, models.DO_NOTHING, db_index=False)
    name = TextField()
    streams = ArrayField(BigIntegerField(), db_comment="ids, ascending; immutable")
    output_stream = Reference(
        Stream, null=True, db_comment="of outputs; null: that of the event which completed a match"
    )
    patterns = IntegerField(db_default=0, db_comment="live ones")
    created_at = DateTimeField(db_default=TransactionNow())
    deleted_at = DateTimeField(null=True)

    objects = LiveManager()

    class Meta:
        db_table = "pattern_groups"
        db_table_comment = "patterns over the same streams, run by one process"
        constraints = (
            UniqueConstraint(
                fields=["client", "name"], condition=LIVE, name="pattern_groups_by_name"
            ),
        )
        indexes = (
            Index(fields=["zone", "id"], condition=LIVE, name="pattern_groups_by_zone"),
            GinIndex(fields=["streams"], condition=LIVE, name="pattern_groups_by_stream"),
        )

    def __str__(self) -> str:
        return self.name


class StoredPattern(models.Model):
    """A pattern of a client over several events; its versions say what it matches."""

    id = models.BigAutoField(primary_key=True)
    zone = ForeignKey(Zone, models.DO_NOTHING, db_index=False)
    client = ForeignKey(Client, models.DO_NOTHING, db_index=False)
    group = ForeignKey(PatternGroup, models.DO_NOTHING, db_index=False)
    name = TextField()
    created_at = DateTimeField(db_default=TransactionNow())
    deleted_at = DateTimeField(null=True)

    objects = LiveManager()

    class Meta:
        db_table = "patterns"
        db_table_comment = "registrations over several events"
        constraints = (
            UniqueConstraint(fields=["group", "name"], condition=LIVE, name="patterns_by_name"),
        )
        indexes = (
            Index(fields=["zone", "id"], condition=LIVE, name="patterns_by_zone"),
            Index(fields=["group", "id"], name="patterns_by_group"),
        )

    def __str__(self) -> str:
        return self.name


class PatternVersion(models.Model):
    """The definition of a pattern from one barrier (exclusive) to another (inclusive). The only
    change to a version is that it ends.
    """

    class Language(models.TextChoices):
        READY = "ready"
        TEMPORAL = "temporal"
        AGENT = "agent"

    id = models.BigAutoField(primary_key=True, db_comment="number in engines")
    pattern = ForeignKey(StoredPattern, models.DO_NOTHING, db_index=False, related_name="versions")
    group = Reference(PatternGroup)
    number = IntegerField(db_comment="1, 2, 3, ...")
    language = TextField(choices=Language)
    text = JsonTextField(db_comment="as the client wrote it, a JSON string")
    once = BooleanField(db_default=False, db_comment="it ends with its first match")
    recent = BooleanField(
        db_default=False, db_comment="it also sees the recent events before its first barrier"
    )
    suspended = BooleanField(db_default=False, db_comment="no engine is given this version")
    cost = IntegerField(
        db_default=0, db_comment="for every event, in units of registrations/matching/cost.py"
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
        db_table = "pattern_versions"
        db_table_comment = "definitions of patterns, each from one barrier to another"
        constraints = (
            UniqueConstraint(fields=["pattern", "number"], name="pattern_versions_by_number"),
            UniqueConstraint(
                fields=["pattern"], condition=CURRENT, name="pattern_versions_current"
            ),
            CheckConstraint(
                condition=Q(language__in=["ready", "temporal", "agent"]),
                name="pattern_versions_language",
            ),
        )
        indexes = (
            Index(fields=["group", "id"], name="pattern_versions_by_group"),
            Index(fields=["from_barrier"], name="pattern_versions_by_from"),
            Index(fields=["until_barrier"], condition=ENDED, name="pattern_versions_by_until"),
        )

    def __str__(self) -> str:
        return f"{self.pattern_id} version {self.number}"


class PatternStatus(models.Model):
    """What became of a pattern; none: nothing yet. `state` and `fault` are those of one version,
    so they are void when the pattern has another one.
    """

    class State(models.TextChoices):
        RUNNING = "running"
        ENDED = "ended"
        SUSPENDED = "suspended"

    pattern = OneToOneField(
        StoredPattern,
        models.DO_NOTHING,
        primary_key=True,
        db_constraint=False,
        related_name="status",
    )
    group = Reference(PatternGroup)
    version = Reference(PatternVersion, related_name="+")
    state = TextField(
        choices=State,
        db_default=State.RUNNING,
        db_comment="ended: it was to match once; suspended: by the hub",
    )
    fault = JsonTextField(
        null=True, db_comment="why the hub suspended it: code, message, position of the event"
    )
    matches = BigIntegerField(db_default=0, db_comment="of all versions")
    dropped = JSONField(
        db_default={}, db_comment="discarded partial matches and outputs by reason, of all versions"
    )

    storage = TableStorage(parameters={"fillfactor": 60})

    class Meta:
        db_table = "pattern_statuses"
        verbose_name_plural = "pattern statuses"
        db_table_comment = "what became of patterns"
        constraints = (
            CheckConstraint(
                condition=Q(state__in=["running", "ended", "suspended"]),
                name="pattern_statuses_state",
            ),
        )
        indexes = (Index(fields=["group"], name="pattern_statuses_by_group"),)

    def __str__(self) -> str:
        return self.state


class PatternLease(models.Model):
    """Which forwarder runs a group, and how far it is. The API inserts the row with the group, at
    the heads of its streams; from then on a forwarder writes it, only with the epoch that it holds.
    """

    group = OneToOneField(
        PatternGroup, models.DO_NOTHING, primary_key=True, db_constraint=False, related_name="lease"
    )
    owner = UUIDField(null=True, db_comment="the forwarder")
    epoch = BigIntegerField(db_default=0, db_comment="rises with each new owner")
    expires_at = DateTimeField(db_default=NEVER)
    position = BigIntegerField(
        db_default=0, db_comment="order number of the last consumed event, from 1"
    )
    streams = ArrayField(BigIntegerField(), db_comment="parallel to segments and sequences")
    segments = ArrayField(UUIDField(), db_comment="of the last consumed event of each stream")
    sequences = ArrayField(BigIntegerField(), db_comment="of that event")
    fault = JsonTextField(null=True, db_comment="why no forwarder can run it: code, message")

    storage = TableStorage(parameters={"fillfactor": 60})

    class Meta:
        db_table = "pattern_leases"
        db_table_comment = "who runs each pattern group, and how far it is"

    def __str__(self) -> str:
        return f"{self.group_id}: {self.position}"


class PatternJournal(models.Model):
    """A row of the order in which a group consumed its events: the events with the order numbers
    from `first` to `last`, as runs of sequences of one segment each. A restart reads them again.
    """

    pk = CompositePrimaryKey("group_id", "first")
    group = Reference(PatternGroup)
    first = BigIntegerField()
    last = BigIntegerField(db_comment="first - 1: no events, a change of versions only")
    streams = ArrayField(BigIntegerField(), db_comment="of each run, in consumed order")
    segments = ArrayField(UUIDField(), db_comment="of each run")
    firsts = ArrayField(BigIntegerField(), db_comment="first sequence of each run")
    lasts = ArrayField(BigIntegerField(), db_comment="last sequence of each run")
    added = ArrayField(
        BigIntegerField(), db_comment="versions given to the engines before the event `first`"
    )
    removed = ArrayField(BigIntegerField(), db_comment="versions taken from the engines before it")

    class Meta:
        db_table = "pattern_journal"
        db_table_comment = "the order in which pattern groups consumed their events"


class PatternState(models.Model):
    """The partial matches of a group after one of its events; the journal has what followed."""

    group = OneToOneField(
        PatternGroup, models.DO_NOTHING, primary_key=True, db_constraint=False, related_name="state"
    )
    position = BigIntegerField(db_comment="order number of the last event that it contains")
    streams = ArrayField(BigIntegerField(), db_comment="parallel to segments and sequences")
    segments = ArrayField(UUIDField(), db_comment="the cursor at that position")
    sequences = ArrayField(BigIntegerField())
    versions = ArrayField(BigIntegerField(), db_comment="those that the engines have")
    state = BinaryField(db_comment="of the engines, compressed (engine.py)")
    written_at = DateTimeField(db_default=TransactionNow())

    storage = TableStorage(external=("state",))

    class Meta:
        db_table = "pattern_states"
        db_table_comment = "partial matches of pattern groups"

    def __str__(self) -> str:
        return f"{self.group_id}: {self.position}"
