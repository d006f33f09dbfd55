"""Routes of checks and explanations, below /v1/filters. Django module."""

from django.urls import path

from registrations.explain import api

urlpatterns = [
    path("/check", api.Check.as_view({"post": "create"})),
    path("/explain", api.Explain.as_view({"post": "create"})),
]
