"""A cache of event type definitions, each version fetched once: old versions stay valid for old
events (FOX-20). Plain module.
"""

import asyncio
from collections.abc import Callable
from typing import Any, NamedTuple
from urllib.parse import quote

import jsonschema_rs

from eventhub_client.remote import HubClient
from eventhub_client.types import Delivered


class Newer(NamedTuple):
    """A notice that a type has a version newer than that of the event just read."""

    domain: str
    type: str
    version: str
    latest: str


class Definition(NamedTuple):
    """One version of a type; it never changes. `schema` is JSON Schema of the attributes."""

    domain: str
    type: str
    version: str
    parent: str | None
    schema: dict[str, Any]
    immutable: tuple[str, ...]  # dotted paths


class Parsed(NamedTuple):
    """An event with its type's definition; None if the type is not declared."""

    event: dict[str, Any]
    definition: Definition | None


class TypeMismatch(Exception):
    """The event violates the definition that it names."""


class _CachedDefinition(NamedTuple):
    definition: Definition
    validator: jsonschema_rs.Draft202012Validator


class TypeCache:
    """The cache of a process; `on_newer` gets each newer version once."""

    def __init__(self, hub: HubClient, on_newer: Callable[[Newer], None] | None = None) -> None:
        self._hub = hub
        self._on_newer = on_newer
        self._known: dict[tuple[str, str, str], asyncio.Task[_CachedDefinition]] = {}
        self._noticed: set[Newer] = set()

    async def parse(self, delivered: Delivered) -> Parsed:
        """Validate an event by the version that it names, however old.

        Raises TypeMismatch, and HubProblem when the definition cannot be fetched.
        """
        event = delivered.event
        domain, type, version = event["domain"], event["type"], event.get("version", "")
        if delivered.latest_version:
            self._notice(Newer(domain, type, version, delivered.latest_version))
        if not version:
            return Parsed(event, None)
        known = await self._find(domain, type, version)
        found = known.validator.iter_errors(event.get("attributes", {}))
        problem = next(iter(found), None)
        if problem is not None:
            raise TypeMismatch(f"{domain} {type} version {version}: {problem.message}")
        return Parsed(event, known.definition)

    async def _find(self, domain: str, type: str, version: str) -> _CachedDefinition:
        """Return a definition; concurrent callers share one fetch, and a failed one is repeated."""
        key = (domain, type, version)
        task = self._known.get(key)
        if task is None or (task.done() and (task.cancelled() or task.exception())):
            task = self._known[key] = asyncio.create_task(self._fetch(key))
        return await asyncio.shield(task)

    async def _fetch(self, key: tuple[str, str, str]) -> _CachedDefinition:
        path = "/".join(quote(part, safe="") for part in key)
        found = await self._hub.call("GET", f"/v1/types/{path}")
        definition = Definition(
            found["domain"],
            found["type"],
            found["version"],
            found["parent"],
            found["schema"],
            tuple(found["immutable"]),
        )
        return _CachedDefinition(definition, jsonschema_rs.Draft202012Validator(definition.schema))

    def _notice(self, newer: Newer) -> None:
        if newer not in self._noticed:
            self._noticed.add(newer)
            if self._on_newer is not None:
                self._on_newer(newer)
