"""Routes of the endpoints, below /v1/endpoints."""

from django.urls import path

from eventhub.access.resource import CHANGE_AND_DELETE, LIST_AND_CREATE
from registrations.endpoints.api import Endpoints

urlpatterns = [
    path("", Endpoints.as_view(LIST_AND_CREATE)),
    path("/<str:endpoint>", Endpoints.as_view(CHANGE_AND_DELETE)),
]
