"""Tables of formulas and the events for which they hold, row by row of the requirements. The unit
test evaluates them; the acceptance test registers them and compares who was notified.
"""

from typing import Any, NamedTuple


class Table(NamedTuple):
    """Formulas of one language, each with the numbers of the events, from 0, for which it holds."""

    row: str
    language: str
    events: tuple[dict[str, Any], ...]
    formulas: dict[str, tuple[int, ...]]


def event(domain: str = "Net", type: str = "t", **attributes: Any) -> dict[str, Any]:
    return {"domain": domain, "type": type, "attributes": attributes}


def _of_attributes(*each: dict[str, Any]) -> tuple[dict[str, Any], ...]:
    return tuple({**event(), "attributes": one} for one in each)


def _ready(prefix: str, formulas: dict[str, bool]) -> dict[str, tuple[int, ...]]:
    """Return expressions after a type, and whether they hold for the only event."""
    return {prefix + text: (0,) if holding else () for text, holding in formulas.items()}


_ALARM = {
    **event("Net", "MyAlarm"),
    "attributes": {
        "Priority": 6,
        "load": "90",
        "text": "disk is full",
        "list": ["a", 2],
        "flag": True,
        "off": False,
        "pos": {"x": 4, "y": {"z": -1}},
        "odd name's": 1,
        "header": {"type": "inner"},
    },
    "environment": {"trace": "on"},
    "priority": 3,
}
_ERROR = {
    **event(
        type="t", user="Joe", size="10", ok=True, nothing=None, message="disk full",
        cause={"type": "error", "code": 7},
    ),
    "environment": {"trace": "t1"},
}  # fmt: skip
_ERROR["attributes"]["type"] = "error"
SIMPLE_FORMS = (  # of one filter
    "{Ev1: MyAlarm | $Priority > 5}",
    "{ Ev1 : MyAlarm | $Priority>5 }",
    "Ev1: MyAlarm | $Priority > 5",
    "\tEv1:MyAlarm|$Priority\n> 5\n",
    "Ev1: *::MyAlarm | ($Priority) > (5)",
)
PREDICATES_15 = {
    # formula: the event with attributes, the one without
    "(= type 'error)": (0,),
    '(= user "Joe")': (0,),
    "(!= user 'Joe)": (),  # what is missing does not differ either
    "(> size 9)": (0,),
    "(<= size 9)": (),
    "(not (> size 9))": (1,),
    "(not (= missing 1))": (0, 1),
    "(!= missing 1)": (),
    "(and (= type 'error) (> size 9) (= ok true))": (0,),
    "(or (= type 'info) (= cause.code 7))": (0,),
    "(in type 'warning 'error)": (0,),
    '(prefix message "disk")': (0,),
    "(= (+ size 1) (* 11 1))": (0,),
    "(= env.trace 't1)": (0,),
    "(or (exists nothing) (not (exists nothing)))": (0, 1),
}
JOE = "(and (or (= type 'error) (= type 'warning)) (= user 'Joe))"

TABLES = (
    Table(
        "RDY-14",
        "ready",
        tuple(
            event("Mail", name)
            for name in (
                *("Mail.Msg.New", "Mail.Msg.New.Urgent", "Mail.Box.New", "Mail.Msg"),
                "Mail.Msgs.New",
            )
        ),
        {"Mail.Msg.*": (0, 1), "Mail.Msg.New": (0,), "Mail::Mail.Box.*": (2,)},
    ),
    Table(
        "RDY-16",
        "ready",
        (event("Net", "MyAlarm", Priority=6), event("Net", "MyAlarm", Priority=5),
         event("Net", "OtherAlarm", Priority=9), event("sun cluster", "group state", Priority=9)),
        {
            **dict.fromkeys(SIMPLE_FORMS, (0,)),
            "Net::MyAlarm": (0, 1),
            "{x: Sea::MyAlarm, *::OtherAlarm}": (2,),
            "'sun cluster::group state'": (3,),
        },
    ),
    Table(
        "RDY-18",
        "ready",
        (_ALARM, event("Net", "MyAlarm", pos={"x": 4}), event("Net", "MyAlarm", pos=4)),
        {
            "MyAlarm | $pos.x > 3": (0, 1),
            "MyAlarm | $.pos.x > 3": (0, 1),
            "MyAlarm | $pos.y.z < 0": (0,),
            "MyAlarm | $pos.x > 4": (),
            "MyAlarm | $pos.q > 3": (),
            "MyAlarm | not ($pos.q > 3)": (0, 1, 2),
            "MyAlarm | $Priority.x > 3": (),
            "MyAlarm | $missing == $missing": (),
            "MyAlarm | $'odd name\\'s' == 1": (0,),
            "MyAlarm | $header.type == 'MyAlarm'": (0, 1, 2),
            "MyAlarm | $header.priority == 3": (0,),
            "MyAlarm | $'header.type' == 'inner'": (0,),
            "MyAlarm | $env.trace == 'on'": (0,),
        },
    ),
    Table(
        "RDY-19",
        "ready",
        (_ALARM,),
        _ready(
            "*::* | ",
            {
                "$Priority == 6": True,
                "$Priority != 6": False,
                "$Priority < 6": False,
                "$Priority <= 6.0": True,
                "$load >= 90": True,
                "$Priority + 2 * 3 == 12": True,
                "($Priority + 2) * 3 == 24": True,
                "$Priority - 3 - 2 == 1": True,
                "$Priority - (3 - 2) == 5": True,
                "$Priority / 4 == 1.5": True,
                "$Priority / 0 == 0": False,
                "-$Priority == -6": True,
                "'is' ~ $text": True,
                "'Disk' ~ $text": False,
                "'a' in $list and 2 in $list": True,
                "'2' in $list": False,
                "exist $pos.x and not exist $pos.w": True,
                "$flag and not $off": True,
                "FALSE and FALSE or TRUE": True,
                "FALSE and (FALSE or TRUE)": False,
                "not FALSE and FALSE": False,
                "$text == 6": False,
            },
        ),
    ),
    Table(
        "RDY-44",
        "ready",
        (event("N", "A"), event("N", "B"), event("M", "A")),
        {"N::*": (0, 1), "*::A": (0, 2), "A": (0, 2), "*::*": (0, 1, 2), "N::A": (0,),
         "N::B, M::A": (1, 2), "M::B": ()},
    ),
    Table(
        "OIF-14",
        "predicate",
        _of_attributes(*({"size": size} for size in ("10", 10, "abc", True, None, {"a": 10}))),
        {
            "(> size 9)": (0, 1),  # as texts "10" would come first
            "(<= size 9)": (),
            '(> size "9")': (1, 2),  # texts are compared as texts
            '(= size "10")': (0,),  # an equality converts nothing
            "(= size 10)": (1,),
            "(= (+ size 0) 10)": (0, 1),  # arithmetic is numeric
        },
    ),
    Table(
        "OIF-17",
        "propositional",
        _of_attributes(
            {"A": 1, "B": 2, "x": 3}, {"A": 1}, {"B": 1}, {"C": 1}, {"A": {"B": 1}},
            {"C": {"B": 1}}, {"A": None}, {"a": 1}, {"A": 1, "C": 1}, {"B": 1, "C": 1},
            {"disk usage": 1},
        ),
        {
            "(and A B)": (0,),
            "(A B)": (0,),  # a bare list is an `and`
            "(or A B)": (0, 1, 2, 4, 6, 8, 9),
            "B": (0, 2, 9),  # not where it is nested only
            "A": (0, 1, 4, 6, 8),  # with any value
            "(and A (or B C))": (0, 8),
            "(or (A B) C)": (0, 3, 5, 8, 9),
            "`disk usage`": (10,),
            "type": (),  # the event's own type is no attribute
        },
    ),
    Table(
        "OIF-18",
        "predicate",
        (_ERROR, event()),
        {
            **PREDICATES_15,
            **{
                f"(not {text})": tuple(n for n in (0, 1) if n not in holding)
                for text, holding in PREDICATES_15.items()
            },
        },
    ),
    Table(
        "OIF-19",
        "predicate",
        _of_attributes(
            {"type": "error", "user": "Joe"}, {"type": "warning", "user": "Joe"},
            {"type": "info", "user": "Joe"}, {"type": "error", "user": "Ann"}, {"user": "Joe"},
        ),
        {JOE: (0, 1)},
    ),
)  # fmt: skip
