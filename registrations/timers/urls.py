"""Routes of timers, below /v1/timers. Django module."""

from django.urls import path

from eventhub.api.resource import CHANGE_AND_DELETE, LIST_AND_CREATE
from registrations.timers import api

urlpatterns = [
    path("", api.Timers.as_view(LIST_AND_CREATE)),
    path("/<str:timer>", api.Timers.as_view(CHANGE_AND_DELETE)),
]
