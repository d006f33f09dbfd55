"""Routes of the streams room, below /v1/streams."""

from django.urls import path

from eventhub.streams import api, state_api

urlpatterns = [
    path("", api.Streams.as_view()),
    path("/<str:stream>", api.OneStream.as_view()),
    path("/<str:stream>/segments", api.Segments.as_view()),
    path("/<str:stream>/segments/current", api.CurrentSegment.as_view()),
    path("/<str:stream>/state", state_api.State.as_view()),
    path("/<str:stream>/state/<path:key>", state_api.OneKey.as_view()),
    path("/<str:stream>/events", api.EmitOnly.as_view()),
    path("/<str:stream>/events/<str:sequence>", api.OneEvent.as_view()),
]
