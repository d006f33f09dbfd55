"""Routes of patterns, below /v1/patterns. Django module."""

from django.urls import path

from eventhub.api.json import StrictJSONParser
from eventhub.api.resource import CHANGE_AND_DELETE, LIST_AND_CREATE
from registrations.pattern_groups import api

one = api.Patterns.as_view(CHANGE_AND_DELETE, parser_classes=(StrictJSONParser,))
urlpatterns = [
    path("", api.Patterns.as_view(LIST_AND_CREATE)),
    path("/<str:pattern>", one),
]
