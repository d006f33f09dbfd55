"""The tables of the hub's processes, and of its connected clients as they were announced.
Django module.
"""

from django.db import models
from django.db.models import (
    BigIntegerField,
    CompositePrimaryKey,
    DateTimeField,
    IntegerField,
    JSONField,
    TextField,
    UUIDField,
)

from eventhub.postgresql.tables import TableStorage


class Member(models.Model):
    """A process of the hub, from its first heartbeat until the announcement that it left."""

    class Kind(models.TextChoices):
        WEB = "web"
        FORWARDER = "forwarder"
        WORKER = "worker"

    id = UUIDField(primary_key=True, db_comment="a new one at each start of a process")
    kind = TextField(choices=Kind)
    node = TextField(db_comment="the name of its host")
    pid = IntegerField(db_comment="its process id on the host")
    version = TextField(db_comment="its release")
    started_at = DateTimeField()
    last_seen_at = DateTimeField(db_comment="its last heartbeat")
    joined_at = DateTimeField(null=True, db_comment="when its event was appended; null: not yet")
    left_at = DateTimeField(null=True, db_comment="when it ended by itself")
    settings = JSONField(
        null=True,
        db_comment="digests of the settings that all machines share; null: of an earlier release",
    )

    storage = TableStorage(parameters={"fillfactor": 50})

    class Meta:
        db_table = "members"
        db_table_comment = "processes of the hub, with their heartbeats"

    def __str__(self) -> str:
        return f"{self.kind} {self.node} {self.pid}"


class ClientPresence(models.Model):
    """A client that was announced as connected."""

    pk = CompositePrimaryKey("zone_id", "client_id")
    zone_id = BigIntegerField()
    client_id = BigIntegerField()
    client = TextField(db_comment="its name")
    since = DateTimeField(db_comment="when its first socket was noticed")
    absent_since = DateTimeField(
        null=True, db_comment="since when it has no socket; null: it has one"
    )

    class Meta:
        db_table = "client_presences"
        db_table_comment = "connected clients of zones with presence, as they were announced"

    def __str__(self) -> str:
        return self.client
