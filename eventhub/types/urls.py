"""Routes of event types, below /v1/types. Django module."""

from django.urls import path, register_converter
from django.urls.converters import StringConverter

from eventhub.api.resource import LIST, ONE, PUT
from eventhub.types import api
from eventhub.types.paths import decoded, encoded


class NameConverter(StringConverter):
    """A domain or type, which may contain a slash."""

    to_python = staticmethod(decoded)
    to_url = staticmethod(encoded)


register_converter(NameConverter, "name")

urlpatterns = [
    path("", api.Types.as_view(LIST)),
    path("/<name:domain>/<name:type>", api.OneType.as_view({**PUT, "delete": "destroy"})),
    path("/<name:domain>/<name:type>/restore", api.RestoredType.as_view({"post": "create"})),
    path("/<name:domain>/<name:type>/<str:version>", api.OneVersion.as_view(ONE)),
]
