"""The key by which an endpoint orders its deliveries: a path in the event, as in filters. Plain
module.
"""

from registrations.filters.ast import Path, TextPosition
from registrations.filters.predicate import path_of


def order_path(text: str) -> Path:
    """Return the path that a text names: `customer.id` is an attribute, `@key` a field of the
    envelope. Raises FilterSyntax if there is no such field.
    """
    return path_of(text, TextPosition(1, 1))
