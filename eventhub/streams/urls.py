"""Routes of the streams room, below /v1/streams."""

from django.urls import path, register_converter
from django.urls.converters import PathConverter

from eventhub.streams import api, state_api


class KeyConverter(PathConverter):
    """A key may hold anything that an event's may, line ends too."""

    regex = r"[\s\S]+"


register_converter(KeyConverter, "key")

urlpatterns = [
    path("", api.Streams.as_view()),
    path("/<str:stream>", api.OneStream.as_view()),
    path("/<str:stream>/segments", api.Segments.as_view()),
    path("/<str:stream>/segments/current", api.CurrentSegment.as_view()),
    path("/<str:stream>/state", state_api.State.as_view()),
    path("/<str:stream>/state/<key:key>", state_api.OneKey.as_view()),
    path("/<str:stream>/events", api.EmitOnly.as_view()),
    path("/<str:stream>/events/<str:sequence>", api.OneEvent.as_view()),
]
