"""The index of ordered deliveries by stream, which the previous release reads."""

from django.db import migrations


class Migration(migrations.Migration):
    release = "0.1"
    half = "post"

    dependencies = [("delivery", "0005_lanes")]

    operations = [
        migrations.RemoveIndex(model_name="delivery", name="deliveries_ordered"),
    ]
