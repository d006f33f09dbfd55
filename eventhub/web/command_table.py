"""The commands of `eventhub` that are made from the OpenAPI document: a small table beside the
command line, so that it knows every route of the management API without a hub. Django module.
"""

import re
from typing import Any, NamedTuple

import orjson

from eventhub.web.openapi import document

_HEADERS = ("If-Match", "If-None-Match")
_JSON = "application/json"
_RAW = "application/x-ndjson"
# What the command line does by itself: `emit`, `listen`, `segments download`, `login`. Passwords
# are typed in the console, not in a shell, which stores them in its history. Events of a session
# have no end. Webhooks are sent by providers.
_BY_HAND = re.compile(
    r"/v1/(session(/setup|/password)?|webhooks/{token}|sessions/{session}/events"
    r"|streams/{stream}/(events|segments/{segment}/raw))"
)
# whose last word is the verb itself
_ACTIONS = {
    *("apply", "cancel", "check", "discard", "dry-run", "explain", "heartbeat", "interest"),
    *("pause", "preview", "resend", "restore", "resume", "skip", "test", "verify"),
}
_VERBS = {"GET": "show", "POST": "create", "PUT": "set", "PATCH": "update", "DELETE": "delete"}
# the help of each group of commands: its thing first, then what its commands do
GROUPS = {
    "application-groups": "Groups of applications: set, list and delete them.",
    "applications": "States of applications: report, list and delete them.",
    "applications monitor": "The monitoring of heartbeats: start and stop it.",
    "audit": "The audit trail: list who changed what, and show one act.",
    "boot": "The hub's last start.",
    "channels": "Channels (tag masks) of a zone: define, list and delete them.",
    "clients": "Clients of a zone: their groups, keys and listeners.",
    "clients keys": "API keys of a client: issue and list them.",
    "clients listeners": "Listeners of a client: list them.",
    "connection-tokens": "Connection tokens: mint one for a page that cannot send headers.",
    "connectors": "Connectors (tables of other databases): create, change and delete them.",
    "dead-letters": "Dead letters by endpoint and cause: list them.",
    "deliveries": "Deliveries to endpoints: list, show, resend, skip and discard them.",
    "endpoints": "Endpoints, the receivers of callbacks: create, change and delete them.",
    "endpoints examples": "Examples of types: send one to an endpoint.",
    "endpoints recover": "The recovery of an endpoint: preview it, and start it.",
    "endpoints secrets": "Secrets that sign callbacks: list, replace and revoke them.",
    "endpoints statistics": "Statistics of an endpoint: list its attempts by minute or by hour.",
    "filters": "Filters: check, explain and try one without a registration.",
    "jobs": "Spark jobs: list them, request runs and read their results.",
    "jobs retention": "The retention job: apply a plan.",
    "jobs retention runs": "Runs of the retention job: apply the plan of one.",
    "jobs runs": "Runs of a job: request, list, show and cancel them.",
    "jobs runs files": "Files of a run's result: get one.",
    "jobs runs log": "The log of a run: show its end.",
    "keys": "API keys by their public id: show, change and revoke them.",
    "languages": "Filter languages: list them.",
    "limits": "Limits of tenants: list and set them.",
    "members": "The hub's processes: list them.",
    "monitoring": "Events about clients and API calls: show and switch them.",
    "pattern-groups": "Pattern groups: create, suspend and delete them with their patterns.",
    "patterns": "Patterns over several events: create, change, check, try and delete them.",
    "patterns waiting": "Partial matches of a pattern: what is bound, and what it waits for.",
    "presence": "Connected clients: list them.",
    "operators": "Operators: create them, change their roles and delete them.",
    "operators setup-token": "Set-up tokens, with which operators set their passwords.",
    "overview": "The figures of a zone.",
    "registration-groups": "Groups of registrations, which are suspended and resumed together.",
    "registrations": "Registrations (subscriptions): create, change, explain and end them.",
    "registrations bulk": "Many registrations: create, change and end them in one request.",
    "registrations timers": "Timers of a registration, by their handles.",
    "replays": "Replay runs, which send events again: preview, start, pause and cancel them.",
    "session-groups": "Groups of consumer sessions: create, change and delete them.",
    "session-groups claims": "Events that members of a group have not acknowledged: list them.",
    "session-groups positions": "Positions of a group whose members share: list them by stream.",
    "sessions": "Admin, supplier and consumer sessions: create, change and delete them.",
    "sessions acknowledgements": "Acknowledgements of the events of a session: store some.",
    "sessions claims": "Events that a session has not acknowledged: list them.",
    "sessions positions": "Positions of a consumer session: list them by stream.",
    "sessions pull": "Events of a consumer session: get the next ones, each for a time.",
    "sources": "Sources (webhooks of third parties): create, change and delete them.",
    "sources samples": "The last requests to a source: list and show them.",
    "sources secrets": "Secrets of a source: replace the present one.",
    "sources url": "The secret URL of a source: replace it.",
    "storage": "The storage in use, and the quota of the hub.",
    "streams": "Streams: create, change and delete them.",
    "streams closure": "The closure of a stream: which events match an interest.",
    "streams events": "Events of a stream: show one, and what it matched.",
    "streams events matches": "Matches of an event: list its registrations and nearest misses.",
    "streams match-index": "The match index of a stream: show it, and request a build.",
    "streams segments": "Segments of a stream: list them, and show the current one.",
    "streams segments current": "The segment being written.",
    "streams state": "State of a keyed stream: show, put and end the state of a key.",
    "timers": "Timers and delayed events: create, list, suspend and delete them.",
    "types": "Declared types of events: declare, list and delete them.",
    "zones": "Zones (tenants): create, list and delete them.",
}


class Option(NamedTuple):
    """A query parameter, a header, or a field of the body. `kind` is the type's name in JSON."""

    name: str
    kind: str
    help: str
    required: bool


class Command(NamedTuple):
    """One operation: `eventhub WORDS ARGUMENTS --options`. The arguments are those of the path."""

    words: list[str]
    method: str
    path: str
    help: str
    query: list[Option]
    headers: list[Option]
    body: list[Option] | None  # None: the operation takes no JSON object
    media: str  # of the body; "": it takes none
    operator: bool  # an API key may not do it


def table_text() -> str:
    """Return the table as the client has it: JSON, a group or a command on each line. Raises
    KeyError for a group without help.
    """
    all_commands = commands()
    prefixes = {
        " ".join(each.words[:depth]) for each in all_commands for depth in range(1, len(each.words))
    }
    if missing := prefixes - GROUPS.keys():
        raise KeyError(*missing)
    groups = orjson.dumps(GROUPS).decode().replace('","', '",\n"')
    lines = ",\n".join(orjson.dumps(_plain(command)).decode() for command in all_commands)
    return f'{{"groups":{groups},\n"commands":[\n{lines}\n]}}\n'


def commands() -> list[Command]:
    """Return the commands of all operations below /v1 that answer once, by their words."""
    found = [
        _command(method.upper(), path, operation)
        for path, item in document()["paths"].items()
        for method, operation in item.items()
        if path.startswith("/v1/") and not _BY_HAND.fullmatch(path)
    ]
    return sorted(found, key=lambda command: (command.words, command.path))


def _plain(command: Command) -> dict[str, Any]:
    found = command._asdict()
    for name in ("query", "headers", "body"):
        if found[name] is not None:
            found[name] = [list(option) for option in found[name]]
    return found


def _command(method: str, path: str, operation: dict[str, Any]) -> Command:
    given = operation.get("parameters", [])
    content = operation.get("requestBody", {}).get("content", {})
    schemes = {name for item in operation["security"] for name in item}
    return Command(
        words=_words(method, path),
        method=method,
        path=path,
        help=operation["summary"],
        query=[_parameter(one) for one in given if one["in"] == "query"],
        headers=[_parameter(one) for one in given if one["name"] in _HEADERS],
        body=_fields(content[_JSON]["schema"]) if _JSON in content else None,
        media=next((media for media in (_JSON, _RAW) if media in content), ""),
        operator=bool(schemes) and "bearer" not in schemes,
    )


def _words(method: str, path: str) -> list[str]:
    """Return `clients keys create` for POST /v1/clients/{client}/keys."""
    parts = path.removeprefix("/v1/").split("/")
    words = [part for part in parts if not part.startswith("{")]
    if words[-1] in _ACTIONS:
        return words
    if method == "GET" and parts[-1] == words[-1] and words[-1].endswith(("s", "state", "audit")):
        return [*words, "list"]
    return [*words, "build" if words[-1] == "match-index" and method == "POST" else _VERBS[method]]


def _parameter(parameter: dict[str, Any]) -> Option:
    kind = parameter.get("schema", {}).get("type", "string")
    text = parameter.get("description", "")
    return Option(parameter["name"], kind, text, parameter.get("required", False))


def _fields(schema: dict[str, Any]) -> list[Option]:
    """Return the fields of a body; of several forms, those of the first."""
    schema = _resolved(schema)
    for several in ("oneOf", "anyOf"):
        if several in schema:
            return _fields(schema[several][0])
    required = schema.get("required", [])
    return [
        Option(name, _kind(field), _text(field), name in required)
        for name, field in schema.get("properties", {}).items()
    ]


def _resolved(schema: dict[str, Any]) -> dict[str, Any]:
    while "$ref" in schema:
        schema = document()["components"]["schemas"][schema["$ref"].rsplit("/", 1)[-1]]
    return schema


def _kind(field: dict[str, Any]) -> str:
    """Return JSON's name of a field's type; `json` if it is none of text, number, boolean."""
    kinds = field.get("type", "json")
    kinds = [kind for kind in ([kinds] if isinstance(kinds, str) else kinds) if kind != "null"]
    return kinds[0] if len(kinds) == 1 and kinds[0] not in ("array", "object") else "json"


def _text(field: dict[str, Any]) -> str:
    text = field.get("description", "")
    choices = ", ".join(str(choice) for choice in field.get("enum", []) if choice is not None)
    return re.sub(r"\s+", " ", f"{text} One of {choices}." if choices else text).strip()
