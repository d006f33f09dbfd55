"""Routes of streams, below /v1/streams. Django module."""

from django.urls import path, register_converter
from django.urls.converters import PathConverter

from eventhub.api.resource import LIST, ONE, PUT
from eventhub.streams import api


class KeyConverter(PathConverter):
    """A key, which may contain any character of an event's key, also line ends."""

    regex = r"[\s\S]+"


register_converter(KeyConverter, "key")

urlpatterns = [
    path("", api.Streams.as_view(LIST)),
    path("/<str:stream>", api.Streams.as_view({**PUT, "delete": "destroy"})),
    path("/<str:stream>/restore", api.RestoredStream.as_view({"post": "create"})),
    path("/<str:stream>/segments", api.Segments.as_view(LIST)),
    path("/<str:stream>/segments/current", api.Segments.as_view(ONE)),
    path("/<str:stream>/state", api.KeyedStates.as_view(ONE)),
    path("/<str:stream>/state/<key:key>", api.OneKey.as_view({**PUT, "delete": "destroy"})),
    path("/<str:stream>/events", api.EmitOnly.as_view({"post": "create"})),
    path("/<str:stream>/events/<str:sequence>", api.OneEvent.as_view(ONE)),
]
