"""Quamina's cases of one value: texts, wildcards, numbers. Those of whole events are in
`quamina_cases.py`.
"""

from itertools import pairwise, product
from typing import Any, NamedTuple

Values = str | list[Any]  # a text has several, separated by bars, or none
Texts = dict[str, tuple[str, str]]  # that match a text, and others


class Checked(NamedTuple):
    """A pattern, events that match it in quamina, and events that do not."""

    group: str
    pattern: dict[str, Any]
    matching: list[dict[str, Any]]
    others: list[dict[str, Any]]


WILDCARDS: Texts = {  # wildcard_test.go
    "*": ("|*|h|hello|ho", ""),
    "*hello": ("hello|hhello|xxxhello|*hello|23Őzhello|xhello|hehello|xxhello|hhhello",
               "|ello|hellx|xhellx|hell5rHGGHo|hellox|blahabc|h|hel|hlo|hell|heo|he|hexxo|hex|"
               "hexlo"),
    "h*llo": ("hllo|hello|hxxxllo|hel23Őzlllo|hehello|hexxxllo|hexxxlllo|helllo",
              "|hlo|hll|hellol|hel5rHGGHlo|h|ello|hel|hell|heo|hllol|helol|he|hl|el|llo|hxll|hexxx|"
              "helox"),
    "hel*o": ("helo|hello|helxxxo|hel23Őzlllo|hellxo|helxxxlo|helxo|helllo|hellloo|helloo|heloo",
              "|hell|helox|hellox|hel5rHGGHe|hel|heo|hlo|hellxox|hll|helxox|hexo"),
    "hello*": ("hello|hellox|hellooo|hello*|hello23Őzlllo",
               "|hell|hellx|hellxo|hol5rHGGHo|he|hex|hexlo"),
    "h*l*o": ("hlo|helo|hllo|hloo|hello|hxxxlxxxo|h*l*o|hel*o|h*llo|hel23Őzlllo|hexloo|hellohello|"
              "hellohellxo", "|ho|heeo|helx|llo|hex5rHGGHo|h|he|hel|hexxo|hexxohexxo"),
    "he*l*": ("hel|hexl|helx|helxx|helxl|helxlx|helxxl|helxxlxx|helxxlxxl|hello|helo|hexlx|hexxl|"
              "hexxlxx|helol|hexxxlo|hexxxllo|hexxxlllo|hexloo|hellohellx|hellohello",
              "|he|hex|hexxx|hexxo|ello|h|hl|el|hlo|llo|hllol|hxll|hexxohexxo"),
    "*l*": ("l|xl|lx|xlx|xxl|lxx|xxlxx|xlxlxlxlxl|lxlxlxlxlx", "|x|xx|xtx"),
    r"hel\*o": ("hel*o", "helo|hello"),
    r"he\**o": ("he*o|he*llo|he*hello", "heo|helo|hello|he*l"),
    r"he\\llo": (r"he\llo", "hello"),
    r"he\\\*llo": (r"he\*llo", r"hello|he\\llo|he\llo|he\xxllo"),
    r"he\\*llo": (r"he\llo|he\*llo|he\\llo|he\\\llo|he\xxllo", r"hello|he\ll"),
    "h*o": ("ho|hello", ""),
    "he*lo": ("helo|hello|hehello|hexxxlo|hexxxllo|helxxxlo|helllo|helxlo",
              "|h|ello|hel|heo|hell|hlo|hllol|helol|hellxox|he|helox|helx|hxlo|heloz|hellox|"
              "heloxo"),
    "*elo": ("elo|helo|xhelo", "|e|l|lo|hel"),
    "e*l*": ("el|elo|exl|elx|exlx|exxl|elxx|exxlxx", "|e|l|lo|hel"),
    "h*llox": ("hllox|hellox|hxxxllox|helhllox|hheloxllox",
               "|hlox|hllo|helo|heox|helx|hellx|helloxx|heloxx"),
    "hel*ox": ("helox|hellox|helxxxox|helhllox|helhlloxox",
               "|hlox|hllo|helo|heox|helx|hellx|helloxx|heloxx"),
    "h*xllo": ("hxllo|hexllo|hxxxllo|hexxxllo", "|h|hex|hl|exl|hxlo|xllo|hxllol|hxxll|hexxx"),
    "hex*l*": ("hexl|hexlo|hexxl|hexllo|hexlol|hexxxlo|hexxxllo|hexxxlllo",
               "|h|hex|hl|exl|hxlo|xllo|hxllol|hxxll|hexxx"),
    "hell*": ("hell|hello|helllo|hellx|hellxxx|hellloo|helloo|hellox",
              "|he|hel|helox|helx|hxlo|helxox|hexo"),
    "hel*": ("hel|helx|hello|hellox", "|he|hex|hexlo"),
    "he*l": ("hel|hexl|hexxxl", "|he|helx|helo|hexlx|hellox|heloxx"),
    "he*": ("he|helo|helox|heloxx", "|h|hxlox|hxelox"),
    "x*y": ("x..y|xasdfy", "x"),  # value_matcher_test.go
    "a*b": ("aXXXb", "xyz|nomatch"),
    "a*z": ("az", ""),
}  # fmt: skip
STARS: Texts = {  # `shellstyle`: shell_style_test.go, core_matcher_test.go, nfa_test.go
    "*abab": ("abaabab|ababab|ababaabab", ""),
    "*ST": ("STA ST|1ST", "STA|STAST "),
    "foo*": ("fooabc|foo|foot", "afoo|fofo"),
    "*foo": ("afoo|foo", "foox|afooo"),
    "*foo*": ("xxfooyy|fooyy|xxfoo|foo|xfoo|foox|xfoox|foofoofoo", "afoa|fofofoxooxoo|bar|fo|ffo"),
    "xx*yy*zz": ("xxabyycdzz|xxyycdzz|xxabyyzz|xxyyzz", "xyzyxzy yy zz|zz yy xx"),
    "*xx*yy*": ("abxxcdyyef|xxcdyyef|abxxyyef|abxxcdyy|abxxyy|xxcdyy|xxyyef|xxyy", "ayybyyzxx"),
    "*bc": ("bc|abc", "xyz"),
    "d*f": ("dexef|dexeff", "ef|de"),
    "d*ff": ("dexeff", "dexef|ef|de"),
    "xy*": ("xyzzz", "abc|abcxyz"),
    "12*4*": ("12345", "1235"),
    "*9": ("xy9", ""),
    "x*9": ("xy9", ""),
    "*x*b": ("axyb", ""),
    "*y*b": ("axyb", ""),
    "*ay*": ("ay|aay|aaaayyyyy|xyzay|ayxxxx", ""),
    "*abc": ("abc|fooabc|abcabc", "abd|fooac"),
    "a*bc": ("abc|axybc|abcbc", "abd|fooac"),
    "ab*c": ("abc|abxyxc|abbbbbc", "abd|abcxy"),
    "abc*": ("abc|abcfoo", "xabc|abxbar"),
    "*foo*bar*": ("foobar|xfooybar|foobarbaz|xxfooxxbarxx", "barfoo|foo|bar|fobar"),
    "*a*b*c*": ("abc|xaxbxcx|abc123|123abc|aabbcc", "ab|ac|bc|cba"),
    "*a*b*c*d*e*": ("abcde|xaxbxcxdxex|aabbccddee", "abcd|edcba|abce"),
    "*a*b*c*d*e*f*g*h*": ("abcdefgh|xaxbxcxdxexfxgxhx", "abcdefg|hgfedcba"),
    "ab*ack": ("aback|abÉÉÉÉack", ""),  # of a list of words, one
}  # fmt: skip
_RUNS = ("abcdefgh", "abcdef" * 5, "abcdefghijklmnop" * 3)
RUNS = {  # nfa_test.go: which of these three texts match
    **dict.fromkeys(["ab", "bc", "cd", "de", "ef", "ac", "bd", "ce", "df", "ad"], (0, 1, 2)),
    **{"abc": (0, 1, 2), "efg": (0, 2), "bdf": (0, 1, 2), "mno": (2,), "aei": (2,), "cgk": (2,),
       "dhl": (2,), "xyz": (), "pqr": (), "stu": (), "iou": (), "rst": ()},
}  # fmt: skip
EXACT: Texts = {  # wildcard_test.go, value_matcher_test.go
    "hello": ("hello", "|he|hex|hexlo"),
    "abc": ("abc", "|hellox|blahabc"),
    "helox": ("helox", "|he|hel|heo|heloz|hellox|heloxo|helx|helo|hexlx|heloxx|h|hxlox|hxelox"),
    "hellohello": ("hellohello", "|h|he|hel|hexxo|hexxohexxo|hlo"),
    "foo": ("foo", "football|footballer|foot"),
    "football": ("football", "foo|footballer"),
    "footballer": ("footballer", "foo|football"),
    "foot": ("foot", ""),
    "xyz": ("xyz", "aXXXb|nomatch"),
    "singleton": ("singleton", ""),
}
# escaping_test.go
THEMSELVES = (
    "a",
    "x",
    "😀💋😺",
    "xx💋y",
    '"',
    "\\",
    "/",
    "\b\f\n\r\t",
    "Ж💋中",
)
BUT: Texts = {  # anything_but_test.go; of its list of words, some
    "foot": ("foo", "foot"),
    "foo": ("foot", ""),
    "joe|tim": ("toe", "joe"),
    "tim|time|timed": ("", "tim|time|timed"),
    "bloo|aper|fnord|doubts|astern": ("bloom|paper|taper|fjord|doubt|stern",
                                      "bloo|aper|fnord|doubts|astern"),
}  # fmt: skip
BOTH_CASES = (  # monocase_test.go: texts in two cases; each mixture of both matches the first
    ("abcd", "ABCD"),
    ("\U00010c80\U00010c9d\U00010c95\U00010c8b", "\U00010cc0\U00010cdd\U00010cd5\U00010ccb"),
    ("a,8899bc d", "A,8899BC D"),
)
IGNORING_CASE: Texts = {
    "foo": ("FoO", ""),
    "aBc": ("abc|AbC", "xyzz|aabc|ABCXYZ"),
    "XyZ": ("XYZ", "xyzz|aabc|ABCXYZ"),
    "xyZ": ("XYZ", "xyzz|aabc|ABCXYZ"),
}  # fmt: skip
NUMBERS = (  # numbers_test.go: none equals another
    *(-5_000_000_000, -4_999_999_999.99999, -4_999_999_999.99998, -4_999_999_999.99997),
    *(-999999999.99999, -999999999.99, -10000, -122.413496, -0.000002, 0, 0.000001, 3.8, 3.9, 11),
    *(12, 122.415028, 2.5e4, 999999999.999998, 999999999.999999, 4_999_999_999.99997),
    *(4_999_999_999.99998, 4_999_999_999.99999, 5_000_000_000),
)
EQUAL_NUMBERS: tuple[tuple[float, list[Any]], ...] = (
    (35.0, [35, 35.0]),
    (350, [350.0]),
    (3, [3]),
    (1, [1]),
)


def of_values() -> list[Checked]:
    """Return the patterns of one value, with their events."""
    groups: tuple[tuple[str, Texts], ...] = (
        ("wildcard", WILDCARDS), ("shellstyle", STARS), ("equals-ignore-case", IGNORING_CASE)
    )  # fmt: skip
    found = []
    for group, texts in groups:
        name = "wildcard" if group == "shellstyle" else group
        found += [_checked(group, {name: one}, *both) for one, both in texts.items()]
    for letters, at in RUNS.items():
        matching = [_RUNS[each] for each in at]
        others = [one for one in _RUNS if one not in matching]
        wildcard = {"wildcard": f"*{'*'.join(letters)}*"}
        found.append(_checked("shellstyle", wildcard, matching, others))
    for lower, upper in BOTH_CASES:
        mixed = dict.fromkeys(map("".join, product(*zip(lower, upper, strict=True))))
        found.append(_checked("equals-ignore-case", {"equals-ignore-case": lower}, [*mixed], []))
    for one, both in BUT.items():
        found.append(_checked("anything-but", {"anything-but": one.split("|")}, *both))
    found += [_checked("exact", one, *both) for one, both in EXACT.items()]
    found += [_checked("exact", one, [one], []) for one in THEMSELVES]
    found += [_checked("numbers", one, [one], [other]) for one, other in pairwise(NUMBERS)]
    return found + [_checked("numbers", one, equal, []) for one, equal in EQUAL_NUMBERS]


def _checked(group: str, allowed: Any, matching: Values, others: Values) -> Checked:
    """Return a pattern that allows one value, with the values that match it and others."""
    return Checked(group, {"x": [allowed]}, _events(matching), _events(others))


def _events(values: Values) -> list[dict[str, Any]]:
    if isinstance(values, str):
        values = values.split("|") if values else []
    return [{"x": value} for value in values]
