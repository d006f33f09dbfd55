"""Names of applications and their components: NAME, or NAME/COMPONENT. Plain module."""

from eventhub.access.names import NAME
from eventhub.base import limits
from eventhub.base.errors import FieldTooLong, InvalidName


def valid_application(text: str, *, field: str) -> str:
    """Return the name. Raises FieldTooLong or InvalidName at `field`."""
    if len(text) > limits.NAME_CHARS_MAX:
        raise FieldTooLong(field=field, chars_max=limits.NAME_CHARS_MAX)
    application, slash, component = text.partition("/")
    if not NAME.fullmatch(application) or (slash and not NAME.fullmatch(component)):
        raise InvalidName(
            "An application is named as a stream is, a component NAME/COMPONENT; in a path, write"
            " the slash as %2F.",
            field=field,
        )
    return text
