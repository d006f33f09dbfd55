"""The admin pages of job runs. Django module."""

from django.contrib import admin

from eventhub.api.back_office import ReadOnly
from sparkjobs.runs.models import JobRun


@admin.register(JobRun)
class JobRunAdmin(ReadOnly):
    list_display = (
        "id",
        "job",
        "state",
        "requested_by",
        "requested_at",
        "ended_at",
        "verdict",
        "reason",
    )
    list_filter = ("job", "state", "verdict", "requested_at")
    search_fields = ("requested_by", "reason")
