"""The routes of jobs, below /v1/jobs. Django module."""

from django.urls import path

from eventhub.api.resource import LIST_AND_CREATE, ONE
from sparkjobs.runs import api

urlpatterns = [
    path("", api.JobList.as_view(ONE)),
    path("/retention/runs/<str:run>/apply", api.PlanApplication.as_view({"post": "create"})),
    path("/<str:job>/runs", api.JobRuns.as_view(LIST_AND_CREATE)),
    path("/<str:job>/runs/<str:run>", api.JobRuns.as_view(ONE)),
    path("/<str:job>/runs/<str:run>/cancel", api.RunCancellation.as_view({"post": "create"})),
    path("/<str:job>/runs/<str:run>/log", api.RunLog.as_view(ONE)),
    path("/<str:job>/runs/<str:run>/files/<path:path>", api.ResultFile.as_view(ONE)),
]
