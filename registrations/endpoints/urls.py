"""Routes of the endpoints, below /v1/endpoints."""

from django.urls import path

from registrations.endpoints import api

urlpatterns = [
    path("", api.Endpoints.as_view()),
    path("/<str:endpoint>", api.OneEndpoint.as_view()),
]
