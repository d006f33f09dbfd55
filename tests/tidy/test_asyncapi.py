"""The AsyncAPI document is valid, complete and as the code is."""

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jsonschema_rs
import pytest

from eventhub.web.asyncapi import RECEIVED, document, document_text, op_of
from tests.tidy.source import HOME, product

SCHEMA = Path(__file__).with_name("asyncapi-3.0.0.schema.json")  # the official one
OF_LINES = {"end"}  # the last line of a response that ends
BY_ERROR_CODE = {"gap", "segment_mismatch"}


def sent_ops() -> set[str]:
    messages = document()["components"]["messages"]
    return {one["name"] for name, one in messages.items() if name.startswith("Sent")}


def references(found: Any) -> Iterator[str]:
    """Yield every reference in a part of the document."""
    if isinstance(found, dict):
        if isinstance(found.get("$ref"), str):
            yield found["$ref"]
        for one in found.values():
            yield from references(one)
    elif isinstance(found, list):
        for one in found:
            yield from references(one)


def test_the_document_is_valid_by_the_schema_of_asyncapi() -> None:
    validator = jsonschema_rs.validator_for(json.loads(SCHEMA.read_bytes()))
    validator.validate(json.loads(document_text()))
    with pytest.raises(jsonschema_rs.ValidationError):
        validator.validate({**document(), "channels": {"a": {"adress": "/"}}})


def test_every_reference_leads_to_a_part_of_the_document() -> None:
    for reference in references(document()):
        found: Any = document()
        for name in reference.removeprefix("#/").split("/"):
            assert name in found, reference
            found = found[name]


def test_it_has_every_message_that_the_hub_handles() -> None:
    received = {
        one["messages"][0]["$ref"].rpartition("/")[2]
        for one in document()["operations"].values()
        if one["action"] == "receive"
    }
    assert received == {kind.__name__ for kind in RECEIVED}
    page = (HOME / "docs/session-protocol.md").read_text()
    to_the_hub = page.partition("## To the hub")[2].partition("## From the hub")[0]
    headings = re.findall(r"^### ([a-z]+)(?: and ([a-z]+))?$", to_the_hub, re.M)
    described = {op for heading in headings for op in heading if op}
    assert described == {op_of(kind) for kind in RECEIVED}


def test_it_has_every_message_that_the_hub_sends() -> None:
    written = set()
    for file in product():
        if file.parts[0] == "delivery":
            written |= set(re.findall(r'"op": ?"(\w+)"', (HOME / file).read_text()))
    assert written - OF_LINES == sent_ops() - BY_ERROR_CODE


def test_the_clients_copy_is_the_document_as_it_is() -> None:
    """`make openapi` writes it again."""
    assert (HOME / "clients/typescript/asyncapi.json").read_text() == document_text()
