"""Routes of the groups of registrations, below /v1/registration-groups."""

from django.urls import path

from registrations.groups import api

urlpatterns = [
    path("", api.Groups.as_view()),
    path("/<str:group>", api.OneGroup.as_view()),
]
