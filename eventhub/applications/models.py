"""The tables of applications and their groups, with their present states. Django module.

The history is in the zone's stream `eventhub.applications`, whose keyed state equals these rows.
"""

from django.db import models
from django.db.models import (
    CheckConstraint,
    DateTimeField,
    Index,
    IntegerField,
    Q,
    TextField,
    UniqueConstraint,
)

from eventhub.access.models import Zone
from eventhub.postgresql.tables import Reference, TableStorage


class State(models.TextChoices):
    """The states of an application and of a group."""

    ONLINE = "online"
    OFFLINE = "offline"
    DEGRADED = "degraded"
    FAULTED = "faulted"


class Application(models.Model):
    """An application, or a component of one. A heartbeat changes no indexed column, so that it
    writes no index: `due_at` moves only when it is reached.
    """

    id = models.BigAutoField(primary_key=True)
    zone = Reference(Zone)
    name = TextField(db_comment="the name of the application, or APPLICATION/COMPONENT")
    state = TextField(
        choices=State,
        db_comment="the reported state, or offline while a heartbeat is missed",
    )
    reason = TextField(db_comment="why it is in this state; empty: not given")
    since = DateTimeField(db_comment="when it entered this state")
    reported_state = TextField(choices=State, db_comment="the state that was last reported")
    reported_reason = TextField(db_comment="the reason that was last reported")
    reported_at = DateTimeField(db_comment="when its state was last reported")
    heartbeat_at = DateTimeField(db_comment="when its last report or heartbeat was received")
    timeout_s = IntegerField(
        null=True,
        db_comment="while it is monitored: the seconds after a heartbeat in which the next one is"
        " expected",
    )
    due_at = DateTimeField(
        null=True, db_comment="no heartbeat is missed before; null: none is expected"
    )
    created_at = DateTimeField()

    storage = TableStorage(parameters={"fillfactor": 70})

    class Meta:
        db_table = "applications"
        db_table_comment = "applications and their components, with their states"
        constraints = (
            UniqueConstraint(fields=["zone", "name"], name="applications_by_name"),
            CheckConstraint(condition=Q(state__in=State.values), name="applications_state"),
            CheckConstraint(
                condition=Q(reported_state__in=State.values), name="applications_reported_state"
            ),
        )
        indexes = (
            Index(fields=["zone", "id"], name="applications_listed"),
            Index(fields=["zone", "state", "id"], name="applications_by_state"),
            Index(fields=["due_at"], condition=Q(due_at__isnull=False), name="applications_due"),
        )

    def __str__(self) -> str:
        return self.name


class ApplicationGroup(models.Model):
    """A group of related applications. Its state is derived from those of its members."""

    id = models.BigAutoField(primary_key=True)
    zone = Reference(Zone)
    name = TextField()
    state = TextField(choices=State, db_comment="derived from the states of its members")
    since = DateTimeField(db_comment="when it entered this state")
    created_at = DateTimeField()

    class Meta:
        db_table = "application_groups"
        db_table_comment = "groups of applications, with their states"
        constraints = (
            UniqueConstraint(fields=["zone", "name"], name="application_groups_by_name"),
            CheckConstraint(condition=Q(state__in=State.values), name="application_groups_state"),
        )
        indexes = (Index(fields=["zone", "id"], name="application_groups_listed"),)

    def __str__(self) -> str:
        return self.name


class ApplicationMember(models.Model):
    """An application in a group."""

    pk = models.CompositePrimaryKey("group_id", "application_id")
    group = Reference(ApplicationGroup)
    application = Reference(Application)

    class Meta:
        db_table = "application_members"
        db_table_comment = "which applications are in which group"
        indexes = (Index(fields=["application"], name="application_members_of"),)

    def __str__(self) -> str:
        return f"{self.group_id}/{self.application_id}"
