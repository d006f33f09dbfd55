"""Jobs as a Django app; it has no models, its table is plain SQL."""

from django.apps import AppConfig


class JobsConfig(AppConfig):
    name = "eventhub.jobs"
    label = "jobs"
