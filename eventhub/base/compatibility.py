"""Forward compatibility: reading records that a newer release wrote. Plain module.

Everything that is stored, or sent between processes, has a version. It is raised only when an older
reader would misunderstand the record; a reader ignores fields that were merely added
(docs/upgrading.md).
"""

from collections.abc import Mapping
from typing import Any, TypeVar

T = TypeVar("T")


def from_known_fields(kind: type[T], fields: Mapping[str, Any]) -> T:
    """Return a NamedTuple of type `kind`, leaving out fields that it does not have. Raises
    TypeError if a field without a default is missing.
    """
    names: tuple[str, ...] = kind._fields  # type: ignore[attr-defined]
    return kind(**{name: fields[name] for name in names if name in fields})
