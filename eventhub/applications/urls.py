"""Routes of applications, below /v1/applications. Django module."""

from django.urls import path

from eventhub.api.resource import DELETE, LIST, PUT
from eventhub.applications import api
from eventhub.types import converters  # noqa: F401 - registers the converter `name`

urlpatterns = [
    path("", api.Applications.as_view(LIST)),
    path("/<name:application>", api.Applications.as_view({**PUT, **DELETE})),
    path("/<name:application>/heartbeat", api.Heartbeat.as_view({"post": "create"})),
    path(
        "/<name:application>/monitor",
        api.Monitoring.as_view({"put": "update", **DELETE}),
    ),
]
