"""Routes of patterns, below /v1/patterns. Django module."""

from django.urls import path

from eventhub.api.json import StrictJSONParser
from eventhub.api.resource import CHANGE_AND_DELETE, LIST_AND_CREATE, ONE
from registrations.pattern_groups import api, trial_api

one = api.Patterns.as_view(CHANGE_AND_DELETE, parser_classes=(StrictJSONParser,))
urlpatterns = [
    path("", api.Patterns.as_view(LIST_AND_CREATE)),
    path("/check", trial_api.PatternCheck.as_view({"post": "create"})),
    path("/dry-run", trial_api.PatternDryRun.as_view({"post": "create"})),
    path("/<str:pattern>", one),
    path("/<str:pattern>/waiting", trial_api.WaitingPattern.as_view(ONE)),
]
