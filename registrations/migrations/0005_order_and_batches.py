"""The order of an endpoint's deliveries by key, and batches."""

from django.db import migrations, models


class Migration(migrations.Migration):
    release = "0.1"

    dependencies = [
        ("access", "0001_initial"),
        ("registrations", "0004_endpoint_handshake"),
    ]

    operations = [
        migrations.AddField(
            model_name="endpoint",
            name="batch_bytes_max",
            field=models.IntegerField(
                db_comment="bytes of the body of a batch at most", db_default=1048576
            ),
        ),
        migrations.AddField(
            model_name="endpoint",
            name="batch_events_max",
            field=models.IntegerField(
                db_comment="events in one request at most; null: one event, not as a batch",
                null=True,
            ),
        ),
        migrations.AddField(
            model_name="endpoint",
            name="batch_linger_ms",
            field=models.IntegerField(
                db_comment="how long an event waits for others of its batch at most", db_default=0
            ),
        ),
        migrations.AddField(
            model_name="endpoint",
            name="order_by",
            field=models.TextField(
                db_comment="path of the key by whose value events are ordered; empty: the whole stream",
                db_default="",
            ),
        ),
        migrations.AlterField(
            model_name="endpoint",
            name="ordered",
            field=models.BooleanField(
                db_comment="deliver one event of a stream, or of a key, at a time, in the stream's order",
                db_default=False,
            ),
        ),
        migrations.AddIndex(
            model_name="endpoint",
            index=models.Index(
                condition=models.Q(("ordered", True), models.Q(("order_by", ""), _negated=True)),
                fields=["id"],
                name="endpoints_by_key",
            ),
        ),
    ]
