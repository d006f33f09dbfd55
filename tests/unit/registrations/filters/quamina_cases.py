"""The cases of quamina's tests and documentation that are about its patterns, with its results.
Quamina (github.com/timbray/quamina at 81f5b73) has the form of EventBridge's patterns; its
`shellstyle`, an older form of `wildcard`, is written as `wildcard` here.

Left out: regular expressions, which EventBridge does not have; JSON that is not well-formed; how
quamina builds its automata; and numbers of matches in large files.
"""

from typing import Any

from tests.unit.registrations.filters.quamina_texts import Checked, of_values

THERE = [{"exists": True}]
ABSENT = [{"exists": False}]
IMAGE = {  # README.md, core_matcher_test.go
    "Width": 800,
    "Height": 600,
    "Title": "View from 15th Floor",
    "Thumbnail": {"Url": "https://www.example.com/image/481989943", "Height": 125, "Width": 100},
    "Animated": False,
    "IDs": [116, 943, 234, 38793],
}
BANDS = {  # arrays_test.go
    "bands": [
        {"name": "The Clash", "members": [
            {"given": "Joe", "surname": "Strummer", "role": ["guitar", "vocals"]},
            {"given": "Mick", "surname": "Jones", "role": ["guitar", "vocals"]}]},
        {"name": "Boris", "members": [
            {"given": "Wata", "role": ["guitar", "vocals"]},
            {"given": "Atsuo", "role": ["drums"]}]},
    ]
}  # fmt: skip


def _image(**fields: Any) -> dict[str, Any]:
    return {"Image": fields}


def _members(**fields: Any) -> dict[str, Any]:
    return {"bands": {"members": fields}}


def _alarm(**metric: str) -> dict[str, Any]:
    """Return a pattern of an alarm."""
    named = {name: [text] for name, text in metric.items()}
    metrics = {"metricStat": {"metric": named}}
    return {"state": {"value": ["ALARM"]}, "configuration": {"metrics": metrics}}


def _alarmed(*metrics: dict[str, str]) -> dict[str, Any]:
    """Return an alarm with metrics, and a last entry that has none."""
    several = [*({"metricStat": {"metric": one, "unit": None}} for one in metrics), {"id": "E1"}]
    return {"state": {"value": "ALARM"}, "configuration": {"metrics": several}}


_ALARMS = [
    _alarmed({"metricName": "CPUUtilization", "namespace": "AWS/EC2"}),
    _alarmed(
        {"metricName": "ConsumedReadCapacityUnits", "namespace": "AWS/DynamoDB"},
        {"metricName": "ProvisionedReadCapacityUnits", "namespace": "AWS/DynamoDB"},
    ),
    {"metrics": [{"metricName": "CPUUtilization", "namespace": "AWS/EC2"},
                 {"metricName": "RequestCount", "namespace": "AWS/ES"}]},
    {"metrics": [{"metricName": "CPUUtilization", "namespace": "AWS/ES"}]},
]  # fmt: skip
_FLAGS = {"hypotheses": [{"isBluePrint": True, "creator": "A123"},
                         {"isBluePrint": False, "creator": "A234"}]}  # fmt: skip
_ABC = {"aField": "a", "bField": "b", "cField": "c"}


def _star(text: str) -> list[Any]:
    return [{"wildcard": text}]


Events = tuple[str, dict[str, Any], list[dict[str, Any]], list[dict[str, Any]]]
EVENTS: tuple[Events, ...] = (
    # --- core_matcher_test.go, README.md ---
    ("fields", {"a": [1, 2], "b": [1, "3"]}, [{"b": "3", "a": 1}, {"a": 2, "b": "3", "x": 33}],
     [{"b": "3", "a": 6}, {"a": 2}, {"b": "3"}]),
    ("exists", {"aField": ["a"], "bField": ABSENT, "cField": ["c"]},
     [{"$field": "$", "aField": "a", "cField": "c"}], [_ABC]),
    ("exists", {"aField": ABSENT, "bField": ["b"], "cField": ["c"]},
     [{"$field": "$", "bField": "b", "cField": "c"}], [_ABC]),
    ("exists", {"aField": ["a"], "bField": ["b"], "cField": ABSENT},
     [{"$field": "$", "aField": "a", "bField": "b"}], [_ABC]),
    ("exists", {"b": [1], "a": ABSENT}, [{"b": 1}], []),
    ("exists", {"b": [1], "c": ABSENT}, [{"b": 1}], []),
    ("exists", {"a": ABSENT}, [{"b": 1}], []),
    ("exists", {"Foo": ABSENT}, [{"Image": IMAGE}], []),
    ("exists", _image(Title=THERE), [{"Image": IMAGE}], []),
    ("exists", _image(Width=[800], Title=THERE, Animated=[False]), [{"Image": IMAGE}], []),
    ("exists", _image(Width=[800], IDs=THERE), [{"Image": IMAGE}], []),
    ("exists", _image(Animated=ABSENT), [], [{"Image": IMAGE}]),
    ("exists", _image(NotThere=THERE), [], [{"Image": IMAGE}]),
    ("exists", _image(IDs=ABSENT, Animated=[False]), [], [{"Image": IMAGE}]),
    ("fields", {"b": [1]}, [{"b": 1}], []),
    ("fields", _image(Width=[800]), [{"Image": IMAGE}], []),
    ("fields", _image(Animated=[False], Thumbnail={"Height": [125]}, IDs=[943]),
     [{"Image": IMAGE}], []),
    ("wildcard", _image(Thumbnail={"Url": _star("*9943")}), [{"Image": IMAGE}], []),
    ("wildcard", _image(Thumbnail={"Url": _star("https://www.example.*/*9943")}),
     [{"Image": IMAGE}], []),
    ("anything-but", _image(Title=[{"anything-but": ["Pikachu", "Eevee"]}]),
     [{"Image": IMAGE}], []),
    ("prefix", _image(Thumbnail={"Url": ["a", {"prefix": "https:"}]}), [{"Image": IMAGE}], []),
    ("prefix", _image(Thumbnail={"Url": [{"prefix": "http:"}]}), [], [{"Image": IMAGE}]),
    ("equals-ignore-case", _image(Title=[{"equals-ignore-case": "VIEW FROM 15th FLOOR"}]),
     [{"Image": IMAGE}], []),
    # --- PATTERNS.md ---
    ("arrays", {"alpha": {"beta": [1]}},
     [{"alpha": {"beta": 1}}, {"alpha": [{"beta": [1, 2]}, {"beta": [3, 4]}]}], []),
    ("exists", {"alpha": {"beta": THERE}},
     [{"alpha": {"beta": 1}}, {"alpha": [{"beta": [1, 2]}, {"beta": [3, 4]}]}], []),
    ("exists", {"alpha": {"gamma": ABSENT}},
     [{"alpha": {"beta": 1}}, {"alpha": [{"beta": [1, 2]}, {"beta": [3, 4]}]}], []),
    ("prefix", {"a": [{"prefix": "al"}]}, [{"a": "alpha"}], []),
    ("wildcard", {"img": _star("*.jpg")}, [{"img": "https://example.com/9943.jpg"}], []),
    ("wildcard", {"img": _star("https://example.com/*")},
     [{"img": "https://example.com/9943.jpg"}], []),
    ("wildcard", {"img": _star("https://example.com/*.jpg")},
     [{"img": "https://example.com/9943.jpg"}], []),
    ("wildcard", {"img": _star("https://example.*/*.jpg")},
     [{"img": "https://example.com/9943.jpg"}], []),
    ("wildcard", {"example-regex": _star(r"a\*\*\\.b")}, [{"example-regex": r"a**\.b"}], []),
    # --- arrays_test.go, generic_machine_test.go, matcher_test.go ---
    ("arrays", _members(given=["Mick"], surname=["Strummer"]), [], [BANDS]),
    ("arrays", _members(given=["Wata"], role=["drums"]), [], [BANDS]),
    ("arrays", _members(given=["Wata"], role=["guitar"]), [BANDS], []),
    ("arrays", {"hypotheses": {"isBluePrint": [False], "creator": ["A123"]}}, [], [_FLAGS]),
    ("arrays", {"hypotheses": {"isBluePrint": [True], "creator": ["A234"]}}, [], [_FLAGS]),
    ("arrays", _alarm(namespace="AWS/EC2"), _ALARMS[:1], _ALARMS[1:]),
    ("arrays", _alarm(metricName="CPUUtilization"), _ALARMS[:1], _ALARMS[1:]),
    ("arrays", {"metrics": {"metricName": ["CPUUtilization"], "namespace": ["AWS/ES"]}},
     _ALARMS[3:], _ALARMS[:3]),
    ("arrays", {"x": [1, 2]}, [{"x": [3, 1]}], []),
    ("fields", {"a": [1]}, [{"a": 1}, {"a": 1, "b": 2, "c": 3}], [{"b": 2}, {"x": True}]),
    ("fields", {"b": [2]}, [{"b": 2}, {"a": 1, "b": 2, "c": 3}], [{"a": 1}, {"x": True}]),
    ("fields", {"c": [3]}, [{"a": 1, "b": 2, "c": 3}], [{"a": 1}, {"b": 2}, {"x": True}]),
    ("exists", {"detail": {"c-count": ABSENT}, "d-count": ABSENT, "e-count": ABSENT}, [{}], []),
    # --- pruner_test.go, example_test.go, escaping_test.go ---
    ("fields", {"likes": ["tacos"]}, [{"likes": "tacos"}], []),
    ("fields", {"type": ["UserRegistered"], "user": {"premiumAccount": [True]}},
     [{"id": "1c0e", "type": "UserRegistered", "user": {"name": "Doe", "premiumAccount": True}}],
     []),
    ("fields", {"😀💋😺": [1], "xx💋y": ["2"]}, [{"😀💋😺": 1, "xx💋y": "2"}], []),
    # --- nfa_test.go ---
    ("shellstyle", {"a": _star("foo*"), "b": _star("bar*")},
     [{"a": "fooXYZ", "b": "barXYZ"}, {"a": "fooXYZ", "b": "bar"}, {"a": "fooX", "b": "barY"}],
     [{"a": "fooABC", "b": "bazABC"}, {"a": "foxDEF", "b": "barDEF"},
      {"a": "fooXYZ", "b": "baz"}, {"a": "nomatch", "b": "nomatch"}]),
    ("shellstyle", {"a": _star("foo*"), "b": _star("baz*")},
     [{"a": "fooABC", "b": "bazABC"}, {"a": "fooXYZ", "b": "baz"}],
     [{"a": "fooXYZ", "b": "barXYZ"}, {"a": "foxDEF", "b": "barDEF"}, {"a": "fooXYZ", "b": "bar"},
      {"a": "nomatch", "b": "nomatch"}]),
    ("shellstyle", {"a": _star("fox*"), "b": _star("bar*")}, [{"a": "foxDEF", "b": "barDEF"}],
     [{"a": "fooXYZ", "b": "barXYZ"}, {"a": "fooABC", "b": "bazABC"}, {"a": "fooXYZ", "b": "bar"},
      {"a": "fooXYZ", "b": "baz"}, {"a": "nomatch", "b": "nomatch"}]),
    ("shellstyle", {"a": _star("*"), "b": _star("*")}, [{"a": "fooX", "b": "barY"}], []),
    ("shellstyle", {"a": _star("*"), "b": _star("bar*")}, [{"a": "fooX", "b": "barY"}], []),
    ("shellstyle", {"a": _star("foo*"), "b": _star("*")}, [{"a": "fooX", "b": "barY"}], []),
    ("shellstyle", {"a": _star("*"), "b": _star("*"), "c": _star("cat*")},
     [{"a": "fooX", "b": "barY", "c": "catZ", "d": "dogW"}], []),
    ("shellstyle", {"a": _star("*"), "b": _star("bar*"), "c": _star("cow*")}, [],
     [{"a": "fooX", "b": "barY", "c": "catZ", "d": "dogW"}]),
    ("shellstyle", {"a": _star("foo*"), "d": _star("dog*")},
     [{"a": "fooX", "b": "barY", "c": "catZ", "d": "dogW"}], []),
)  # fmt: skip
Different = tuple[str, dict[str, Any], dict[str, Any], bool]
DIFFERENT: tuple[Different, ...] = (  # with the hub's reason, and quamina's result
    ("any value exists, an object too", {"a": THERE}, {"a": {"b": 1}}, False),
    ("any value exists, an empty list too", {"a": THERE}, {"a": []}, False),
    ("an empty list is not absent", {"a": ABSENT}, {"a": []}, True),
    ("a list in a list is not searched", {"geometry": {"coordinates": [37.807807921694092]}},
     {"geometry": {"coordinates": [[[-122.4, 37.807807921694092, 0]]]}}, True),
    ("integers are exact beyond 53 bits", {"a": [9007199254740993]}, {"a": 9007199254740992}, True),
)  # fmt: skip
_FOO = {"anything-but": ["foo"]}
ACCEPTED: tuple[list[Any], ...] = (  # pattern_test.go, anything_but_test.go, wildcard_test.go
    [2],
    [None, True, False, "hopp", 3.072e-11],
    THERE,
    ABSENT,
    [{"equals-ignore-case": "a*b*c"}],
    [3, {"wildcard": "a*b"}],
    [{"wildcard": "a*b"}, "foo"],
    [{"wildcard": "a*b*c"}],
    [{"wildcard": r"a*b\*c"}],
    [{"wildcard": r"he*\**"}],
    [_FOO],
    [{"anything-but": ["bif", "x", "y", "a;sldkfjas;lkdfjs"]}],
)
REFUSED: tuple[Any, ...] = (  # by both, as what a field must be
    11,
    "x",
    True,
    None,
    [{"exists": 23}],
    [{"exists": True, "a": 3}],
    [{"exists": False, "x": ["a", 3]}],
    [{"prefix": 23}, "foo"],
    [{"prefix": ["a", "b"]}, "foo"],
    [{"equals-ignore-case": 23}, "foo"],
    [{"equals-ignore-case": ["abc"]}],
    [{"anything-but": {"equals-ignore-case": [1, 2, 3]}}],
    [{"anything-but": {"x": 1}}],
    [{"anything-but": [{"z": 1}]}],
    [{"anything-but": []}],
    [{"wildcard": 3}],
    [{"wildcard": "a\\b"}],
    [{"wildcard": "he\\llo"}],
    [{"wildcard": "a\\"}],
    [{"wildcard": "x\\"}],
)
REFUSED_BY_QUAMINA: tuple[tuple[str, list[Any]], ...] = (  # with the hub's reason
    ("event-ruler takes it", [{"exists": True}, 15]),
    ("event-ruler takes it", [{"anything-but": 1}]),
    ("event-ruler takes it", [{"anything-but": "foo"}]),
    ("event-ruler takes it", [2, _FOO]),
    ("event-ruler takes it", [_FOO, 2]),
    ("any constant", [{"anything-but": [True]}]),
    ("two stars are one", [{"wildcard": "a**b"}, "foo"]),
    ("two stars are one", [{"wildcard": "foo**bar"}]),
    ("two stars are one", [{"wildcard": "**f"}]),
    ("two stars are one", [{"wildcard": "x**"}]),
)
REFUSED_BY_THE_HUB: tuple[tuple[str, list[Any]], ...] = (
    ("it would match nothing; event-ruler refuses it", []),
    ("event-ruler has no regular expressions", [{"regexp": "B..CH"}]),
    ("`wildcard` is the newer form", [{"shellstyle": "a*b"}]),
)


CASES = [*(Checked(*one) for one in EVENTS), *of_values()]
