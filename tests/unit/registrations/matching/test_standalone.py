"""RDY-53: languages and matchers in programs without a hub or Django."""

import json
import os
import subprocess
import sys
from pathlib import Path

import orjson
import pytest
from hypothesis import given

from eventhub.event.envelope import Event
from eventhub.event.json_codec import event_json
from registrations.filters.ast import Path as Field
from registrations.filters.values import ENVELOPE, value_of
from registrations.matching.dicts import event_from_dict
from tests.unit.eventhub.event.strategies import events

PROGRAM = """
import json, sys
from registrations.filters.languages import parse
from registrations.matching.alternatives import FilterMatcher
from registrations.matching.dicts import event_from_dict
from registrations.matching.spec import specs_of
from registrations.matching.strategies import STRATEGIES, new_matcher

filters = {
    1: ("pairs", {"type": "order", "attributes": {"country": "NO"}}),
    2: ("predicate", "(and (> total 9) (not (exists refund)))"),
    3: ("ready", "shop::order | 'new' in $tags"),
    4: ("eventbridge", {"detail": {"total": [{"numeric": ["<", 10]}]}}),
    5: ("propositional", "(and total country)"),
}
received = json.load(sys.stdin)
found = {}
for strategy in STRATEGIES:
    matcher = FilterMatcher(new_matcher(strategy))
    for id, (language, source) in filters.items():
        matcher.add(id, specs_of(parse(language, source).node))
    found[strategy] = [sorted(matcher.match(event_from_dict(one))) for one in received]
strange = [name for name in sys.modules if name.partition(".")[0] in (
    "django", "rest_framework", "channels", "celery", "psycopg", "redis")]
print(json.dumps({"found": found, "strange": strange}))
"""
RECEIVED = """[
    {"domain": "shop", "type": "order", "attributes": {"country": "NO", "total": 12}},
    {"domain": "shop", "type": "order", "attributes": {"total": "9", "tags": ["new", "hot"]}},
    {"type": "visit", "attributes": {"country": "NO", "total": 40, "refund": null}, "mask": "5"},
    {}
]"""
EXPECTED = [[1, 2, 5], [3, 4], [5], []]


ENDS = """
from eventhub.event.envelope import Event
from registrations.matching.index import IndexMatcher, IndexOptions
from registrations.matching.spec import Spec

def hierarchy(event):  # whose module holds the matcher, which holds this
    return (event.type,) if matcher else ()

matcher = IndexMatcher(hierarchy, IndexOptions(first=1, least=1))
matcher.add(1, Spec(pairs=(("a", 1),)))
assert matcher.match(Event("d", "t", {"a": 1})) == [1]
"""


def test_a_program_with_a_live_matcher_ends_without_warnings() -> None:
    """The compiled engine is on a reference cycle, which the garbage collector must traverse."""
    root = Path(__file__).parents[4]
    done = subprocess.run(
        [sys.executable, "-c", ENDS], cwd=root, capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.req("RDY-53")
def test_a_program_matches_dictionaries_without_a_hub_or_settings(tmp_path: Path) -> None:
    kept = ("PATH", "LANG", "LC_ALL")
    env = {name: os.environ[name] for name in kept if name in os.environ}
    root = Path(__file__).parents[4]
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM],
        input=RECEIVED,
        env={**env, "PYTHONPATH": str(root)},
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr

    printed = json.loads(done.stdout)
    assert printed["strange"] == []
    assert len(printed["found"]) >= 7
    assert all(found == EXPECTED for found in printed["found"].values()), printed["found"]


@given(events())
def test_filters_give_equal_results_for_a_received_event(event: Event) -> None:

    received = event_from_dict(orjson.loads(event_json(event)))
    fields = [Field(name, "envelope") for name in sorted(ENVELOPE)]
    fields += [Field(name) for name in event.attributes]
    fields += [Field(name, "environment") for name in event.environment or {}]
    for field in fields:
        assert value_of(field, received) == value_of(field, event), field
