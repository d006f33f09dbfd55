"""An encoded pattern is the pattern, also for the engine, and its format keeps its meaning."""

import pytest
from hypothesis import given, settings

from registrations.filters.ast import In, OfType, Path, Text, Within
from registrations.patterns.ast import Element, Pattern
from registrations.patterns.encoding import decoded_pattern, digest_of, encoded_pattern
from registrations.patterns.engine import ReadyEngine
from registrations.patterns.parser import parse_pattern
from registrations.patterns.printed import print_pattern
from tests.unit.registrations.patterns.programs import patterns
from tests.unit.registrations.patterns.stream import Stream, ends
from tests.unit.registrations.patterns.test_differential import parsed

WHOLE = """
(({a: D::A.*, B | not ($x + 1 > 2.5) and 'a' in $list and 'sub' ~ $t or exist $.length}
  && {v[2..*]: *::* | TRUE}) where sum(v.x) > 1 and exist a.'disk usage' and -a.y < 3)
  do assign s = Ops::Summary{n = count(v), f = first(v.x), t = 'text'}, notify(s, a) to 'boss',
     announce(Ops::Break, {k = a.u}) into 'alarms', announce(s), increment c by count(v);
({b: B} || {d: D}); ({e: E} butnot {f: F | $big == 18446744073709551615}) do increment c, notify()
per $header.node within 90m last 77 once
"""
RECORDED = (
    "0197189410a13b9410a13b931293119410a22626960f920a9300920b93009409a144a141c39409c0a142c292"
    "0b9300920a9400920c9404a13e9403a12b9301a178aa617474726962757465739202019202cb400400000000"
    "00009404a13d9301a46c697374aa617474726962757465739202a1619406a9737562737472696e679301a174"
    "aa61747472696275746573a373756292079301a66c656e677468aa61747472696275746573a161c20101960f"
    "920a93009409c0c0c2920dc3a176c302c0920a94009404a13e950ea873756d28762e7829a1769301a178aa61"
    "747472696275746573a373756d9202019207950eae612e276469736b20757361676527a1619301aa6469736b"
    "207573616765aa61747472696275746573c09404a13c9403a12d920200950ea3612e79a1619301a179aa6174"
    "7472696275746573c092020396009314a1739413a34f7073a753756d6d61727994009300a16e950ea8636f75"
    "6e74287629a176c0a5636f756e749300a166950eaa666972737428762e7829a1769301a178aa617474726962"
    "75746573a566697273749300a1749202a47465787493159300a173a161a4626f737393169413a34f7073a542"
    "7265616b92009300a16b950ea3612e75a1619301a175aa61747472696275746573c0a6616c61726d739316a1"
    "73c09317a163950ea8636f756e74287629a176c0a5636f756e749410a27c7c960f9409c0a142c2a162c20101"
    "960f9409c0a144c2a164c2010193129410a66275746e6f74960f9409c0a145c2a165c20101960f920a930094"
    "09c0a146c29404a13d9301a3626967aa617474726962757465739202cfffffffffffffffffa166c201019300"
    "9317a1639202019315c0c0cf0000000141dd76004d9301a46e6f6465a8656e76656c6f7065c3c410f451ca10"
    "5a037cd0e34e63edb8f15746"
)


@given(text=patterns())
@settings(max_examples=150, deadline=None, database=None)
def test_a_decoded_pattern_equals_the_encoded_one(text: str) -> None:
    pattern = parsed(text)
    found = decoded_pattern(encoded_pattern(pattern))
    assert found == pattern
    assert print_pattern(found) == print_pattern(pattern)
    assert found.digest == digest_of(found) == digest_of(pattern) != b""


def test_every_kind_of_node_is_encoded() -> None:
    tests = (
        In(Path("x"), ()),
        Text("wildcard", Path("file", "envelope"), r"a*\*"),
        Within(Path("items"), OfType("D", None, True)),
    )
    for pattern in (parse_pattern(WHOLE), *(Pattern(Element(test)) for test in tests)):
        assert repr(decoded_pattern(encoded_pattern(pattern))) == repr(pattern)


def test_the_format_of_a_version_stays() -> None:
    """If this fails, the format is another: give it another version, and record it here."""
    assert encoded_pattern(parse_pattern(WHOLE)).hex() == RECORDED


def test_an_engine_takes_a_decoded_pattern_and_the_state_of_the_parsed_one() -> None:
    text = "({a: A} && {v[2..3]: B}) where a.x == v.x per $u within 9s"
    stream = Stream(text)
    stream.emit("A", u=1, x=3)
    stream.emit("B", u=1, x=3)
    other = Stream(engine=ReadyEngine())
    other.engine.add(1, decoded_pattern(encoded_pattern(parse_pattern(text))))
    other.engine.restore(stream.engine.state())
    other.order, other.time = stream.order, stream.time
    assert ends(other.emit("B", u=1, x=3)) == [3]


@pytest.mark.parametrize("data", ["", "00", "0293", "01", "01c1", "0192", "01921a05", "0191ff"])
def test_an_unknown_format_is_refused(data: str) -> None:
    with pytest.raises(ValueError, match="the encoded pattern"):
        decoded_pattern(bytes.fromhex(data))
