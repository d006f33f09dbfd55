"""Routes of what explains filters, below /v1/filters."""

from django.urls import path

from registrations.understand import api

urlpatterns = [
    path("/check", api.Check.as_view({"post": "create"})),
    path("/explain", api.Explain.as_view({"post": "create"})),
]
