"""Types of the JSON that hot routes accept and return. The schemas of the OpenAPI document are
generated from them, and the code that builds an answer is type-checked against them. Plain module.

An answer's type is a TypedDict whose name ends in `Json`; its schema has the name without that.
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
    """Return the JSON Schema of a type, and by name those it refers to. A schema is returned
    unchanged.
    """
    if isinstance(kind, dict):
        return kind, {}
    found = msgspec.json.schema_components([kind], ref_template="#/components/schemas/{name}")
    [schema], components = orjson.loads(_SUFFIX.sub(rb'\1"', orjson.dumps(found)))
    return schema, components
