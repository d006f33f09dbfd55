"""The paths of the archive's files, manifests, and the columns chosen for attributes."""

from urllib.parse import unquote

import pytest
from hypothesis import given
from hypothesis import strategies as st

from eventhub.base import limits
from eventhub.event.envelope import Event
from eventhub.event.protobuf_codec import encode
from eventhub.eventlog.archive import layout, manifest
from eventhub.eventlog.archive.columns import NameCount
from eventhub.eventlog.archive.manifest import ProducerHighest, SegmentManifest
from eventhub.eventlog.errors import ArchiveDamaged

NAME_BYTES_MAX = 255  # of a folder or file, nearly everywhere
UUID = "4be0643f-1d98-573b-97cd-ca98a65347dd"


@given(st.text(min_size=1, max_size=200), st.integers(1, 1 << 62))
def test_every_stream_name_is_one_valid_folder(name: str, first: int) -> None:
    path = layout.file_path(layout.stem(7, name, UUID, first), "f" * 64)
    zone, stream, file = path.split("/")
    assert zone == "zone=7"
    assert all(len(part.encode()) <= NAME_BYTES_MAX for part in (stream, file))
    assert stream.isascii() and not set(stream) & set('\\:*?"<>| \n\0')
    if "~" not in stream:
        assert unquote(stream.removeprefix("stream=")) == name


@given(st.sets(st.text(min_size=1, max_size=200), min_size=2, max_size=20))
def test_streams_have_different_folders(names: set[str]) -> None:
    assert len({layout.stream_folder(1, name) for name in names}) == len(names)


@given(st.lists(st.integers(0, (1 << 63) - 1), unique=True))
def test_names_sort_as_sequences_do(firsts: list[int]) -> None:
    stems = [layout.stem(1, "orders", UUID, first) for first in firsts]
    assert sorted(stems) == [layout.stem(1, "orders", UUID, first) for first in sorted(firsts)]


MANIFEST = SegmentManifest(
    segment=UUID,
    zone=None,
    stream="system",
    stream_id=1,
    first=1,
    last=2,
    events=2,
    appended_min_us=1,
    appended_max_us=2,
    payload_bytes=10,
    payload_sha256="a",
    producers=[ProducerHighest("till", 7, 9)],
    producers_complete=True,
    file="x.parquet",
    file_bytes=100,
    file_sha256="b",
    footer_sha256="c",
    footer_bytes=50,
    attributes={"int": ["n"]},
)


def test_a_manifest_survives_a_round_trip() -> None:
    assert manifest.load(manifest.dump(MANIFEST), "x") == MANIFEST


def test_unknown_fields_of_a_manifest_are_ignored() -> None:
    fields = manifest.unsealed(manifest.dump(MANIFEST), "x")
    fields["producers"] = [{**mark, "since": 1} for mark in fields["producers"]]
    assert manifest.load(manifest.sealed({**fields, "codec": "zstd"}), "x") == MANIFEST
    newer = manifest.sealed({**fields, "schema_version": manifest.SCHEMA_VERSION + 1})
    with pytest.raises(ArchiveDamaged, match="unknown schema version 2"):
        manifest.load(newer, "x")


def test_any_change_of_a_manifest_is_detected() -> None:
    content = manifest.dump(MANIFEST)
    for at in range(len(content)):
        changed = bytearray(content)
        changed[at] ^= 1
        try:
            found = manifest.load(bytes(changed), "x")
        except ArchiveDamaged:
            continue
        assert found == MANIFEST, at  # white space


@pytest.mark.parametrize("content", [b"", b"[]", b"{}", b"null", b'{"checksum": ""}', b"\xff"])
def test_content_that_is_no_manifest_is_damage(content: bytes) -> None:
    with pytest.raises(ArchiveDamaged, match="the/path"):
        manifest.load(content, "the/path")


def chosen(*attributes: dict[str, object]) -> dict[str, list[str]]:
    count = NameCount()
    count.add([encode(Event("d", "t", given)) for given in attributes])
    return count.chosen()


def test_names_are_chosen_by_the_type_of_each_value() -> None:
    found = chosen({"a": 1, "b": 1.0, "c": "x", "d": True, "e": None, "f": [1], "g": {"h": 1}})
    assert found == {"int": ["a"], "float": ["b"], "text": ["c"], "bool": ["d"]}
    assert chosen({"a": 1}, {"a": "x"}) == {"int": ["a"], "text": ["a"]}


def test_a_name_with_an_oversized_value_has_no_column() -> None:
    assert chosen({"a": 1, "b": 1}, {"a": 1 << 63}) == {"int": ["b"]}
    assert chosen({"a": -(1 << 63)}) == {"int": ["a"]}
    assert chosen({"": 1, "\n": 1, "x" * (limits.NAME_CHARS_MAX + 1): 1}) == {}


def test_beyond_the_limit_only_the_most_frequent_names_have_columns(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(limits, "ARCHIVE_ATTRIBUTES_MAX", 2)
    assert chosen({"a": 1, "b": 1, "c": 1}, {"b": 1, "c": 1}, {"c": 1}) == {"int": ["b", "c"]}
