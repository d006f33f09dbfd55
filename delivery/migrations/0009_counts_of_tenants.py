"""The sockets and the backlogs of clients, counted for their quotas."""

from pathlib import Path

from django.db import migrations
from django.db.migrations import RunSQL
from django.db.models import (
    BigIntegerField,
    CompositePrimaryKey,
    DateTimeField,
    IntegerField,
    UUIDField,
)

from eventhub.postgresql.tables import CreateTable

FUNCTIONS = Path(__file__).parent.parent / "sql" / "functions"


class Migration(migrations.Migration):
    release = "0.1"

    dependencies = [("delivery", "0008_without_backoffs"), ("access", "0003_more_quotas")]

    operations = [
        CreateTable(
            name="WebProcess",
            fields=[
                ("id", UUIDField(primary_key=True, serialize=False)),
                ("last_seen_at", DateTimeField()),
            ],
            options={
                "db_table": "web_processes",
                "db_table_comment": "web processes with sockets",
                "verbose_name_plural": "web processes",
            },
            storage={"parameters": {"fillfactor": 60}, "unlogged": True},
        ),
        CreateTable(
            name="SocketCount",
            fields=[
                (
                    "pk",
                    CompositePrimaryKey(
                        "zone_id",
                        "client_id",
                        "process_id",
                        blank=True,
                        editable=False,
                        primary_key=True,
                        serialize=False,
                    ),
                ),
                ("zone_id", BigIntegerField()),
                ("client_id", BigIntegerField()),
                ("process_id", UUIDField(db_comment="the web process")),
                ("sockets", IntegerField()),
            ],
            options={
                "db_table": "socket_counts",
                "db_table_comment": "sockets by client and web process",
            },
            storage={"parameters": {"fillfactor": 60}, "unlogged": True},
        ),
        CreateTable(
            name="BacklogCount",
            fields=[
                ("client_id", BigIntegerField(primary_key=True, serialize=False)),
                ("zone_id", BigIntegerField()),
                ("events", BigIntegerField()),
                (
                    "bytes",
                    BigIntegerField(db_comment="of the deliveries, their events included"),
                ),
            ],
            options={
                "db_table": "backlog_counts",
                "db_table_comment": "pending deliveries by client, counted about once a second",
            },
            storage={"parameters": {"fillfactor": 60}, "unlogged": True},
        ),
        RunSQL(
            (FUNCTIONS / "sockets.v1.sql").read_text(),
            "DROP FUNCTION take_socket(bigint, bigint, uuid, integer, double precision)",
        ),
    ]
