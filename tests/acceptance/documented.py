"""Compares answers with what the OpenAPI document says of them."""

import json
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

from jsonschema_rs import Draft202012Validator

from tests.live import Answer

_DOCUMENT = Path(__file__).resolve().parents[2] / "frontend" / "openapi.json"
_REF = "#/components/schemas/"
_DEEP = ("key", "path")  # these may hold slashes


class Operation(NamedTuple):
    """An operation of the OpenAPI document."""

    method: str
    route: str

    @property
    def pattern(self) -> re.Pattern[str]:
        """The pattern of the request lines of its calls."""
        return _pattern(self)


@cache  # there are more of them than `re` keeps
def _pattern(operation: Operation) -> re.Pattern[str]:
    path = re.sub(r"\\{(\w+)\\}", _value, re.escape(operation.route))
    return re.compile(rf"{operation.method} {path}(\?.*)?")


def _value(name: re.Match[str]) -> str:
    return "[^?]+" if name[1] in _DEEP else "[^/?]+"


@cache
def document() -> dict[str, Any]:
    found: dict[str, Any] = json.loads(_DOCUMENT.read_text())
    return found


@cache
def operations() -> dict[Operation, dict[str, Any]]:
    """Return all operations of the document."""
    return {
        Operation(method.upper(), route): operation
        for route, methods in document()["paths"].items()
        for method, operation in methods.items()
        if method != "parameters"
    }


def undocumented(line: str, answer: Answer) -> list[str]:
    """Describe the parts of an answer to `METHOD /path` that the document does not have; empty
    for a request that is no operation of it.
    """
    method = line.partition(" ")[0]
    routes = {one.route for one in operations()}
    named = [route for route in routes if Operation(method, route).pattern.fullmatch(line)]
    operation = Operation(method, min(named, key=lambda route: route.count("{"), default=""))
    if operation not in operations():
        return []
    said = operations()[operation]["responses"].get(str(answer.status))
    if said is None:
        return [f"{line}: a status {answer.status} is not documented"]
    return [f"{line}: {answer.status}: {found}" for found in _of_content(said, answer)]


def _of_content(said: dict[str, Any], answer: Answer) -> Iterator[str]:
    kind = answer.headers.get("content-type", "").partition(";")[0]
    if not answer.body:
        return
    if kind not in said.get("content", {}):
        yield f"a body of {kind} is not documented"
    elif kind.endswith(("/json", "+json")):
        schema = said["content"][kind]["schema"]
        for error in _validator(json.dumps(schema)).iter_errors(answer.json):
            yield f"{'.'.join(map(str, error.instance_path))}: {error.message[:200]}"
        if answer.status < 400:  # a problem has members of its own
            yield from (f"{field} is not documented" for field in _unsaid(schema, answer.json, ""))


@cache
def _validator(schema: str) -> Draft202012Validator:
    """Return what validates a schema, with the components that it refers to: a validator reads all
    that it is given.
    """
    schemas: dict[str, Any] = {}
    names = _names(schema)
    while names:
        if (name := names.pop()) not in schemas:
            schemas[name] = document()["components"]["schemas"][name]
            names |= _names(json.dumps(schemas[name]))
    return Draft202012Validator({**json.loads(schema), "components": {"schemas": schemas}})


def _names(schema: str) -> set[str]:
    """Return the names of the components that a schema refers to."""
    return set(re.findall(rf'"{_REF}(\w+)"', schema))


def _unsaid(schema: dict[str, Any], value: Any, place: str) -> Iterator[str]:
    """Yield fields of objects that the schema does not name."""
    schema = _resolved(schema)
    for part in (*schema.get("anyOf", ()), *schema.get("oneOf", ()), *schema.get("allOf", ())):
        if _validator(json.dumps(part)).is_valid(value):
            yield from _unsaid(part, value, place)
    if isinstance(value, list):
        for index, item in enumerate(value):
            yield from _unsaid(schema.get("items", {}), item, f"{place}.{index}")
    elif isinstance(value, dict) and "properties" in schema:
        for name, field in value.items():
            if name in schema["properties"]:
                yield from _unsaid(schema["properties"][name], field, f"{place}.{name}")
            elif not schema.get("additionalProperties"):
                yield f"{place}.{name}"


def _resolved(schema: dict[str, Any]) -> dict[str, Any]:
    if "$ref" not in schema:
        return schema
    found: dict[str, Any] = document()["components"]["schemas"][schema["$ref"].removeprefix(_REF)]
    return found
