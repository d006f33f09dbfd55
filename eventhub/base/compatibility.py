"""What a newer release says beside what this one knows. Plain module.

Whatever is stored or sent between processes has a version, raised only when an older reader would
misunderstand it; what is merely added is left out by who does not know it (docs/upgrading.md).
"""

from collections.abc import Mapping
from typing import Any, TypeVar

T = TypeVar("T")


def known(kind: type[T], fields: Mapping[str, Any]) -> T:
    """The NamedTuple `kind` of those fields that it has. Raises TypeError if one without a default
    is missing."""
    names: tuple[str, ...] = kind._fields  # type: ignore[attr-defined]
    return kind(**{name: fields[name] for name in names if name in fields})
