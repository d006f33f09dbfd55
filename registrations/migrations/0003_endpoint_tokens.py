"""Access tokens of endpoints that authenticate with OAuth 2.0."""

from django.db import migrations
from django.db.migrations import CreateModel
from django.db.models import (
    DO_NOTHING,
    BinaryField,
    DateTimeField,
    OneToOneField,
    TextField,
    UUIDField,
)

from eventhub.postgresql.tables import Reference


class Migration(migrations.Migration):
    release = "0.1"

    dependencies = [("registrations", "0002_endpoint_secrets")]

    operations = [
        CreateModel(
            name="EndpointToken",
            fields=[
                (
                    "endpoint",
                    OneToOneField(
                        db_constraint=False,
                        on_delete=DO_NOTHING,
                        primary_key=True,
                        related_name="token",
                        serialize=False,
                        to="registrations.endpoint",
                    ),
                ),
                (
                    "secret",
                    Reference(
                        db_comment="the authentication that it was requested with",
                        related_name="+",
                        to="registrations.endpointsecret",
                    ),
                ),
                (
                    "sealed",
                    BinaryField(
                        db_comment="encrypted under a key derived from the hub's secret key",
                        null=True,
                    ),
                ),
                ("obtained_at", DateTimeField(null=True)),
                ("expires_at", DateTimeField(null=True)),
                (
                    "claim",
                    UUIDField(db_comment="of the worker that requests the next token", null=True),
                ),
                (
                    "claimed_until",
                    DateTimeField(
                        db_comment="until then no other worker requests one: during a request and after a failure",
                        null=True,
                    ),
                ),
                (
                    "error",
                    TextField(db_comment="why the last request for a token failed", null=True),
                ),
            ],
            options={
                "db_table": "endpoint_tokens",
                "db_table_comment": "access tokens of endpoints (OAuth 2.0)",
            },
        ),
    ]
