"""The judge of the fault runs finds what it is there to find: each kind of wrong, made by hand."""

from pathlib import Path

import pytest
from eventhub_client.types import Cursor

from tests.chaos.events import Interest, Name
from tests.chaos.hub import HubUnderTest
from tests.chaos.journal import Answer, Journal, Promise, places_of, read_promises
from tests.chaos.judge import Judge, differs
from tests.chaos.memory import MIB, Sample, slope_of
from tests.chaos.readers import Seen, Sight
from tests.chaos.slow import frames, masked
from tests.chaos.stored import segments_wrong

EVENT = {"name": "e.1.1", "color": "red", "at": 0.0}


@pytest.mark.parametrize(
    ("segments", "word"),
    [
        ([(1, "a", 1, 5), (2, "b", 7, None)], "begins at 7 after 5"),
        ([(1, "a", 1, 5), (2, "b", 5, None)], "begins at 5 after 5"),
        ([(1, "a", 1, None), (2, "b", 6, None)], "is open, but not the last"),
        ([(1, "a", 1, 60), (2, "b", 61, None)], "more than 50"),
        ([(1, "a", 2, None)], "the first segment begins at 2"),
        ([(1, "a", 1, 5)], "no segment is open"),
    ],
)
def test_segments_that_do_not_join_are_found(segments: list[tuple[object, ...]], word: str) -> None:
    [problem] = segments_wrong(segments, 50)
    assert word in problem


def test_segments_that_join_are_right() -> None:
    assert segments_wrong([(1, "a", 1, 50), (2, "b", 51, None)], 50) == []


@pytest.mark.parametrize(
    ("found", "word"),
    [
        ([Sight("a", 1, "x")], "1 sights instead of 2"),
        ([Sight("a", 1, "x"), Sight("a", 2, "z")], "sight 1"),
        ([Sight("a", 2, "y"), Sight("a", 1, "x")], "sight 0"),
        ([Sight("a", 1, "x"), Sight("b", 2, "y")], "sight 1"),
        ([Sight("a", 1, "x"), Sight("a", 2, "y"), Sight("a", 2, "y")], "3 sights"),
    ],
)
def test_a_reader_that_saw_something_else_is_found(found: list[Sight], word: str) -> None:
    [problem] = differs("reader", [Sight("a", 1, "x"), Sight("a", 2, "y")], found)
    assert word in problem


def test_a_broken_chain_is_found() -> None:
    seen = Seen("reader", "alpha", Interest())
    seen.event(Cursor("a", 3), 0, EVENT)
    seen.event(Cursor("a", 5), 3, EVENT)
    assert seen.problems == []
    seen.event(Cursor("a", 7), 6, EVENT)
    assert seen.problems == ["reader: knows 5, but the next frame follows 6"]


def test_a_promise_that_the_log_does_not_keep_is_found() -> None:
    judge = Judge(HubUnderTest.__new__(HubUnderTest), "", ["alpha"])
    judge.streams["alpha"].names, judge.streams["alpha"].segments = ["x"], ["a"]
    judge.note_places("alpha", 0)
    assert judge.promises_wrong({"x": Promise("alpha", "a", 1)}) == []
    [missing] = judge.promises_wrong({"y": Promise("alpha", "a", 2)})
    assert "not in the log" in missing
    [moved] = judge.promises_wrong({"x": Promise("alpha", "b", 1)})
    assert "was promised as" in moved
    judge.streams["alpha"].names.append("x")
    [twice] = judge.note_places("alpha", 1)
    assert "stored twice" in twice


def test_an_answer_names_a_place_for_each_event_and_the_file_remembers_it(tmp_path: Path) -> None:
    names = [Name("e", 1, number) for number in (1, 2, 3)]
    answer = Answer([["s", 8, 8], ["t", 9, 9]], [[1, "s", 4]])
    assert places_of(answer, 3) == [("s", 8), ("s", 4), ("t", 9)]
    with pytest.raises(ValueError, match="4 events"):
        places_of(answer, 4)
    with Journal(tmp_path / "journal") as journal:
        journal.promise("alpha", names, answer, 0.0)
        assert read_promises(journal.path) == journal.promised
    assert journal.promised["e.1.2"] == Promise("alpha", "s", 4)


def test_growth_is_a_line_through_the_samples_after_the_start() -> None:
    level = [Sample(at, 50 * MIB) for at in range(0, 60, 5)]
    rising = [Sample(60 + at, int((50 + at / 30) * MIB)) for at in range(0, 120, 5)]
    assert slope_of([*level, *rising], 60, 175) == pytest.approx(2.0, abs=0.01)
    assert slope_of(level, 0, 175) is None  # it ended early


def test_a_raw_reader_understands_frames_of_all_sizes_in_pieces() -> None:
    payloads = [b"", b"x" * 125, b"y" * 126, b"z" * 70_000]
    wire = b"".join(
        bytes([0x81])
        + (
            bytes([n])
            if n < 126
            else b"\x7e" + n.to_bytes(2)
            if n < 65536
            else b"\x7f" + n.to_bytes(8)
        )
        + payload
        for payload in payloads
        for n in [len(payload)]
    )
    buffer, found = bytearray(), []
    for at in range(0, len(wire), 999):
        buffer += wire[at : at + 999]
        found += frames(buffer)
    assert found == [(1, payload) for payload in payloads]
    assert not buffer
    assert masked(1, b"ab") == b"\x81\x82\0\0\0\0ab"
