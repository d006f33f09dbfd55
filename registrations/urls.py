"""Routes of the registrations, below /v1/registrations."""

from django.urls import path

from registrations import api
from registrations.understand.api import ExplainRegistration

urlpatterns = [
    path("", api.Registrations.as_view()),
    path("/<str:registration>", api.OneRegistration.as_view()),
    path("/<str:registration>/explain", ExplainRegistration.as_view()),
]
