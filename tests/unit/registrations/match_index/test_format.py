"""The files of a match index: their names and numbers, the same bytes for the same entries, what is
refused, and what a crash of the builder leaves.
"""

import json
from collections.abc import Callable
from math import inf
from pathlib import Path
from random import Random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from eventhub.event.envelope import Event
from registrations.filters.ast import Compare, Const
from registrations.filters.ast import Path as Field
from registrations.filters.evaluate import no_supertypes
from registrations.match_index.engines.available import ENGINES, new_engine
from registrations.match_index.format import layout
from registrations.match_index.format.builder import EpochPlan, IndexEntry, build, build_columns
from registrations.match_index.format.columns import EntryCollector
from registrations.match_index.format.decode import columns_of
from registrations.match_index.format.errors import IndexAbsent, IndexDamaged, NotIndexable
from registrations.match_index.format.index import open_base
from registrations.match_index.format.names import (
    gate_name,
    hash_of,
    number_order,
    value_head,
    value_tail,
)
from registrations.match_index.format.shard import Shard
from registrations.match_index.format.terms import pair_key
from registrations.matching.spec import Spec
from tests.unit.registrations.match_index.collisions import colliding
from tests.unit.registrations.match_index.worlds import answers, built, files, moments, shuffled
from tests.unit.registrations.matching.programs import seeded
from tests.unit.registrations.matching.vocabulary import SCALARS

engines = pytest.mark.parametrize("engine", [*ENGINES])
QUICK = EpochPlan(durable=False)


def specs_of_a_program() -> dict[int, Spec]:
    return [*moments(seeded(4, 800))][-1].specs


# --- names and numbers ---


def test_values_have_equal_names_if_and_only_if_they_are_equal() -> None:
    for one in SCALARS:
        for other in SCALARS:
            equal = one == other and isinstance(one, bool) == isinstance(other, bool)
            assert (value_tail(one) == value_tail(other)) == equal, (one, other)
    for value in (float("nan"), [], {}, [1], b"x"):
        assert value_tail(value) is None
    assert value_tail(10**5000) != value_tail(10**5000 + 1)  # no limit of digits


parts = st.text("ab:=*@1\0é", max_size=4) | st.none()


@given(st.tuples(parts, parts, parts), st.tuples(parts, parts, parts))
def test_names_of_gates_are_distinct(one: tuple[Any, ...], other: tuple[Any, ...]) -> None:
    assert (gate_name(*one) == gate_name(*other)) == (one == other)


@given(st.tuples(st.text(max_size=3), st.text(max_size=3)), st.tuples(st.text(), st.text()))
def test_names_of_pairs_are_distinct(one: tuple[str, str], other: tuple[str, str]) -> None:
    same = pair_key(*one).name == pair_key(*other).name
    assert same == (one == other)
    joined = pair_key(one[0] + ":s" + one[1], "")
    assert joined.name != pair_key(*one).name


numbers = (
    st.integers(-(2**70), 2**70)
    | st.integers(-(2**63), 2**64 - 1)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.sampled_from([2**53, 2**53 + 1, 2.0**53, 2**63 - 1, 2**64 - 1, 1.7e308, -0.0])
    | st.sampled_from([10**400, -(10**400)])
)
thresholds = numbers.filter(lambda one: isinstance(one, float) or -(2**63) <= one < 2**64)


@given(numbers, thresholds)
def test_the_order_of_numbers_is_exact(value: float, threshold: float) -> None:
    one, other = number_order(value), number_order(threshold)
    assert (one < other, one == other) == (value < threshold, value == threshold)


def test_constants_that_no_language_has_are_refused(tmp_path: Path) -> None:
    field = Field("x")
    for spec in (
        Spec(pairs=(("x", float("nan")),)),
        Spec(pairs=(("x", inf), ("y", [1]))),  # type: ignore[arg-type]
        Spec(tests=(Compare(">", field, Const(float("nan"))),)),
        Spec(tests=(Compare("=", field, Const(float("nan"))),)),
        Spec(tests=(Compare("<", Field("trace", "environment"), Const(2**70)),)),
    ):
        with pytest.raises(NotIndexable):
            build(tmp_path, [IndexEntry(1, (spec,))], QUICK)
    with pytest.raises(IndexAbsent):
        open_base(tmp_path)


@engines
def test_crafted_collisions_of_the_hash_do_not_match(tmp_path: Path, engine: str) -> None:
    """Two texts of 60 characters have names with the same XXH64."""
    one, other = colliding(value_head("x") + b"s")
    assert one != other
    assert hash_of(value_head("x") + b"s" + one) == hash_of(value_head("x") + b"s" + other)
    first, second = one.decode(), other.decode()
    base = built(tmp_path, {1: Spec(pairs=(("x", first),))})
    assert answers(base, engine, Event("", "", {"x": first})) == [1]
    assert answers(base, engine, Event("", "", {"x": second})) == []
    base = built(tmp_path, {n: Spec(pairs=(("x", v),)) for n, v in ((1, first), (2, second))})
    assert answers(base, engine, Event("", "", {"x": second})) == [2]


@engines
def test_unpaired_surrogates_and_huge_integers_of_events_do_no_harm(
    tmp_path: Path, engine: str
) -> None:
    half = "\ud800"
    base = built(tmp_path, {1: Spec(pairs=((half, half),)), 2: Spec(half, None, (("n", 10**30),))})
    assert answers(base, engine, Event("", "", {half: half, "\ud801": 1})) == [1]
    assert answers(base, engine, Event(half, "", {"n": [1, float(10**30), 10**30]})) == [2]
    assert answers(base, engine, Event(half, "", {"n": 10**5000})) == []


# --- the same bytes ---


def test_the_same_entries_give_the_same_bytes_in_any_order(tmp_path: Path) -> None:
    specs = specs_of_a_program()
    built(tmp_path / "1", specs)
    built(tmp_path / "2", shuffled(specs))
    assert files(tmp_path / "1") == files(tmp_path / "2")


def test_a_decoded_index_is_rebuilt_into_the_same_bytes(tmp_path: Path) -> None:
    base = built(tmp_path / "1", specs_of_a_program())
    build_columns(tmp_path / "2", [columns_of(base.shards[0])], QUICK)
    assert files(tmp_path / "1") == files(tmp_path / "2")


def test_columns_of_a_job_are_built_as_entries_are(tmp_path: Path) -> None:
    specs = {7: Spec("d", "t", (("x", 1),)), 9: Spec(pairs=(("x", 1),))}
    gathering = EntryCollector()
    for id, spec in specs.items():
        gathering.add(id, (spec,), {})
    build_columns(tmp_path / "2", [gathering.drain()], QUICK)
    built(tmp_path / "1", specs)
    assert files(tmp_path / "1") == files(tmp_path / "2")


def test_several_shards_match_as_one(tmp_path: Path) -> None:
    specs = specs_of_a_program()
    one = built(tmp_path / "1", specs)
    many = built(tmp_path / "2", specs, EpochPlan(shard_entries=20))
    assert (len(one.shards), len(many.shards) > 3, len(one)) == (1, True, len(many))
    for still in moments(seeded(4, 800)):
        for event in still.events[:100]:
            assert answers(one, "python", event) == answers(many, "python", event)
    assert all(many.positions_of(id) for id in specs)
    assert many.positions_of(10**6) == []


def test_additional_columns_are_read_by_dense_position(tmp_path: Path) -> None:
    entries = [
        IndexEntry(id, (Spec(pairs=(("x", id % 3),)),), {"endpoint": -id, "until": id**2})
        for id in Random(1).sample(range(100), 100)
    ]
    build(tmp_path, entries, QUICK._replace(extra=("endpoint", "until"), facts={"zone": "a"}))
    base, columns = open_base(tmp_path), ("endpoint", "until")
    [shard] = base.shards
    for name in ENGINES:
        engine = new_engine(name, shard, no_supertypes)
        positions = engine.match(Event("", "", {"x": 1}), positions=True)
        found = [
            tuple(shard.views[f"extra:{column}"][at] for column in columns) for at in positions
        ]
        assert sorted(found) == sorted((-id, id**2) for id in range(1, 100, 3))
    assert base.manifest.facts == {"zone": "a"}


# --- damaged files ---


def altered(path: Path, at: int, byte: int | None = None) -> None:
    data = bytearray(path.read_bytes())
    data[at] = data[at] ^ 0xFF if byte is None else byte
    path.write_bytes(data)


def cut(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-64])


def header_of(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:100])


HARM: list[tuple[Callable[[Path], None], str]] = [
    (cut, "not the file"),
    (header_of, "not the file"),
    (lambda path: path.write_bytes(b""), "not the file"),
    (lambda path: altered(path, 0), "not the file"),
    (lambda path: altered(path, 60), "not the file"),
]


@pytest.mark.parametrize(("harm", "why"), HARM)
def test_a_file_that_the_manifest_does_not_name_is_refused(
    tmp_path: Path, harm: Callable[[Path], None], why: str
) -> None:
    base = built(tmp_path, specs_of_a_program())
    harm(base.shards[0].path)
    with pytest.raises(IndexDamaged, match=why):
        open_base(tmp_path)


SINGLE: list[tuple[Callable[[Path], None], str]] = [
    (cut, "bytes; its header says"),
    (header_of, "too short"),
    (lambda path: path.write_bytes(b""), "empty"),
    (lambda path: altered(path, 0), "not a match index"),
    (lambda path: path.write_bytes(_with_swapped_byte_order(path.read_bytes())), "byte order"),
    (lambda path: altered(path, 12, 9), "version 9"),
    (lambda path: altered(path, 60), "header is altered"),
    (lambda path: altered(path, layout.HEADER_BYTES + 3), "header is altered"),
]


def _with_swapped_byte_order(data: bytes) -> bytes:
    return data[:8] + data[8:12][::-1] + data[12:]


@pytest.mark.parametrize(("harm", "why"), SINGLE)
def test_a_damaged_header_is_refused_when_a_file_is_opened(
    tmp_path: Path, harm: Callable[[Path], None], why: str
) -> None:
    path = built(tmp_path, specs_of_a_program()).shards[0].path
    harm(path)
    with pytest.raises(IndexDamaged, match=why):
        Shard(path)


def test_a_changed_byte_of_any_section_is_found_by_verify(tmp_path: Path) -> None:
    base = built(tmp_path, specs_of_a_program())
    base.verify()
    path, sections = base.shards[0].path, base.shards[0].sections
    whole = path.read_bytes()
    for name, section in sections.items():
        if section.length:
            path.write_bytes(whole)
            altered(path, section.offset + section.length // 2)
            with pytest.raises(IndexDamaged, match=f"section {name} "):
                Shard(path).verify()


def test_a_manifest_that_was_altered_is_refused(tmp_path: Path) -> None:
    built(tmp_path, specs_of_a_program())
    manifest = tmp_path / "manifest.json"
    fields = json.loads(manifest.read_text())
    fields["index"]["entries"] += 1
    manifest.write_text(json.dumps(fields))
    with pytest.raises(IndexDamaged, match="altered"):
        open_base(tmp_path)
    for text in ("{", "[" * 200_000):
        manifest.write_text(text)
        with pytest.raises(IndexDamaged, match="cannot be read"):
            open_base(tmp_path)


@engines
def test_no_engine_reads_outside_of_a_damaged_file(tmp_path: Path, engine: str) -> None:
    """Without verification, an offset out of range raises an error and does not end the process."""
    events = [event for still in moments(seeded(4, 800)) for event in still.events][:60]
    base = built(tmp_path, specs_of_a_program())
    [shard] = base.shards
    path, whole, random = shard.path, shard.path.read_bytes(), Random(3)
    refused = 0
    for name, section in shard.sections.items():
        for value in (b"\xff", b"\x7f", b"\0"):
            if not section.length or name == "tests":
                continue
            data = bytearray(whole)
            for at in random.sample(range(section.length), min(20, section.length)):
                data[section.offset + at : section.offset + at + 1] = value
            (path.with_suffix(".bad")).write_bytes(data)
            matcher = new_engine(engine, Shard(path.with_suffix(".bad")), no_supertypes)
            try:
                for event in events:
                    matcher.match(event)
                    positions = matcher.match(event, positions=True)
                    assert all(0 <= position < shard.head.entries for position in positions)
            except IndexDamaged:
                refused += 1
    assert refused > 10
