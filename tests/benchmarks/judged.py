"""Checks whether registrations that were created, changed and deleted got exactly what they
requested, from what a run of `churn` sent and received, and from the bounds that the hub reports
for each version. Plain.
"""

from bisect import bisect_left, bisect_right
from collections import Counter, defaultdict
from typing import Any, NamedTuple

from tests.benchmarks.hub import Hub

Seen = dict[str, Any]  # load/churn.py writes it
VERSIONS = """
    SELECT r.id, r.key, v.filter -> 'attributes' ->> 'device', e.url,
           f.sequences[array_position(f.streams, %s)], u.sequences[array_position(u.streams, %s)]
      FROM registrations r
      JOIN registration_versions v ON v.registration_id = r.id
      JOIN endpoints e ON e.id = v.endpoint_id
      JOIN barriers f ON f.id = v.from_barrier
      LEFT JOIN barriers u ON u.id = v.until_barrier
     WHERE starts_with(r.key, %s)
     ORDER BY r.id, v.number
"""


class Coming(NamedTuple):
    """What was received; the batches of events, and how many other registrations each matches."""

    seen: Seen
    batches: list[list[dict[str, Any]]]
    matching: list[list[int]]


class Version(NamedTuple):
    """A version, in force after one sequence of the stream up to another."""

    registration: int
    key: str
    device: str
    path: str  # of its endpoint
    since: int
    until: int | None


class Judged(NamedTuple):
    problems: list[str]
    figures: dict[str, float]


def judge(hub: Hub, stream_id: int, prefix: str, coming: Coming) -> Judged:
    versions = versions_of(hub, stream_id, prefix)
    seen = coming.seen
    problems = [f"refused: {one}" for one in seen["bulk"]["refused"]]
    problems += [f"{one.key} never ended" for one in versions if one.until is None]
    problems += places_wrong(versions, seen)
    expected = expected_of(versions, coming)
    problems += calls_wrong(expected, seen["calls"])
    others, events = _others(coming), sum(last - first + 1 for _, first, last, *_ in _runs(seen))
    acknowledged = {
        sequence: len(registrations)
        for path, sequence, registrations in seen["calls"]
        if path == "fleet"
    }
    problems += [
        f"event {sequence} went to {acknowledged.get(sequence, 0)} of the others"
        f" instead of {others.get(sequence, 0)}"
        for sequence in sorted(acknowledged.keys() | others.keys())
        if acknowledged.get(sequence, 0) != others.get(sequence, 0)
    ]
    matches = sum(others.values()) + sum(map(len, expected.values()))
    return Judged(
        problems,
        {
            "matches_per_event": matches / max(events, 1),
            "versions": float(len(versions)),
            "callbacks": float(len(seen["calls"])),
            "matches_of_changing": float(sum(map(len, expected.values()))),
        },
    )


def versions_of(hub: Hub, stream_id: int, prefix: str) -> list[Version]:
    rows = hub.rows(VERSIONS, stream_id, stream_id, prefix)
    return [
        Version(id, key, device, url.rpartition("/")[2], since, until)
        for id, key, device, url, since, until in rows
    ]


def expected_of(versions: list[Version], coming: Coming) -> dict[tuple[str, int], list[int]]:
    """Return the registrations with which each endpoint must get each event."""
    hot: dict[str, list[int]] = defaultdict(list)
    for which, first, *_ in _runs(coming.seen):
        for sequence, event in enumerate(coming.batches[which], first):
            hot[event["attributes"]["device"]].append(sequence)
    expected: dict[tuple[str, int], list[int]] = defaultdict(list)
    for version in versions:
        there = hot.get(version.device, [])
        begin = bisect_right(there, version.since)
        end = len(there) if version.until is None else bisect_right(there, version.until)
        for sequence in there[begin:end]:
            expected[version.path, sequence].append(version.registration)
    return expected


def calls_wrong(
    expected: dict[tuple[str, int], list[int]], calls: list[tuple[str, int, list[int]]]
) -> list[str]:
    """Return missing, unexpected and repeated callbacks."""
    came = {(path, sequence): registrations for path, sequence, registrations in calls}
    times = Counter((path, sequence) for path, sequence, _ in calls)
    problems = [f"event {sequence} came {n} times" for (_, sequence), n in times.items() if n > 1]
    mine = {key for key in came if key[0] != "fleet"}
    problems += [f"{key} never came" for key in expected.keys() - mine]
    problems += [f"{key} was not asked for" for key in mine - expected.keys()]
    return problems + [
        f"{key} came for {came[key]} instead of {sorted(expected[key])}"
        for key in expected.keys() & mine
        if came[key] != sorted(expected[key])
    ]


def places_wrong(versions: list[Version], seen: Seen) -> list[str]:
    """Check that every change's position is at or after what was acknowledged before its line was
    sent, and before what was sent after it was acknowledged.
    """
    by_key: dict[str, list[Version]] = defaultdict(list)
    for version in versions:
        by_key[version.key].append(version)
    subscription = sorted((acknowledged, last) for _, _, last, _, acknowledged in seen["batches"])
    sent_of = sorted((sent, first) for _, first, _, sent, _ in seen["batches"])
    acknowledged_at, acknowledged = (
        [at for at, _ in subscription],
        _running([n for _, n in subscription], max),
    )
    sent_at = [at for at, _ in sent_of]
    coming = _running([n for _, n in reversed(sent_of)], min)[::-1]
    problems = []
    for line, (op, key) in enumerate(seen["ops"], 1):
        place = _place(by_key.get(key, []), op)
        sent, stored = (
            _when(seen["bulk"]["sent"], line),
            _when(seen["bulk"]["acknowledged"], line),
        )
        before = bisect_left(acknowledged_at, sent)
        after = bisect_right(sent_at, stored)
        least = acknowledged[before - 1] if before else 0
        most = coming[after] if after < len(coming) else None
        if place is None or place < least or (most is not None and place >= most):
            problems.append(f"{op} of {key} is at {place}, not between {least} and {most}")
    return problems


def _place(versions: list[Version], op: str) -> int | None:
    """Return the position at which a change took effect."""
    if not versions or (op == "change" and len(versions) < 2):
        return None
    if op == "create":
        return versions[0].since
    return versions[-1].since if op == "change" else versions[-1].until


def _when(times: list[tuple[int, int]], line: int) -> int:
    """Return when a line was sent or acknowledged: the time of the first record that covers it."""
    return times[bisect_left(times, line, key=lambda one: one[0])][1]


def _running(values: list[int], best: Any) -> list[int]:
    found: list[int] = []
    for value in values:
        found.append(best(found[-1], value) if found else value)
    return found


def _others(coming: Coming) -> dict[int, int]:
    """Return how many of the population each event matches, where any."""
    return {
        sequence: count
        for which, first, *_ in _runs(coming.seen)
        for sequence, count in enumerate(coming.matching[which], first)
        if count
    }


def _runs(seen: Seen) -> list[tuple[int, int, int, int, int]]:
    """Return the batches in the stream's order: number, first, last, sent, acknowledged."""
    return sorted(seen["batches"], key=lambda one: one[1])
