"""Routes of the streams room, below /v1/streams."""

from django.urls import path

from eventhub.streams import api

urlpatterns = [
    path("", api.Streams.as_view()),
    path("/<stream>", api.OneStream.as_view()),
    path("/<stream>/segments", api.Segments.as_view()),
    path("/<stream>/segments/current", api.CurrentSegment.as_view()),
    path("/<stream>/events", api.EmitOnly.as_view()),
    path("/<stream>/events/<sequence>", api.OneEvent.as_view()),
]
