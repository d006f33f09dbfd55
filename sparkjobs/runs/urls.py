"""Routes of the jobs, below /v1/jobs. Django module."""

from django.urls import path

from eventhub.api.resource import LIST_AND_CREATE, ONE
from sparkjobs.runs import api

urlpatterns = [
    path("", api.AllJobs.as_view(ONE)),
    path("/retention/runs/<str:run>/apply", api.Apply.as_view({"post": "create"})),
    path("/<str:job>/runs", api.Runs.as_view(LIST_AND_CREATE)),
    path("/<str:job>/runs/<str:run>", api.Runs.as_view(ONE)),
    path("/<str:job>/runs/<str:run>/cancel", api.Cancel.as_view({"post": "create"})),
    path("/<str:job>/runs/<str:run>/log", api.Log.as_view(ONE)),
    path("/<str:job>/runs/<str:run>/files/<path:path>", api.ResultFile.as_view(ONE)),
]
