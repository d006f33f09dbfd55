"""The tables of connectors, through which the hub itself reads other systems. Django module."""

from django.contrib.postgres.functions import TransactionNow
from django.db import models
from django.db.models import (
    BigIntegerField,
    BinaryField,
    BooleanField,
    DateTimeField,
    Index,
    IntegerField,
    JSONField,
    OneToOneField,
    TextField,
    UniqueConstraint,
)

from eventhub.access.models import Client, Zone
from eventhub.eventlog.models import Stream
from eventhub.postgresql.tables import Reference


class Connector(models.Model):
    """A connector of a client: rows or messages of another system become events of a stream."""

    id = models.BigAutoField(primary_key=True)
    zone = Reference(Zone)
    client = Reference(Client)
    stream = Reference(Stream)
    name = TextField(db_comment="unique among the connectors of its client; the node of its events")
    kind = TextField(db_comment="what it reads, and how")
    settings = JSONField(db_comment="the settings of its kind")
    mapping = JSONField(db_comment="where the fields of the event come from")
    on_refusal = TextField(db_comment="`stop` or `set_aside`: what a row does that is no event")
    enabled = BooleanField(db_default=True, db_comment="while it is false, nothing is read")
    address = TextField(db_comment="host, port and database of its URL, without credentials")
    sealed = BinaryField(db_comment="its URL, encrypted under EVENTHUB_SECRET_KEY")
    created_at = DateTimeField(db_default=TransactionNow())
    changed_at = DateTimeField(db_default=TransactionNow())

    class Meta:
        db_table = "connectors"
        db_table_comment = "connectors: what the hub reads from other systems"
        constraints = (UniqueConstraint(fields=["client", "name"], name="connectors_by_name"),)
        indexes = (
            Index(fields=["zone", "id"], name="connectors_listed"),
            Index(fields=["stream"], name="connectors_of_stream"),
        )

    def __str__(self) -> str:
        return self.name


class ConnectorState(models.Model):
    """How far a connector has read, and how it is; apart from it, because each batch changes it.
    `position`, `rows` and `refused` change in the transaction that appends the events.
    """

    connector = OneToOneField(Connector, models.DO_NOTHING, primary_key=True, db_constraint=False)
    position = TextField(db_default="", db_comment="of the last row, in its kind's form; '': none")
    rows = BigIntegerField(db_default=0, db_comment="rows that were read")
    refused = BigIntegerField(db_default=0, db_comment="those that were set aside")
    row_at = DateTimeField(null=True, db_comment="when rows were read last")
    state = TextField(db_default="starting", db_comment="`running`, `retrying` or `stopped`")
    error = TextField(db_default="", db_comment="the code of what holds it up; '': nothing")
    detail = TextField(db_default="", db_comment="the same in words")
    error_at = DateTimeField(null=True, db_comment="since when")
    lag = IntegerField(null=True, db_comment="rows to be read, counted up to a bound")
    caught_up_at = DateTimeField(null=True, db_comment="when there was no row to be read")
    seen_at = DateTimeField(null=True, db_comment="when a process ran it last")

    class Meta:
        db_table = "connector_states"
        db_table_comment = "positions and states of connectors"

    def __str__(self) -> str:
        return f"{self.connector_id}: {self.state}"
