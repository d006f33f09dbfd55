"""The comparison finds a mistake planted in each engine of the match index, in its builder or in
the matcher on top.
"""

import importlib.util
import os
import re
import shutil
import subprocess
import sys
import sysconfig
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import nanobind
import numpy as np
import pytest

from eventhub.event.envelope import Event
from registrations.filters.ast import Compare, Const
from registrations.filters.ast import Path as Field
from registrations.match_index.engines import (
    compiled_engine,
    interval_lookup,
    lookup,
    numpy_engine,
    python_engine,
    residual,
    text_lookup,
)
from registrations.match_index.format import assemble, numbering, terms, tombstones
from registrations.match_index.format.builder import EpochPlan
from registrations.match_index.format.columns import NOT
from registrations.match_index.format.errors import IndexDamaged
from registrations.matching.index import IndexMatcher
from registrations.matching.scan import ScanMatcher
from registrations.matching.spec import Spec
from tests.unit.registrations.match_index import ranges
from tests.unit.registrations.match_index.texts import texts_and_events
from tests.unit.registrations.match_index.worlds import OFTEN, built, found, indexed, names
from tests.unit.registrations.matching import filters
from tests.unit.registrations.matching.conditions import hierarchy
from tests.unit.registrations.matching.programs import Add, caught, differs, seeded

LENGTH = 500
SOON = 200  # steps that reveal most mistakes


def nothing(*args: Any, **named: Any) -> None:
    return None


def first_member(value: Any) -> Any:
    return true_members_of(value)[:1]


def first_object(value: Any) -> dict[str, Any]:
    return true_fields_inside(value[:1] if isinstance(value, list) else value)


def without_applications(look: Any, event: Event) -> list[int]:
    return true_gates_of_event(look, event._replace(application=event.application[:1]))


def ranks_ignored(look: Any, value: Any, low: int, high: int) -> int:
    return true_number_position(look, (value[0], -1), low, high)


def excluded_keys_ignored(words: Any, present: Any, *, has_keys_only: bool) -> Any:
    return true_failing(words & np.uint32(~NOT & 0xFFFFFFFF), present, has_keys_only=False)


def first_word_only(look: Any, first: int, end: int, passes: Any, due: list[int]) -> None:
    for conjunction in range(first, end):
        at, until = look.rest_at[conjunction : conjunction + 2]
        if at == until or look.rest[at] >= NOT or look.present[look.rest[at]]:
            due.append(conjunction)


def as_text(value: Any) -> bytes | None:
    return b"s" + str(value).encode("utf-8", "surrogatepass")


def strictness_lost(key: Any) -> int:
    return 1 - true_rank_of(key)


class AlwaysPasses(dict[int, bool]):
    def __init__(self, *args: Any) -> None:
        super().__init__()

    def __missing__(self, test: int) -> bool:
        return True


class Remembers(python_engine.Verdicts):
    """Verdicts that are kept for the next event."""

    kept: dict[int, bool] = {}  # noqa: RUF012 - shared on purpose

    def __missing__(self, test: int) -> bool:
        if test not in self.kept:
            self.kept[test] = super().__missing__(test)
        return self.kept[test]


true_members_of = lookup.members_of
true_fields_inside = lookup.fields_inside
true_gates_of_event = lookup.gates_of_event
true_number_position = lookup.number_position
true_failing = numpy_engine.failing
true_rank_of = numbering.rank_of

PYTHON: list[tuple[Any, str, Any]] = [
    (lookup, "members_of", first_member),
    (lookup, "mark_inside", nothing),
    (lookup, "fields_inside", first_object),
    (lookup, "mark_sets", nothing),
    (lookup, "mark_types", nothing),
    (lookup, "mark_text_keys", nothing),
    (text_lookup, "names_of_ends", lambda beginnings, ends, data: ()),
    (text_lookup, "fits", lambda parts, text: True),
    (lookup, "gates_of_event", without_applications),
    (lookup, "number_position", ranks_ignored),
    (lookup, "value_tail", as_text),
    (residual, "holds", lambda node, event, hierarchy: True),
]
OWN: dict[str, list[tuple[Any, str, Any]]] = {
    "python": [
        (python_engine, "unmark", nothing),
        (python_engine, "Verdicts", AlwaysPasses),
        (python_engine, "Verdicts", Remembers),
        (python_engine, "verify", first_word_only),
        (interval_lookup, "bisect_left", lambda lows, below, first, end: end),
        (tombstones.Tombstones, "mark_removed", nothing),
    ],
    "numpy": [
        (numpy_engine, "unmark", nothing),
        (numpy_engine, "Verdicts", AlwaysPasses),
        (numpy_engine, "Verdicts", Remembers),
        (numpy_engine, "failing", excluded_keys_ignored),
        (numpy_engine.NumpyEngine, "mark_removed", nothing),
    ],
}
CASES = [(engine, case) for engine in OWN for case in (*PYTHON, *OWN[engine])]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("engine", "case"), CASES, ids=[f"{engine}-{case[1]}" for engine, case in CASES]
)
def test_a_mistake_of_an_engine_in_python_is_caught(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, engine: str, case: tuple[Any, str, Any]
) -> None:
    Remembers.kept.clear()
    if engine == "numpy":
        for few in ("SPAN_FEW", "VERIFIED_FEW", "COPIED_FEW"):
            monkeypatch.setattr(numpy_engine, few, -1)
    monkeypatch.setattr(*case)
    assert is_wrong(engine, tmp_path)


def is_wrong(engine: str, root: Path) -> bool:
    """Return whether a comparison reveals a mistake; the quick ones come first."""
    return (
        differs(seeded(1, SOON), ScanMatcher, wrong=indexed(engine)) is not None
        or caught_with_ranges(engine, root)
        or caught_with_filters(engine, SOON)
        or caught_with_texts(engine, root)
        or caught_with_collisions(engine, root)
        or caught(indexed(engine), ScanMatcher, LENGTH)
        or caught_with_filters(engine, 2 * LENGTH)
    )


def caught_with_texts(engine: str, root: Path) -> bool:
    world = texts_and_events(2, 6)
    base = built(root / "texts", world.specs)
    return found(base, engine, world.events, hierarchy) != world.expected


def caught_with_ranges(engine: str, root: Path) -> bool:
    specs, events = ranges.specs_of(2, 90), ranges.events_of(2, 60)
    expected = [ranges.expected_of(specs, event) for event in events]
    return found(built(root / "ranges", specs), engine, events, hierarchy) != expected


def caught_with_filters(engine: str, length: int) -> bool:
    """Return whether few filters, nearly all in the index, reveal the mistake."""
    options = OFTEN._replace(first=2, least=2, share=0.0)
    met = filters.differs(filters.seeded(1, length), indexed(engine, options))
    return isinstance(met, filters.Wrong)


SPECS = {id: Spec(pairs=(("x", id),)) for id in range(20)}
EVENTS = [Event("", "", {"x": id}) for id in range(40)]


def caught_with_collisions(engine: str, root: Path) -> bool:
    """Return whether names whose hashes are all the same reveal the mistake."""
    base = built(root / "collisions", SPECS, EpochPlan(hash_mask=0))
    expected = [[id] if id < 20 else [] for id in range(40)]
    try:
        return found(base, engine, EVENTS, hierarchy) != expected
    except IndexDamaged:
        return True


BUILDER: list[tuple[Any, str, Any]] = [
    (assemble, "rank_of", strictness_lost),
    (terms, "FLIPPED", {op: op for op in terms.FLIPPED}),
    (terms, "value_tail", as_text),
    (terms, "anchor_of", lambda nodes: "nowhere"),
]


@pytest.mark.slow
@pytest.mark.parametrize(("module", "name", "wrong"), BUILDER)
def test_a_mistake_of_the_builder_is_caught(
    monkeypatch: pytest.MonkeyPatch, module: Any, name: str, wrong: Any
) -> None:
    terms._test.cache_clear()
    monkeypatch.setattr(module, name, wrong)
    assert caught(indexed("python"), ScanMatcher, LENGTH)
    terms._test.cache_clear()


# --- the matcher ---


class ForgetsTombstones(IndexMatcher):
    def _mark_removed(self, id: int) -> bool:
        return False


class LosesRefusedFilters(IndexMatcher):
    def _take(self, base: Any, refused: set[int]) -> None:
        super()._take(base, set())


@pytest.mark.slow
def test_a_matcher_that_forgets_tombstones_is_caught() -> None:
    def make(hierarchy: Any) -> IndexMatcher:
        return ForgetsTombstones(hierarchy, OFTEN)

    assert caught(make, ScanMatcher, LENGTH)  # type: ignore[arg-type]


@pytest.mark.parametrize("kind", [IndexMatcher, LosesRefusedFilters])
def test_a_matcher_that_loses_filters_that_no_index_stores_is_caught(
    kind: type[IndexMatcher],
) -> None:
    def make(hierarchy: Any) -> IndexMatcher:
        return kind(hierarchy, OFTEN)

    above = Compare(">", Field("x"), Const(1 << 70))  # of more than 64 bits
    others = [Add(id, Spec(pairs=(("x", id),))) for id in range(1, 100)]
    program = [Add(0, Spec(tests=(above,))), *others, Event("", "", {"x": 1 << 71})]
    difference = differs(program, ScanMatcher, wrong=make)  # type: ignore[arg-type]
    assert (difference is None) == (kind is IndexMatcher)


# --- the compiled engine ---

KERNEL = Path(compiled_engine.__file__).parent
HOME = Path(nanobind.include_dir()).parent
MISTAKES: dict[str, tuple[str, str]] = {
    "names are not compared": (
        "names_.text(name_at_[number], name_at_[size_t(number) + 1]) == name",
        "true",
    ),
    "gates are ignored": ("present_.get(gate)) add_range", "true"),
    "a negation is ignored": ("has(word & NUMBER) != (word >= NOT)", "word < NOT || true"),
    "marks are kept for the next event": (": marked_) present_.clear(key)", "void(0)"),
    "an exact name does not take precedence": ("!exact", "true"),
    "a strict threshold matches its value": ("2 * value.second + 1", "2 * value.second"),
    "verdicts are kept for the next event": ("verdicts_[test] = 0", "void(0)"),
    "a filter is returned for each alternative": ("distinct_.add(ids_.at[at])", "true"),
    "tombstones are ignored": ("!gone.count(at)", "true"),
    "1.0 is not 1": ("value == std::floor(value)", "false"),
    "true is false": ("value == Py_True", "false"),
    "the end of a wildcard is not compared": (
        "text.compare(text.size() - tail.size(), tail.size(), tail)",
        "false",
    ),
    "an upper bound is not compared": ("highs[at] >= stab.above", "true"),
    "an address of version 4 is none": (
        "end != view.npos || inet_pton(AF_INET, address_.c_str(), bytes) != 1",
        "true",
    ),
    "only ASCII has lower case": ("PyUnicode_IS_ASCII(text)", "true"),
    "sets of alternatives are unknown": ("key >= implying_end_", "true"),
}
numbers = {title: number for number, title in enumerate(MISTAKES, 1)}


def in_one_file(name: str, taken: set[str]) -> str:
    """Return a source with its own headers inlined."""

    def header(found: re.Match[str]) -> str:
        if found[1] in taken:
            return ""
        taken.add(found[1])
        return in_one_file(found[1], taken)

    text = (KERNEL / name).read_text().replace("#pragma once", "")
    return re.sub(r'^#include "(.*)"$', header, text, flags=re.M)


def with_mistakes(source: str) -> str:
    """Return the kernel with a switch for each mistake; 0 is none."""
    for title, (right, wrong) in MISTAKES.items():
        assert source.count(right) == 1, title
        head, tail = "", ""
        body = right
        for before, after in ((": marked_) ", ""), ("", ") add_range")):
            if before and body.startswith(before):
                head, body = before, body[len(before) :]
            if after and body.endswith(after):
                tail, body = after, body[: -len(after)]
        if "clear" in body or "= 0" in body:
            switched = f"mutant == {numbers[title]} ? {wrong} : void({body})"
        else:
            switched = f"(mutant == {numbers[title]} ? ({wrong}) : ({body}))"
        source = source.replace(right, head + switched + tail)
    source = f"static int mutant = 0;\n{source}"
    plant = 'module.def("plant", [](int number) { mutant = number; });'
    return source.replace("NB_MODULE(kernel, module) {", f"NB_MODULE(kernel, module) {{ {plant}")


def compile_to(made: Path, *words: Path | str) -> None:
    include = [HOME / "include", HOME / "ext/robin_map/include"]
    include.append(Path(sysconfig.get_paths()["include"]))
    flags = ["-O0", "-std=c++17", "-fPIC", "-fvisibility=hidden", "-fno-strict-aliasing"]
    flags += ["-DNDEBUG", "-DNB_DOMAIN=planted", *(f"-I{path}" for path in include)]
    subprocess.run(["g++", *flags, *words, "-o", made], check=True)


def compiled_nanobind(folder: Path) -> Path:
    """Return nanobind for the domain of the kernel with mistakes, which is compiled once for an
    environment and costs three times as much as that kernel.
    """
    kept = Path(sys.prefix, "share", f"nanobind-{nanobind.__version__}-planted.o")
    if not kept.is_file():
        made = folder / kept.name
        compile_to(made, "-c", HOME / "src/nb_combined.cpp")
        kept.parent.mkdir(exist_ok=True)
        part = kept.with_name(f"{kept.name}.{os.getpid()}")
        shutil.copy(made, part)
        part.rename(kept)
    return kept


@pytest.fixture(scope="module")
def planted(tmp_path_factory: pytest.TempPathFactory) -> ModuleType:
    """Build the kernel once, with all mistakes in it, all off."""
    if "compiled" not in names or shutil.which("g++") is None:
        pytest.skip("there is no compiled engine here")
    folder = tmp_path_factory.mktemp("planted")
    source = folder / "kernel.cpp"
    source.write_text(with_mistakes(in_one_file("kernel.cpp", set())))
    made = folder / f"kernel{sysconfig.get_config_var('EXT_SUFFIX')}"
    compile_to(made, "-shared", source, compiled_nanobind(folder))
    spec = importlib.util.spec_from_file_location("kernel", made)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def plant(planted: ModuleType, monkeypatch: pytest.MonkeyPatch) -> Callable[[int], None]:
    monkeypatch.setattr(compiled_engine, "Kernel", planted.Kernel)
    return planted.plant  # type: ignore[no-any-return]


@pytest.mark.slow
@pytest.mark.timeout(240)
def test_the_compiled_engine_is_correct_without_a_mistake_and_wrong_with_each(
    plant: Callable[[int], None], tmp_path: Path
) -> None:
    plant(0)
    assert not is_wrong("compiled", tmp_path / "0")
    missed = []
    for title, number in numbers.items():
        plant(number)
        if not is_wrong("compiled", tmp_path / str(number)):
            missed.append(title)
    plant(0)
    assert missed == []
