"""The table of the definitions of event types."""

import django.contrib.postgres.functions
import django.db.models.deletion
from django.db import migrations, models


class Migration(migrations.Migration):
    initial = True
    release = "0.1"

    dependencies = [
        ("access", "0001_initial"),
    ]

    operations = [
        migrations.CreateModel(
            name="EventType",
            fields=[
                ("id", models.BigAutoField(primary_key=True, serialize=False)),
                (
                    "zone",
                    models.ForeignKey(
                        db_constraint=False,
                        db_index=False,
                        on_delete=django.db.models.deletion.DO_NOTHING,
                        to="access.zone",
                    ),
                ),
                ("domain", models.TextField()),
                ("type", models.TextField()),
                ("version", models.IntegerField()),
                (
                    "parent",
                    models.TextField(
                        db_comment="a type of the same domain, equal in all versions of this one; events also satisfy its newest version",
                        null=True,
                    ),
                ),
                (
                    "evolution",
                    models.TextField(choices=[("backward", "Backward"), ("none", "None")]),
                ),
                ("schema", models.TextField(db_comment="JSON Schema of the attributes")),
                (
                    "header",
                    models.TextField(
                        db_comment="JSON Schema of the optional header; null: none", null=True
                    ),
                ),
                (
                    "declared_at",
                    models.DateTimeField(
                        db_default=django.contrib.postgres.functions.TransactionNow()
                    ),
                ),
                (
                    "deletes_at",
                    models.DateTimeField(
                        db_comment="the end of the grace period of the type's deletion, in all its versions",
                        null=True,
                    ),
                ),
                (
                    "deleted_at",
                    models.DateTimeField(
                        db_comment="when that ended: new events of the type are undeclared",
                        null=True,
                    ),
                ),
            ],
            options={
                "db_table": "event_types",
                "db_table_comment": "versions of event types",
                "indexes": [
                    models.Index(
                        condition=models.Q(("version", 1)),
                        fields=["zone", "id"],
                        name="event_types_first",
                    )
                ],
                "constraints": [
                    models.UniqueConstraint(
                        fields=("zone", "domain", "type", "version"), name="event_types_by_version"
                    ),
                    models.CheckConstraint(
                        condition=models.Q(("version__gt", 0)), name="event_types_version"
                    ),
                    models.CheckConstraint(
                        condition=models.Q(("evolution__in", ["backward", "none"])),
                        name="event_types_evolution",
                    ),
                ],
            },
        ),
    ]
