"""Routes of the groups of registrations, below /v1/registration-groups."""

from django.urls import path

from eventhub.access.resource import CHANGE_AND_DELETE, LIST_AND_CREATE
from registrations.groups.api import Groups

urlpatterns = [
    path("", Groups.as_view(LIST_AND_CREATE)),
    path("/<str:group>", Groups.as_view(CHANGE_AND_DELETE)),
]
