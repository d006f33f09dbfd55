"""Routes of the jobs, below /v1/jobs."""

from django.urls import path

from eventhub.jobs import api
from eventhub.jobs.retention.api import Apply

urlpatterns = [
    path("", api.Jobs.as_view()),
    path("/retention/runs/<str:run>/apply", Apply.as_view()),
    path("/<str:job>/runs", api.Runs.as_view()),
    path("/<str:job>/runs/<str:run>", api.OneRun.as_view()),
    path("/<str:job>/runs/<str:run>/cancel", api.Cancel.as_view()),
    path("/<str:job>/runs/<str:run>/log", api.Log.as_view()),
    path("/<str:job>/runs/<str:run>/files/<path:path>", api.ResultFile.as_view()),
]
