"""Routes of sources, below /v1/sources. Django module."""

from django.urls import path

from eventhub.api.resource import CHANGE_AND_DELETE, LIST, LIST_AND_CREATE, ONE
from registrations.sources import api, samples_api

_CREATE = {"post": "create"}
urlpatterns = [
    path("", api.Sources.as_view(LIST_AND_CREATE)),
    path("/<str:source>", api.Sources.as_view(CHANGE_AND_DELETE)),
    path("/<str:source>/url", api.SourceUrls.as_view(_CREATE)),
    path("/<str:source>/secrets", api.SourceSecrets.as_view(_CREATE)),
    path("/<str:source>/samples", samples_api.SourceSamples.as_view(LIST)),
    path("/<str:source>/samples/<str:sample>", samples_api.SourceSamples.as_view(ONE)),
    path("/<str:source>/test", samples_api.SourceTests.as_view(_CREATE)),
]
