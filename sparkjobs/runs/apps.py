"""Jobs as a Django app; its table is written by SQL. Django module."""

from django.apps import AppConfig


class JobsConfig(AppConfig):
    name = "sparkjobs.runs"
    label = "jobs"
    verbose_name = "Jobs"
