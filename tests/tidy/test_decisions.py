"""The decision records: consecutive numbers, one form, and an index that lists each of them."""

import re
from pathlib import Path

from tests.tidy.source import HOME

FOLDER = HOME / "docs" / "decisions"
NUMBERED = re.compile(r"(\d{4})-[a-z0-9]+(?:-[a-z0-9]+)*\.md")
TITLE = re.compile(r"# (\d+)\. (.+)")
DATE = r"20\d\d-\d\d-\d\d"
LINK = r"\[(\d+)\]\((\d{4}-[a-z0-9-]+\.md)\)"
STATUS = re.compile(
    rf"Status: (?:accepted, ({DATE})(?:; revised {DATE})?(?:; amended by {LINK}, {DATE})*"
    rf"|superseded by {LINK}, {DATE} \(accepted ({DATE})\))"
)
ROW = re.compile(rf"\| \[(\d{{4}})\]\(([^)]+)\) \| (.+) \| ([^|]+) \| ({DATE}) \|")
SECTIONS = ["Context", "Decision", "Consequences"]


def records() -> list[Path]:
    """Return the files of the records, by number."""
    return sorted(file for file in FOLDER.iterdir() if file.name != "README.md")


def parts(file: Path) -> tuple[str, str, list[str]]:
    """Return the title line of a record, its status, and its other paragraphs and headings."""
    title, status, *rest = file.read_text().strip().split("\n\n")
    return title, " ".join(status.split()), rest


def test_records_are_numbered_consecutively() -> None:
    for number, file in enumerate(records(), 1):
        name = NUMBERED.fullmatch(file.name)
        assert name, f"{file.name}: a record is named NNNN-kebab-title.md"
        assert int(name[1]) == number, f"{file.name}: the next number is {number:04d}"
        title = TITLE.fullmatch(parts(file)[0])
        assert title, f"{file.name}: the first line is `# N. Title`"
        assert int(title[1]) == number, f"{file.name}: the title has another number"


def test_each_record_has_a_status_and_three_sections() -> None:
    for file in records():
        _, status, rest = parts(file)
        assert STATUS.fullmatch(status), f"{file.name}: {status}"
        headings = [part.removeprefix("## ") for part in rest if part.startswith("## ")]
        assert headings == SECTIONS, f"{file.name}: {headings}"
        empty = [one for one, after in zip(rest, [*rest[1:], "#"], strict=True)
                 if one.startswith("#") and after.startswith("#")]  # fmt: skip
        assert not empty, f"{file.name}: nothing follows {empty}"


def test_status_links_have_the_number_of_their_target() -> None:
    for file in records():
        for number, target in re.findall(LINK, parts(file)[1]):
            assert (FOLDER / target).exists(), f"{file.name}: {target}"
            assert int(number) == int(target[:4]), f"{file.name}: {number} is not {target}"


def test_index_lists_exactly_the_records() -> None:
    rows = ROW.findall((FOLDER / "README.md").read_text())
    assert sorted(row[1] for row in rows) == [file.name for file in records()]
    for number, name, title, status, date in rows:
        heading, stated, _ = parts(FOLDER / name)
        assert heading == f"# {int(number)}. {title}", name
        assert status.split(",")[0].split()[0] == stated.split()[1].rstrip(","), name
        assert re.findall(LINK, status) == re.findall(LINK, stated), f"{name}: {status}"
        found = STATUS.fullmatch(stated)
        assert found, stated
        assert date in found.groups(), f"{name}: {date}"
