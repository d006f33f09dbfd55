"""Secrets of endpoints in a table of their own, several of each endpoint."""

from django.contrib.postgres.functions import TransactionNow
from django.db import migrations
from django.db.migrations import AddField, AlterField, CreateModel, RunSQL
from django.db.models import (
    DO_NOTHING,
    BigAutoField,
    BinaryField,
    CheckConstraint,
    DateTimeField,
    ForeignKey,
    Index,
    Q,
    TextField,
    UniqueConstraint,
)

CURRENT_SECRETS = """
INSERT INTO endpoint_secrets (endpoint_id, kind, sealed, created_at)
SELECT id, 'v1', secret, created_at FROM endpoints WHERE deleted_at IS NULL
"""


class Migration(migrations.Migration):
    release = "0.1"

    dependencies = [("registrations", "0001_initial")]

    operations = [
        AlterField(
            model_name="endpoint",
            name="secret",
            field=BinaryField(
                db_comment="the current secret in endpoint_secrets, for processes of release 0.1 or older"
            ),
        ),
        AddField(
            model_name="endpoint",
            name="signature",
            field=TextField(
                choices=[("v1", "V1"), ("v1a", "V1A"), ("both", "Both")],
                db_comment="signatures of the callbacks: v1 (HMAC-SHA256), v1a (Ed25519) or both",
                db_default="v1",
            ),
        ),
        CreateModel(
            name="EndpointSecret",
            fields=[
                ("id", BigAutoField(primary_key=True, serialize=False)),
                (
                    "endpoint",
                    ForeignKey(
                        db_index=False,
                        on_delete=DO_NOTHING,
                        related_name="secrets",
                        to="registrations.endpoint",
                    ),
                ),
                (
                    "kind",
                    TextField(
                        choices=[
                            ("v1", "V1"),
                            ("v1a", "V1A"),
                            ("headers", "Headers"),
                            ("authentication", "Authentication"),
                            ("tls", "Tls"),
                        ],
                        db_comment="what it is for: signatures v1 or v1a, or a kind of credentials",
                    ),
                ),
                (
                    "sealed",
                    BinaryField(
                        db_comment="encrypted under a key derived from the hub's secret key"
                    ),
                ),
                (
                    "public",
                    TextField(
                        db_comment="what may be shown: the public key of v1a, or JSON about credentials",
                        null=True,
                    ),
                ),
                ("created_at", DateTimeField(db_default=TransactionNow())),
                (
                    "expires_at",
                    DateTimeField(db_comment="null: it is the current one of its kind", null=True),
                ),
            ],
            options={
                "db_table": "endpoint_secrets",
                "db_table_comment": "secrets of endpoints",
                "indexes": [
                    Index(fields=["endpoint"], name="endpoint_secrets_by_endpoint"),
                    Index(
                        condition=Q(("expires_at__isnull", False)),
                        fields=["expires_at"],
                        name="endpoint_secrets_by_expiry",
                    ),
                ],
                "constraints": [
                    CheckConstraint(
                        condition=Q(
                            ("kind__in", ["v1", "v1a", "headers", "authentication", "tls"])
                        ),
                        name="endpoint_secrets_kind",
                    ),
                    UniqueConstraint(
                        condition=Q(("expires_at__isnull", True)),
                        fields=("endpoint", "kind"),
                        name="endpoint_secrets_current",
                    ),
                ],
            },
        ),
        RunSQL(CURRENT_SECRETS, RunSQL.noop),
    ]
