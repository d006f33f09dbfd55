"""The states of deliveries are validated, without blocking writes."""

from django.contrib.postgres.operations import ValidateConstraint
from django.db import migrations


class Migration(migrations.Migration):
    release = "0.1"

    dependencies = [("delivery", "0002_resend")]

    operations = [ValidateConstraint("delivery", "deliveries_state")]
