"""The tables of zones, clients, keys, channels and login attempts, and the zone `default`."""

from typing import ClassVar

import django.db.models.deletion
from django.apps.registry import Apps
from django.db import migrations, models
from django.db.backends.base.schema import BaseDatabaseSchemaEditor
from django.db.migrations.operations.base import Operation


def make_default_zone(apps: Apps, _schema: BaseDatabaseSchemaEditor) -> None:
    apps.get_model("access", "Zone").objects.get_or_create(name="default")


def _id() -> tuple[str, models.Field]:
    key = models.BigAutoField(
        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
    )
    return ("id", key)


def _of(model: str) -> models.ForeignKey:
    return models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, to=model)


ZONES = migrations.CreateModel(
    name="Zone",
    fields=[_id(), ("name", models.CharField(max_length=200, unique=True))],
    options={"db_table": "zones"},
)
CLIENTS = migrations.CreateModel(
    name="Client",
    fields=[
        _id(),
        ("zone", _of("access.zone")),
        ("name", models.CharField(max_length=200)),
        (
            "groups",
            models.JSONField(default=list, db_default=models.Value([], models.JSONField())),
        ),
        ("created_at", models.DateTimeField(auto_now_add=True)),
        ("deleted_at", models.DateTimeField(null=True)),
    ],
    options={
        "db_table": "clients",
        "constraints": (
            models.UniqueConstraint(
                fields=["zone", "name"],
                condition=models.Q(deleted_at__isnull=True),
                name="clients_by_name",
            ),
        ),
    },
)
KEYS = migrations.CreateModel(
    name="ApiKey",
    fields=[
        _id(),
        ("client", _of("access.client")),
        ("public_id", models.CharField(max_length=12, unique=True)),
        ("digest", models.BinaryField(unique=True)),
        ("label", models.CharField(blank=True, max_length=200)),
        ("grants", models.JSONField(default=list)),
        ("created_at", models.DateTimeField(auto_now_add=True)),
        ("expires_at", models.DateTimeField(null=True)),
        ("revoked_at", models.DateTimeField(null=True)),
    ],
    options={"db_table": "api_keys"},
)
CHANNELS = migrations.CreateModel(
    name="Channel",
    fields=[
        _id(),
        ("zone", _of("access.zone")),
        ("name", models.CharField(max_length=200)),
        ("bit", models.SmallIntegerField()),
    ],
    options={
        "db_table": "channels",
        "constraints": (
            models.UniqueConstraint(fields=["zone", "name"], name="channels_by_name"),
            models.UniqueConstraint(fields=["zone", "bit"], name="channels_by_bit"),
            models.CheckConstraint(
                condition=models.Q(bit__gte=0, bit__lte=62), name="channels_bit_range"
            ),
        ),
    },
)
LOGIN_ATTEMPTS = migrations.CreateModel(
    name="LoginAttempts",
    fields=[
        ("subject", models.CharField(max_length=300, primary_key=True, serialize=False)),
        ("started_at", models.DateTimeField(db_index=True)),
        ("attempts", models.IntegerField()),
    ],
    options={"db_table": "login_attempts"},
)


class Migration(migrations.Migration):
    initial = True
    dependencies: ClassVar[list[tuple[str, str]]] = []
    operations: ClassVar[list[Operation]] = [
        ZONES,
        CLIENTS,
        KEYS,
        CHANNELS,
        LOGIN_ATTEMPTS,
        migrations.RunPython(make_default_zone, migrations.RunPython.noop),
    ]
