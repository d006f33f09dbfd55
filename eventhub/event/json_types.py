"""Types of the JSON that hot routes take and answer: the schemas of the OpenAPI document are made
of them, and what builds an answer is checked against them. Plain module.

An answer's type is a TypedDict whose name ends in `Json`; its schema is named without that.
"""

import re
from typing import Annotated, Any

import msgspec
import orjson
from msgspec import Meta

Int64 = Annotated[int, Meta(extra_json_schema={"format": "int64"})]
Uuid = Annotated[str, Meta(extra_json_schema={"format": "uuid"})]
Time = Annotated[str, Meta(extra_json_schema={"format": "date-time"})]

_SUFFIX = re.compile(rb'(\w+)Json"')


def schema_of(kind: Any) -> tuple[dict[str, Any], dict[str, Any]]:
    """The JSON Schema of a type, and those it refers to, by name. What is a schema is left."""
    if isinstance(kind, dict):
        return kind, {}
    found = msgspec.json.schema_components([kind], ref_template="#/components/schemas/{name}")
    [schema], components = orjson.loads(_SUFFIX.sub(rb'\1"', orjson.dumps(found)))
    return schema, components
