"""The list of requirements and the markers of the tests agree."""

import textwrap
from pathlib import Path

import pytest

from tests import requirements
from tests.requirements import HOME, Marked, Row, marked_tests, report, rows

KNOWN = [Row("EMC-01", "calls", "api.md"), Row("EMC-02", "numbers", "event.md")]


def test_every_marker_names_a_row() -> None:
    known = rows((HOME / "docs" / "requirements.md").read_text())
    assert report(known, list(marked_tests(HOME / "tests"))).unknown == []


def test_every_row_names_a_section_that_exists() -> None:
    for row in rows((HOME / "docs" / "requirements.md").read_text()):
        page, _, section = row.where.partition(", ")
        text = (HOME / "docs" / page).read_text()
        title = section.strip('"')
        assert any(line.startswith("#") and title in line for line in text.splitlines()), row


def test_markers_of_functions_classes_and_modules_are_found(tmp_path: Path) -> None:
    file = tmp_path / "test_some.py"
    file.write_text(
        textwrap.dedent("""
        import pytest
        pytestmark = [pytest.mark.req("EMC-01"), pytest.mark.slow]

        @pytest.mark.req("EMC-02", "EMC-03")
        async def test_one(): ...

        class TestMore:
            @pytest.mark.req("EMC-04")
            def test_two(self): ...

        def no_test(): ...
        """)
    )
    found = [(test.id, test.test) for test in marked_tests(tmp_path)]
    assert found == [
        ("EMC-01", "test_one"),
        ("EMC-02", "test_one"),
        ("EMC-03", "test_one"),
        ("EMC-01", "test_two"),
        ("EMC-04", "test_two"),
    ]


def test_row_without_a_test_is_missing_and_unknown_row_is_told() -> None:
    found = report(KNOWN, [Marked("EMC-01", Path("a"), "t"), Marked("XXX-99", Path("a"), "t")])
    assert found.missing == ["EMC-02"]
    assert [test.id for test in found.unknown] == ["XXX-99"]
    assert "MISSING" in found.lines[-1]


def test_row_that_stands_twice_is_an_error() -> None:
    line = "| EMC-01 | calls | api.md |\n"
    with pytest.raises(ValueError, match="EMC-01"):
        rows(line * 2)


def test_missing_rows_fail_only_when_asked(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "docs").mkdir()
    (tmp_path / "tests").mkdir()
    (tmp_path / "docs" / "requirements.md").write_text("| EMC-01 | calls | api.md |\n")
    monkeypatch.setattr(requirements, "HOME", tmp_path)
    assert requirements.main([]) == 0
    assert requirements.main(["--check"]) == 1
