"""The representation of a registration in the API: its row, the names of its streams, and its
parsed filter. Plain module.
"""

from types import SimpleNamespace
from typing import Any

import orjson

from registrations.filter_source import PAIRS, FilterSource, stored_filter
from registrations.filters.pairs import FIELDS
from registrations.statements import RegistrationRow, Vector


def represent(
    row: RegistrationRow,
    names: dict[int, str],
    since: Vector,
    read: FilterSource | None = None,
    secret: str | None = None,
) -> SimpleNamespace:
    """Return the fields that the serializer represents. `since`: the positions in its streams after
    which its version applies; `read`: its filter, if the caller has read it; `secret`: of the
    endpoint that was created with it.
    """
    read = read or stored_filter(row.language, row.filter_json)
    read = read._replace(known=read.read())
    predicate, warnings, cost, signature = read.summary()
    is_pairs = read.language == PAIRS
    pairs = dict.fromkeys(FIELDS) | (read.source if is_pairs else {})
    attributes = pairs.pop("attributes") or {}
    found: dict[str, Any] = {
        **row._asdict(),
        **pairs,
        "attributes": attributes,
        "pair_count": len(attributes),
        "streams": [names[id] for id in row.streams],
        "stream_ids": row.streams,
        "read": read,
        "filter": None if is_pairs else read.source,
        "predicate": predicate,
        "warnings": warnings if row.equal_to is None else [*warnings, "equal_to"],
        "cost": cost,
        "signature": signature,
        "report": None if row.report_json is None else orjson.loads(row.report_json),
        "from": {names[id]: since[id]._asdict() for id in row.streams if id in since},
        "secret": secret,
    }
    return SimpleNamespace(**found)
