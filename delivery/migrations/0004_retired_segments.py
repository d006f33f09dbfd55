"""Of which segments a partition of deliveries held rows when it left."""

from django.db import migrations


class Migration(migrations.Migration):
    dependencies = (("delivery", "0003_retired_partitions"),)
    operations = (
        migrations.RunSQL(
            "ALTER TABLE retired_partitions ADD COLUMN segments int8multirange",
            "ALTER TABLE retired_partitions DROP COLUMN segments",
        ),
    )
