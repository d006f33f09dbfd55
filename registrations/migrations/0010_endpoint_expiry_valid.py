"""The constraints of 0009 are valid."""

from django.contrib.postgres.operations import ValidateConstraint
from django.db import migrations


class Migration(migrations.Migration):
    release = "0.1.0"

    dependencies = [("registrations", "0009_endpoint_expiry")]

    operations = [
        ValidateConstraint(model_name="endpoint", name="endpoints_format"),
        ValidateConstraint(model_name="endpoint", name="endpoints_handshake"),
    ]
