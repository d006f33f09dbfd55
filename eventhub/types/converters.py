"""The path converter `name`, for names that may contain a slash. Django module."""

from django.urls import register_converter
from django.urls.converters import StringConverter

from eventhub.types.paths import decoded, encoded


class NameConverter(StringConverter):
    """A domain or type of events, or a component of an application."""

    to_python = staticmethod(decoded)
    to_url = staticmethod(encoded)


register_converter(NameConverter, "name")
