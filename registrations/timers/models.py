"""The tables of timers. A timer with an event is a delayed emit. Django module.

The firing part (firing.py) moves `next_at` and `due_at`, and deletes a timer that has ended.
"""

from django.db import models
from django.db.models import (
    BigIntegerField,
    BinaryField,
    BooleanField,
    CheckConstraint,
    DateTimeField,
    Index,
    IntegerField,
    OneToOneField,
    Q,
    TextField,
    UniqueConstraint,
)

from eventhub.access.models import Client, Zone
from eventhub.eventlog.models import Stream
from eventhub.postgresql.tables import Reference
from registrations.models import Registration


class Timer(models.Model):
    """A timer of a client. Exactly one of `at`, `every_s` and `cron` is set."""

    id = models.BigAutoField(primary_key=True)
    zone = Reference(Zone)
    client = Reference(Client)
    registration = Reference(
        Registration, null=True, db_comment="the registration that it ends with; null: none"
    )
    stream = Reference(Stream)
    handle = TextField(
        null=True,
        db_comment="its name, unique among the timers of its registration, or of its client"
        " without one; null: a delayed event",
    )
    token = BinaryField(
        null=True, db_comment="a digest of the owner and the id of a delayed event; null: none"
    )
    at = DateTimeField(null=True, db_comment="the time at which it fires once")
    every_s = IntegerField(null=True, db_comment="the interval of a repeating timer, in seconds")
    start = DateTimeField(null=True, db_comment="a repeating timer does not fire before")
    end = DateTimeField(null=True, db_comment="nor after; null: it never ends")
    cron = TextField(null=True, db_comment="the cron expression of a repeating timer")
    timezone = TextField(null=True, db_comment="the time zone of the cron expression")
    payload = BinaryField(
        null=True, db_comment="the stored bytes of the event to emit; null: Time::Tick"
    )
    suspended = BooleanField(db_default=False, db_comment="while true, it does not fire")
    next_at = DateTimeField(db_comment="the time for which it fires next")
    due_at = DateTimeField(
        null=True,
        db_comment="when it fires: next_at, or later while its stream accepts no events; null:"
        " suspended",
    )
    fired = BigIntegerField(db_default=0, db_comment="how often it has fired")
    fired_at = DateTimeField(null=True, db_comment="when it fired last")
    created_at = DateTimeField()

    class Meta:
        db_table = "timers"
        db_table_comment = "timers and delayed events"
        constraints = (
            UniqueConstraint(
                fields=["registration", "handle"],
                condition=Q(registration__isnull=False),
                name="timers_by_registration",
            ),
            UniqueConstraint(
                fields=["client", "handle"],
                condition=Q(registration__isnull=True),
                name="timers_by_client",
            ),
            UniqueConstraint(
                fields=["stream", "token"],
                condition=Q(token__isnull=False),
                name="timers_by_token",
            ),
            CheckConstraint(
                condition=Q(handle__isnull=False)
                | Q(at__isnull=False, payload__isnull=False, registration__isnull=True),
                name="timers_handle",
            ),
            CheckConstraint(
                condition=Q(at__isnull=False, every_s__isnull=True, cron__isnull=True)
                | Q(at__isnull=True, every_s__isnull=False, cron__isnull=True)
                | Q(at__isnull=True, every_s__isnull=True, cron__isnull=False),
                name="timers_schedule",
            ),
        )
        indexes = (
            Index(
                fields=["due_at", "id"], condition=Q(due_at__isnull=False), name="timers_in_order"
            ),
            Index(fields=["zone", "id"], name="timers_listed"),
            Index(
                fields=["zone", "id"], condition=Q(handle__isnull=False), name="timers_with_handle"
            ),
            Index(fields=["client", "id"], name="timers_of_client"),
            Index(fields=["stream"], name="timers_of_stream"),
        )

    def __str__(self) -> str:
        return self.handle or str(self.pk)


class TimerCount(models.Model):
    """How many timers a client has. A transaction updates it after the rows of timers."""

    client = OneToOneField(Client, models.DO_NOTHING, primary_key=True, db_constraint=False)
    zone = Reference(Zone)
    timers = IntegerField()

    class Meta:
        db_table = "timer_counts"
        db_table_comment = "numbers of timers of clients"
        indexes = (Index(fields=["zone"], name="timer_counts_of_zone"),)

    def __str__(self) -> str:
        return f"{self.client_id}: {self.timers}"
