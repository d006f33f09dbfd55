"""Routes of the registrations, below /v1/registrations. Django module."""

from django.urls import path

from eventhub.api.json import StrictJSONParser
from eventhub.api.resource import CHANGE_AND_DELETE, LIST_AND_CREATE, ONE
from registrations.api import Registrations
from registrations.explain.api import ExplainRegistration

one = Registrations.as_view(CHANGE_AND_DELETE, parser_classes=(StrictJSONParser,))
urlpatterns = [
    path("", Registrations.as_view(LIST_AND_CREATE)),
    path("/<str:registration>", one),
    path("/<str:registration>/explain", ExplainRegistration.as_view(ONE)),
]
