"""Calls with a body in which one field has a wrong value: of another JSON type, empty, too long,
with NUL or in Unicode. They are made from a table of all fields.
"""

from collections.abc import Iterator
from itertools import cycle
from typing import Any, NamedTuple

from tests.acceptance.recorded.call import Call
from tests.acceptance.recorded.endpoints import URL
from tests.acceptance.recorded.streams import EVENT

LONG = "x" * 5_000
WRONG: dict[str, tuple[Any, ...]] = {
    "text": (7, ["a"], {}, True, "", LONG, "a\u0000b", "\u00e9\u2603\U0001f600"),
    "name": (7, ["a"], {}, "", "\u00e9", LONG),
    "word": (7, [], "", "none"),
    "whole": ("7", 1.5, True, [], 0, -1, 1 << 63),
    "flag": (0, "true", []),
    "list": ("a", 7, {}, [None], [7], [""]),
    "object": ("a", 7, []),
    "moment": (7, "", "2026-11-21", "2026-11-21T08:00:00", []),
}


class Body(NamedTuple):
    """A request, the body that its wrong fields are put into, and the kind of each field."""

    who: str
    line: str
    body: dict[str, Any]
    fields: dict[str, str]


_FILTER = {
    "domain": "text",
    "type": "text",
    "application": "text",
    "attributes": "object",
    "language": "word",
    "filter": "object",
}
_REGISTRATION = {
    "streams": "list",
    **_FILTER,
    "endpoint": "whole",
    "suspended": "flag",
    "group": "name",
    "report": "list",
}
_POLICY = {
    "durability": "word",
    "segment_events_max": "whole",
    "segment_bytes_max": "whole",
    "segment_age_s_max": "whole",
    "keyed": "flag",
    "restate": "flag",
    "retain_events": "whole",
    "retain_bytes": "whole",
    "retain_age_s": "whole",
    "on_lag": "word",
    "hold": "text",
    "archive": "flag",
    "undeclared": "word",
    "matching": "word",
    "quench": "flag",
    "filterable_data": "flag",
}
_CLIENTS, _KEYS = "POST /v1/clients", "POST /v1/clients/depot/keys"
BODIES = (
    Body("operator", "POST /v1/zones", {}, {"name": "name"}),
    Body("admin", _CLIENTS, {}, {"name": "name"}),
    Body("admin", _CLIENTS, {"name": "shop"}, {"groups": "list"}),
    Body("admin", "PATCH /v1/clients/cafe", {}, {"groups": "list"}),
    Body("admin", _KEYS, {}, {"grants": "list"}),
    Body("admin", _KEYS, {"grants": []}, {"label": "text", "expires_at": "moment"}),
    Body("admin", "PATCH /v1/keys/<key>", {}, {"grants": "list", "label": "text"}),
    Body("admin", "POST /v1/connection-tokens", {}, {"grants": "list", "lifetime_s": "whole"}),
    Body("admin", "PUT /v1/channels/new", {}, {"mask": "object"}),
    Body("admin", "PUT /v1/streams/full", {}, _POLICY),
    Body("operator", "PUT /v1/storage", {}, {"quota_bytes": "whole"}),
    Body("admin", "PUT /v1/types/shop/wrong", {}, {"schema": "object"}),
    Body(
        "admin",
        "PUT /v1/types/shop/measured",
        {"schema": {}},
        {"header": "object", "parent": "name", "evolution": "word"},
    ),
    Body(
        "admin",
        "POST /v1/registrations",
        {"streams": ["orders"]},
        {**_REGISTRATION, "callback": "text", "client": "name", "key": "text"},
    ),
    Body("admin", "PATCH /v1/registrations/<registration>", {}, _REGISTRATION),
    Body("admin", "POST /v1/registration-groups", {}, {"name": "name"}),
    Body(
        "admin",
        "POST /v1/registration-groups",
        {"name": "night"},
        {"suspended": "flag", "client": "name"},
    ),
    Body("admin", "PATCH /v1/registration-groups/<group>", {}, {"suspended": "flag"}),
    Body("admin", "POST /v1/endpoints", {}, {"url": "text"}),
    Body(
        "admin",
        "POST /v1/endpoints",
        {"url": URL},
        {
            "description": "text",
            "ordered": "flag",
            "format": "word",
            "signature": "word",
            "client": "name",
            "secret": "text",
        },
    ),
    Body(
        "admin",
        "POST /v1/endpoints/<endpoint>/secrets",
        {},
        {"signature": "word", "secret": "text", "overlap_s": "whole"},
    ),
    Body(
        "admin",
        "PATCH /v1/endpoints/<endpoint>",
        {},
        {
            "url": "text",
            "description": "text",
            "ordered": "flag",
            "format": "word",
            "signature": "word",
            "enabled": "flag",
        },
    ),
    Body(
        "admin",
        "POST /v1/filters/check",
        {},
        {**_FILTER, "streams": "list", "client": "name"},
    ),
    Body("admin", "POST /v1/filters/explain", {"event": EVENT}, _FILTER),
    Body(
        "admin",
        "POST /v1/filters/explain",
        {"stream": "orders", "sequence": 1},
        {"stream": "name", "sequence": "whole", "mask": "text", "channels": "list"},
    ),
    Body("admin", "POST /v1/filters/explain", {}, {"event": "object"}),
    Body("operator", "POST /v1/jobs/audit/runs", {}, {"params": "object"}),
)
_JOBS = {
    "audit": {"zone": "name", "streams": "list", "since": "moment", "until": "moment"},
    "backtest": {
        "zone": "name",
        "stream": "name",
        "language": "word",
        "filter": "object",
        "since": "moment",
        "until": "moment",
        "sample_max": "whole",
    },
    "match_index": {"zone": "name", "stream": "name", "engine": "word"},
    "retention": {"zone": "name", "policies": "object"},
}
_PARAMS = {"zone": "<zone>", "stream": "orders", "filter": "(> n 1)"}
_TAKEN = {
    "audit": ("zone",),
    "backtest": ("zone", "stream", "filter"),
    "match_index": ("zone", "stream"),
    "retention": ("zone",),
}
_EVENT_FIELDS = {
    **dict.fromkeys(("domain", "type", "key", "node", "bundle", "correlation", "version"), 7),
    **{name: [] for name in ("name", "cause", "traceparent", "summary", "merge_scheme")},
    **dict.fromkeys(("attributes", "environment", "channels", "application", "depends"), "a"),
    **{name: [""] for name in ("destinations", "audience")},
    **dict.fromkeys(("id", "priority", "bundle_number", "time_constraint_ms"), 1.5),
    **dict.fromkeys(("expires_in_ms", "delay_ms"), 1.5),
    **dict.fromkeys(("expires_at", "deliver_at", "time", "security_level", "content_type"), "none"),
    **{name: [] for name in ("mask", "body_base64", "tombstone", "order")},
}


def calls() -> Iterator[Call]:
    """Yield each field with null and another value of its kind, in turn."""
    turns = {kind: cycle(values) for kind, values in WRONG.items()}
    for who, line, body, fields in BODIES:
        for name, kind in fields.items():
            for value in (None, next(turns[kind])):
                yield Call(who, line, {**body, name: value})
    for job, fields in _JOBS.items():
        params = {name: _PARAMS[name] for name in _TAKEN[job]}
        for name, kind in fields.items():
            body = {"params": {**params, name: next(turns[kind])}}
            yield Call("operator", f"POST /v1/jobs/{job}/runs", body)
    for name, value in _EVENT_FIELDS.items():
        yield Call("admin", "PUT /v1/streams/kept/state/wrong", {**EVENT, name: value})
