"""The list of requirements and the markers of the tests agree."""

import textwrap
from pathlib import Path

import pytest

from tests import requirements
from tests.requirements import HOME, MarkedTest, Row, marked_tests, read_rows, report

ALL = read_rows((HOME / "docs" / "requirements.md").read_text())
PER_DOCUMENT = {"SUN": 30, "EMC": 43, "RDY": 54, "OIF": 32, "FOX": 102}
LINE = "| EMC-01 | Calls | emit and listen | api.md |\n"
BUILT = Row("EMC-01", "Calls", "emit and listen", 'api.md, "Emit"')
OPEN = Row("EMC-38", "Node streams", "node and cluster events", "-")


def shows(id: str) -> MarkedTest:
    return MarkedTest(id, Path("test_a.py"), "test_it")


def test_all_rows_of_the_five_documents_are_listed_in_order() -> None:
    ids = [f"{name}-{n:02}" for name, count in PER_DOCUMENT.items() for n in range(1, count + 1)]
    assert [row.id for row in ALL] == ids


def test_rows_and_markers_agree() -> None:
    assert report(ALL, list(marked_tests(HOME / "tests"))).problems == []


def test_every_claimed_row_names_a_section_that_exists() -> None:
    for row in ALL:
        if row.claimed:
            page, _, section = row.described_in.partition(", ")
            headings = [
                line.lstrip("# ")
                for line in (HOME / "docs" / page).read_text().splitlines()
                if line.startswith("#")
            ]
            assert not section or section.strip('"') in headings, row


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


def test_report_lists_rows_without_a_test_as_not_shown_and_ends_with_totals() -> None:
    found = report([BUILT, OPEN], [shows("EMC-01")])
    assert found.lines == [
        'EMC-01   Calls (api.md, "Emit")',
        "         test_a.py::test_it",
        "EMC-38   Node streams (not built)",
        "         not shown",
        "",
        "2 rows: 1 described as built, 1 shown, 1 not built yet",
    ]
    assert found.problems == []


@pytest.mark.parametrize(
    ("tests", "problem"),
    [
        ([], 'EMC-01 is described in api.md, "Emit", and no test shows it'),
        (["EMC-01", "EMC-38"], "EMC-38 is shown by test_a.py::test_it, and not described anywhere"),
        (["EMC-01", "XXX-99"], "test_a.py::test_it carries XXX-99, and there is no such row"),
    ],
)
def test_report_names_each_disagreement(tests: list[str], problem: str) -> None:
    assert report([BUILT, OPEN], [shows(id) for id in tests]).problems == [problem]


def test_bar_within_a_cell_is_read() -> None:
    [row] = read_rows("| RDY-21 | `\\|\\|` | A \\|\\| B | - |\n")
    assert row == Row("RDY-21", "`||`", "A || B", "-")


@pytest.mark.parametrize(
    "text", [LINE * 2, "| EMC-01 | Calls | api.md |\n", "| EMC-01 | | calls | - |\n"]
)
def test_repeated_or_malformed_row_is_an_error(text: str) -> None:
    with pytest.raises(ValueError, match="EMC-01"):
        read_rows(text)


def test_disagreements_fail_only_with_check(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "docs").mkdir()
    (tmp_path / "tests").mkdir()
    (tmp_path / "docs" / "requirements.md").write_text(LINE)
    monkeypatch.setattr(requirements, "HOME", tmp_path)
    assert requirements.main([]) == 0
    assert requirements.main(["--check"]) == 1
