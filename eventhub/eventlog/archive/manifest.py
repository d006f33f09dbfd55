"""The manifest of an archived segment: a JSON object with a checksum, stored alongside the Parquet
file. Plain module.

A segment is archived once its manifest exists.
"""

import hashlib
from typing import Any, NamedTuple

import orjson

from eventhub.base.compatibility import from_known_fields
from eventhub.eventlog.errors import ArchiveDamaged

# of the columns and of the manifest: readers refuse another version, and ignore unknown fields
SCHEMA_VERSION = 1


class ProducerHighest(NamedTuple):
    """The highest number of one incarnation of a producer in the segment."""

    client: str
    incarnation: int
    number: int


class SegmentManifest(NamedTuple):
    """The description of an archived segment. Times are in microseconds since 1970 UTC, null
    without events. Paths are as in layout.py.
    """

    segment: str  # UUID
    zone: int | None  # null: the hub-wide stream
    stream: str
    stream_id: int
    first: int
    last: int  # first - 1 in an empty segment
    events: int  # how many
    appended_min_us: int | None
    appended_max_us: int | None
    payload_bytes: int
    payload_sha256: str  # over all stored bytes in order, each after its length (4 bytes, big end)
    file: str  # its name, in the folder of the manifest
    file_bytes: int
    file_sha256: str
    footer_sha256: str  # of the last bytes of the file: Parquet's footer, its length and mark
    footer_bytes: int
    # names with a column of their own, by type: the column has all values of the type
    attributes: dict[str, list[str]]
    producers: list[ProducerHighest]
    producers_complete: bool  # false: there were too many to list; the columns have all of them
    schema_version: int = SCHEMA_VERSION

    @property
    def range(self) -> tuple[int, int]:
        return self.first, self.last


def dump(manifest: SegmentManifest) -> bytes:
    """Return the manifest as JSON, with `checksum` over the rest."""
    return sealed(_fields(manifest))


def load(content: bytes, path: str) -> SegmentManifest:
    """Parse and check a manifest. Raises ArchiveDamaged."""
    fields = unsealed(content, path)
    fields["producers"] = [from_known_fields(ProducerHighest, mark) for mark in fields["producers"]]
    return from_known_fields(SegmentManifest, fields)


def sealed(fields: dict[str, Any]) -> bytes:
    """Return the JSON of any manifest, with its checksum; `fields` include `schema_version`."""
    return orjson.dumps({**fields, "checksum": _checksum(fields)}, option=orjson.OPT_INDENT_2)


def unsealed(content: bytes, path: str) -> dict[str, Any]:
    """Return the fields of a manifest after checking it. Raises ArchiveDamaged."""
    try:
        fields: dict[str, Any] = orjson.loads(content)
        checksum = fields.pop("checksum")
        version = fields["schema_version"]
    except (orjson.JSONDecodeError, AttributeError, KeyError, TypeError) as error:
        raise ArchiveDamaged(f"{path} is not a manifest.", path=path) from error
    if checksum != _checksum(fields):
        raise ArchiveDamaged(f"{path} is altered: its checksum differs.", path=path)
    if version != SCHEMA_VERSION:
        raise ArchiveDamaged(f"{path} has the unknown schema version {version}.", path=path)
    return fields


def _fields(manifest: SegmentManifest) -> dict[str, Any]:
    return {**manifest._asdict(), "producers": [mark._asdict() for mark in manifest.producers]}


def _checksum(fields: dict[str, Any]) -> str:
    return hashlib.sha256(orjson.dumps(fields, option=orjson.OPT_SORT_KEYS)).hexdigest()
