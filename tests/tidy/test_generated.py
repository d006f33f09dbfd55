"""Generated files are up to date."""

from pathlib import Path

from google.protobuf import descriptor_pb2
from grpc_tools import protoc

from eventhub.event import event_pb2
from eventhub.postgresql import schema
from eventhub.postgresql.migration_forms import KNOWN
from eventhub.web.command_table import table_text
from eventhub.web.openapi import document_text
from tests.tidy.source import HOME


def test_event_pb2_is_made_from_event_proto(tmp_path: Path) -> None:
    made = tmp_path / "descriptors"
    proto = "eventhub/event/event.proto"
    assert (
        protoc.main(["protoc", f"-I{HOME}", f"--descriptor_set_out={made}", str(HOME / proto)]) == 0
    )
    [fresh] = descriptor_pb2.FileDescriptorSet.FromString(made.read_bytes()).file
    kept = descriptor_pb2.FileDescriptorProto.FromString(event_pb2.DESCRIPTOR.serialized_pb)
    for message in fresh.message_type:
        for field in (*message.field, *(each for map in message.nested_type for each in map.field)):
            field.ClearField("json_name")  # said by protoc only
    fresh.name = kept.name  # depends on the folder it was made from
    assert fresh == kept


def test_the_consoles_types_are_made_from_the_api_as_it_is() -> None:
    """`make openapi` writes it again."""
    assert (HOME / "frontend/openapi.json").read_text() == document_text()


def test_the_command_line_is_made_from_the_api_as_it_is() -> None:
    """`make openapi` writes it again."""
    table = HOME / "clients/python/eventhub_client/commands/api.json"
    assert table.read_text() == table_text()


def test_forms_of_migrations_are_those_of_the_migrations_as_they_are() -> None:
    """`python -m eventhub.postgresql.schema` writes them again."""
    assert KNOWN.read_text() == schema.forms_text()
