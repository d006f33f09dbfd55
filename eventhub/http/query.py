"""The query parameters of a request, parsed strictly: each is one of its route's, and given once.
Plain module.
"""

from collections.abc import Set
from urllib.parse import parse_qsl

from eventhub.base import errors, limits
from eventhub.base.strict_json import printable


def parse_query(query_string: bytes, known: Set[str]) -> dict[str, str]:
    """Parse the parameters by name; only `known` ones are accepted. Raises UnknownField,
    InvalidField, InvalidUtf8.
    """
    if not query_string:
        return {}
    try:
        pairs = parse_qsl(
            query_string.decode("ascii"),
            keep_blank_values=True,
            errors="strict",
            max_num_fields=limits.QUERY_FIELDS_MAX,
        )
    except UnicodeError:
        raise errors.InvalidUtf8("The query is not valid UTF-8.", field="query") from None
    except ValueError:
        raise errors.InvalidField("The query has too many parameters.", field="query") from None
    query: dict[str, str] = {}
    for name, value in pairs:
        if name not in known:
            raise errors.UnknownField(
                "This operation has no such query parameter.", field=printable(name)
            )
        if name in query:
            raise errors.InvalidField(f"`{name}` is given twice; give it once.", field=name)
        if "\0" in value:
            raise errors.InvalidField("A parameter must not contain NUL.", field=name)
        query[name] = value
    return query
