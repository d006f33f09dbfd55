"""Tests of texts as keys: wildcards whose parts have grams of every size, beginnings and ends, in
lower case too, in every engine.
"""

from collections.abc import Callable
from ipaddress import ip_address
from pathlib import Path
from random import Random

import pytest

from eventhub.event.envelope import Event
from registrations.filters.ast import Path as Field
from registrations.filters.ast import Text
from registrations.filters.evaluate import holds, no_supertypes
from registrations.match_index.engines.available import ENGINES
from registrations.match_index.format.builder import build_columns
from registrations.match_index.format.decode import columns_of
from registrations.match_index.format.index import Base
from registrations.match_index.format.text_keys import GRAM_COSTS, WildcardKey, grams_of
from registrations.matching.cost import every_event_cost
from registrations.matching.memory_index import keyed
from registrations.matching.spec import Spec
from tests.unit.registrations.match_index.texts import texts_and_events
from tests.unit.registrations.match_index.worlds import built, files, found

engines = pytest.mark.parametrize("engine", [*ENGINES])
X = Field("x")


@engines
@pytest.mark.parametrize(("seed", "longest"), [(1, 3), (2, 6), (3, 14), (4, 90)])
def test_texts_are_found_as_they_are_evaluated(
    tmp_path: Path, engine: str, seed: int, longest: int
) -> None:
    world = texts_and_events(seed, longest)
    assert sum(map(len, world.expected)) > len(world.events)
    base = built(tmp_path, world.specs)
    assert found(base, engine, world.events, no_supertypes) == world.expected


def test_an_index_of_texts_is_rebuilt_into_the_same_bytes(tmp_path: Path) -> None:
    base: Base = built(tmp_path / "1", texts_and_events(3, 14).specs)
    build_columns(tmp_path / "2", [columns_of(base.shards[0])])
    assert files(tmp_path / "1") == files(tmp_path / "2")


@engines
def test_each_text_is_found_by_itself(tmp_path: Path, engine: str) -> None:
    """A text visits the conjunctions that it fits, and no others."""
    made: tuple[Callable[[int], Text], ...] = (
        lambda n: Text("suffix", X, f"-{n:03}"),
        lambda n: Text("wildcard", X, f"a*-{n:03}*z"),
        lambda n: Text("equals-ignore-case", X, f"A-B-{n:03}"),
        lambda n: Text("cidr", X, f"10.0.{n // 16}.{n % 16 * 16}/28"),
    )
    for number, test in enumerate(made):
        specs = {id: Spec(tests=(test(id),)) for id in range(500)}
        assert all(keyed(spec) is not None for spec in specs.values())
        base = built(tmp_path / str(number), specs)
        assert base.shards[0].head.tests == 0
        text = ("a-b-123", "a-b-123-z", "a-b-123", "10.0.7.180")[number]
        assert found(base, engine, [Event("", "", {"x": text})], no_supertypes) == [[123]]


def test_a_wildcard_is_found_by_a_rare_gram() -> None:
    wildcards = [WildcardKey("x", (b"customer-", b"%d" % number)) for number in range(5_000, 5_100)]
    grams = grams_of(wildcards)
    assert len({*grams.values()}) == len(wildcards)
    assert {len(name.partition(b":")[2][1:]) for name in grams.values()} == {4}
    assert {len(gram) for gram in map(_of_parts, GRAM_COSTS)} == {*GRAM_COSTS}


def _of_parts(size: int) -> bytes:
    [name] = grams_of([WildcardKey("x", (b"", b"b" * size, b""))]).values()
    return name.partition(b":")[2][1:]


def test_only_wildcards_with_a_longer_part_find_their_filter() -> None:
    """A filter of short parts is compared with most texts, so it counts for the client's budget."""
    for text, cost in (("*a*b*", 2), ("*abc*", 1), ("*abcd*", 0)):
        form = (frozenset({Text("wildcard", X, text)}),)
        assert every_event_cost(form) == cost
    assert every_event_cost((frozenset({Text("cidr", X, "10.0.0.0/8")}),)) == 0


# what is easily taken for an address, or for none
NEARLY = (
    *(
        "1.2.3",
        "1.2.3.4.5",
        "01.2.3.4",
        "1.2.3.256",
        "1.2.3.4 ",
        "1.2.3.4%1",
        "1.2.3.4\0",
        "1.2.3.٤",
    ),
    *(
        ":",
        "::",
        ":::",
        "1::2::3",
        "1:2:3:4:5:6:7:8",
        "1:2:3:4::5:6:7:8",
        "::1%",
        "::1%a%b",
        "::1%a/b",
        "::1%\0",
    ),
    *(
        "::1%é",
        "::1%" + "é" * 60,
        "::1%" + "é" * 61,
        "::ffff:1.2.3.4",
        "::1.2.3.04",
        "12345::",
        "1::g",
    ),
)
BLOCKS = ("0.0.0.0/0", "0.0.0.0/1", "1.2.0.0/16", "1.2.3.4/32", "::/0", "::/1", "::1/128", "::/96")


@engines
def test_addresses_are_read_as_python_reads_them(tmp_path: Path, engine: str) -> None:
    random = Random(3)
    texts = [*NEARLY]
    for _ in range(3_000):
        number = random.choice(
            (random.getrandbits(32), random.getrandbits(128), random.getrandbits(17))
        )
        text = list(str(ip_address(number)))
        for _ in range(random.randrange(3)):
            text[random.randrange(len(text))] = random.choice(("", *":.0f%1", "::"))
        texts.append("".join(text))
    specs = {id: Spec(tests=(Text("cidr", X, block),)) for id, block in enumerate(BLOCKS)}
    events = [Event("", "", {"x": text}) for text in texts]
    expected = [[id for id, spec in specs.items() if holds(spec.tests[0], one)] for one in events]
    assert 1_000 < sum(map(bool, expected)) < 2_800
    assert found(built(tmp_path, specs), engine, events, no_supertypes) == expected
