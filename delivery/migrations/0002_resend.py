"""Deliveries that are requested again, or discarded by request."""

from django.contrib.postgres.operations import AddConstraintNotValid
from django.db import migrations
from django.db.migrations import AddField, AlterField, RemoveConstraint, RunSQL
from django.db.models import (
    BooleanField,
    CheckConstraint,
    DateTimeField,
    IntegerField,
    Q,
    TextField,
)

_BEFORE = ["pending", "delivered", "dead_lettered", "cancelled", "dropped", "expired"]


class Migration(migrations.Migration):
    release = "0.1"

    dependencies = [("delivery", "0001_initial")]

    operations = [
        AddField(
            "delivery",
            "last_outcome",
            TextField(
                null=True, db_comment="outcome of the last attempt if it failed, as in attempts"
            ),
        ),
        AddField(
            "delivery",
            "last_status",
            IntegerField(null=True, db_comment="status of the last response, if any"),
        ),
        AddField(
            "delivery",
            "resent_at",
            DateTimeField(
                null=True,
                db_comment="when it was last requested again; its backlog age starts then",
            ),
        ),
        AddField(
            "delivery",
            "message_number",
            IntegerField(null=True, db_comment="2, 3, ... in its webhook-id; null: the first id"),
        ),
        AddField(
            "delivery",
            "forced",
            BooleanField(db_default=False, db_comment="it is posted even if its event has expired"),
        ),
        AlterField(
            "delivery",
            "state",
            TextField(
                choices=[
                    *((state, state.replace("_", " ").title()) for state in _BEFORE),
                    ("discarded", "Discarded"),
                ],
                db_default="pending",
            ),
        ),
        AlterField(
            "delivery",
            "uncounted_attempts",
            IntegerField(
                db_default=0,
                db_comment="attempts that do not count: the endpoint as a whole was failing, or"
                " they were before the delivery was requested again",
            ),
        ),
        RemoveConstraint("delivery", "deliveries_state"),
        RunSQL("", "UPDATE deliveries SET state = 'cancelled' WHERE state = 'discarded'"),
        # rows that the narrower constraint allowed need no check
        AddConstraintNotValid(
            "delivery",
            CheckConstraint(
                condition=Q(state__in=[*_BEFORE, "discarded"]), name="deliveries_state"
            ),
        ),
    ]
