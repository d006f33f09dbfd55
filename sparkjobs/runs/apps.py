"""The Django app of jobs; SQL statements write its table. Django module."""

from django.apps import AppConfig


class JobsConfig(AppConfig):
    name = "sparkjobs.runs"
    label = "jobs"
    verbose_name = "Jobs"
