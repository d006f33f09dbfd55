"""Routes of connectors, below /v1/connectors. Django module."""

from django.urls import path

from eventhub.api.resource import CHANGE_AND_DELETE, LIST_AND_CREATE
from registrations.connectors import api

urlpatterns = [
    path("", api.Connectors.as_view(LIST_AND_CREATE)),
    path("/<str:connector>", api.Connectors.as_view(CHANGE_AND_DELETE)),
    path("/<str:connector>/test", api.ConnectorTests.as_view({"post": "create"})),
]
