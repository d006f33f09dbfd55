"""The table of the definitions of event types. Django module."""

from django.contrib.postgres.functions import TransactionNow
from django.db import models
from django.db.models import (
    CheckConstraint,
    DateTimeField,
    ForeignKey,
    Index,
    IntegerField,
    Q,
    TextField,
    UniqueConstraint,
)

from eventhub.access.models import Zone


class EventType(models.Model):
    """A version of an event type: its definition never changes, and its row remains when the type
    is deleted, because the log has events of each version. The versions of a type count from 1
    without gaps.
    """

    class Evolution(models.TextChoices):
        BACKWARD = "backward"
        NONE = "none"

    id = models.BigAutoField(primary_key=True)
    zone = ForeignKey(Zone, models.DO_NOTHING, db_constraint=False, db_index=False)
    domain = TextField()
    type = TextField()
    version = IntegerField()
    parent = TextField(
        null=True,
        db_comment="a type of the same domain, equal in all versions of this one; events also"
        " satisfy its newest version",
    )
    evolution = TextField(choices=Evolution)
    schema = TextField(db_comment="JSON Schema of the attributes")
    header = TextField(null=True, db_comment="JSON Schema of the optional header; null: none")
    declared_at = DateTimeField(db_default=TransactionNow())
    deletes_at = DateTimeField(
        null=True,
        db_comment="the end of the grace period of the type's deletion, in all its versions",
    )
    deleted_at = DateTimeField(
        null=True, db_comment="when that ended: new events of the type are undeclared"
    )

    class Meta:
        db_table = "event_types"
        db_table_comment = "versions of event types"
        constraints = (
            UniqueConstraint(
                fields=["zone", "domain", "type", "version"], name="event_types_by_version"
            ),
            CheckConstraint(condition=Q(version__gt=0), name="event_types_version"),
            CheckConstraint(
                condition=Q(evolution__in=["backward", "none"]), name="event_types_evolution"
            ),
        )
        indexes = (Index(fields=["zone", "id"], condition=Q(version=1), name="event_types_first"),)

    @property
    def deleted(self) -> bool:
        return self.deleted_at is not None

    def __str__(self) -> str:
        return f"{self.domain}/{self.type} {self.version}"
