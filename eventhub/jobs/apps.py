"""Jobs as a Django app; its table is written by SQL."""

from django.apps import AppConfig


class JobsConfig(AppConfig):
    name = "eventhub.jobs"
    label = "jobs"
    verbose_name = "Jobs"
