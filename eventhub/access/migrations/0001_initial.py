"""The tables of zones, clients, keys, channels and login attempts, and the zone `default`."""

import django.db.models.deletion
from django.apps.registry import Apps
from django.db import migrations, models
from django.db.backends.base.schema import BaseDatabaseSchemaEditor


def make_default_zone(apps: Apps, _schema: BaseDatabaseSchemaEditor) -> None:
    apps.get_model("access", "Zone").objects.get_or_create(name="default")


class Migration(migrations.Migration):
    initial = True
    release = "0.1"

    dependencies = [
        ("sessions", "0001_initial"),
    ]

    operations = [
        migrations.CreateModel(
            name="Zone",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("name", models.CharField(max_length=200, unique=True)),
                ("deletes_at", models.DateTimeField(null=True)),
                ("deleted_at", models.DateTimeField(null=True)),
                ("erased_at", models.DateTimeField(null=True)),
            ],
            options={
                "db_table": "zones",
            },
        ),
        migrations.CreateModel(
            name="LoginAttempts",
            fields=[
                ("subject", models.CharField(max_length=300, primary_key=True, serialize=False)),
                ("started_at", models.DateTimeField(db_index=True)),
                ("attempts", models.IntegerField()),
            ],
            options={
                "verbose_name": "login attempts",
                "verbose_name_plural": "login attempts",
                "db_table": "login_attempts",
            },
        ),
        migrations.CreateModel(
            name="Client",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                (
                    "zone",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT, to="access.zone"
                    ),
                ),
                ("name", models.CharField(max_length=200)),
                (
                    "groups",
                    models.JSONField(db_default=models.Value([], models.JSONField()), default=list),
                ),
                ("created_at", models.DateTimeField(auto_now_add=True)),
                ("deleted_at", models.DateTimeField(null=True)),
            ],
            options={
                "db_table": "clients",
                "constraints": [
                    models.UniqueConstraint(
                        condition=models.Q(("deleted_at__isnull", True)),
                        fields=("zone", "name"),
                        name="clients_by_name",
                    )
                ],
            },
        ),
        migrations.CreateModel(
            name="Channel",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                (
                    "zone",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT, to="access.zone"
                    ),
                ),
                ("name", models.CharField(max_length=200)),
                ("bit", models.SmallIntegerField()),
                ("deletes_at", models.DateTimeField(null=True)),
                ("deleted_at", models.DateTimeField(null=True)),
            ],
            options={
                "db_table": "channels",
                "constraints": [
                    models.UniqueConstraint(fields=("zone", "name"), name="channels_by_name"),
                    models.UniqueConstraint(fields=("zone", "bit"), name="channels_by_bit"),
                    models.CheckConstraint(
                        condition=models.Q(("bit__gte", 0), ("bit__lte", 62)),
                        name="channels_bit_range",
                    ),
                ],
            },
        ),
        migrations.CreateModel(
            name="ApiKey",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                (
                    "client",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT, to="access.client"
                    ),
                ),
                ("public_id", models.CharField(max_length=12, unique=True)),
                ("digest", models.BinaryField(unique=True)),
                ("label", models.CharField(blank=True, max_length=200)),
                ("grants", models.JSONField(default=list)),
                ("created_at", models.DateTimeField(auto_now_add=True)),
                ("expires_at", models.DateTimeField(null=True)),
                ("revoked_at", models.DateTimeField(null=True)),
            ],
            options={
                "verbose_name": "API key",
                "db_table": "api_keys",
            },
        ),
        migrations.RunPython(make_default_zone, migrations.RunPython.noop),
        # a connection token of an operator finds the login that it stands for
        migrations.RunSQL(
            "CREATE INDEX operator_sessions ON django_session (sha256(session_key::bytea))",
            "DROP INDEX operator_sessions",
        ),
    ]
