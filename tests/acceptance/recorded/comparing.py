"""Compares two recordings, and says in words where they differ."""

import json
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

Record = dict[str, Any]
_ASKED = ("who", "line", "case", "with", "sent")
_SHOWN_CHARS_MAX = 300


def read(file: Path) -> list[Record]:
    return [json.loads(line) for line in file.read_text().splitlines()]


def write(file: Path, records: list[Record]) -> None:
    lines = [json.dumps(record, ensure_ascii=False) for record in records]
    file.write_text("".join(f"{line}\n" for line in lines))


def differences(before: list[Record], now: list[Record]) -> list[str]:
    """Return each call whose answers differ, in a readable form, and calls that only one side
    has.
    """
    old, new = _by_call(before), _by_call(now)
    both = [_differing(old[name], new[name]) for name in old if name in new]
    gone = [f"{_title(old[name])}\n    is not made any more" for name in old if name not in new]
    added = [f"{_title(new[name])}\n    was not made before" for name in new if name not in old]
    return [text for text in (*both, *gone, *added) if text]


def _by_call(records: list[Record]) -> dict[str, Record]:
    """Return the records by call and number of earlier equal calls: an added call moves no
    others.
    """
    seen: Counter[str] = Counter()
    found = {}
    for record in records:
        asked = json.dumps([record.get(name) for name in _ASKED])
        seen[asked] += 1
        found[f"{asked} {seen[asked]}"] = record
    return found


def _differing(before: Record, now: Record) -> str:
    places = [
        place
        for part in ("status", "headers", "body", "missing")
        for place in _places(before.get(part), now.get(part), part)
    ]
    return "\n    ".join([_title(now), *places]) if places else ""


def _title(record: Record) -> str:
    sent = "".join(f" {json.dumps(record[name])}" for name in ("with", "sent") if name in record)
    return f"#{record['number']} {record['who']}: {record['line']}{_short(sent)}"


def _places(before: Any, now: Any, place: str) -> Iterator[str]:
    if isinstance(before, dict) and isinstance(now, dict):
        for name in {**before, **now}:
            if name not in now:
                yield f"{place}.{name}: {_json(before[name])} is missing now"
            elif name not in before:
                yield f"{place}.{name}: {_json(now[name])} is new"
            else:
                yield from _places(before[name], now[name], f"{place}.{name}")
    elif isinstance(before, list) and isinstance(now, list) and len(before) == len(now):
        for index, (one, other) in enumerate(zip(before, now, strict=True)):
            yield from _places(one, other, f"{place}.{index}")
    elif before != now or type(before) is not type(now):
        yield f"{place}: before {_json(before)}\n        now    {_json(now)}"


def _json(value: Any) -> str:
    return _short(json.dumps(value, ensure_ascii=False))


def _short(text: str) -> str:
    return text if len(text) <= _SHOWN_CHARS_MAX else f"{text[:_SHOWN_CHARS_MAX]}..."
