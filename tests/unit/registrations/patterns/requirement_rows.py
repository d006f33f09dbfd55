"""The check values of READY's rows over several events, in the notation of docs/patterns.md: the
unit test feeds them to the engine, and a test of the hub can emit them.
"""

from typing import NamedTuple


class Check(NamedTuple):
    """A pattern, the types of events, and its matches: with which event, and what they bind."""

    row: str
    pattern: str
    events: str
    matches: str


CHECKS = (
    Check("RDY-17", "Ev1: MyAlarm | $Priority > 5 once",
          "MyAlarm(Priority=5) OtherAlarm(Priority=9) MyAlarm(Priority=6) MyAlarm(Priority=8)",
          "3: Ev1=3"),
    Check("RDY-20", "{a: A} && {b: B}", "B A", "2: a=2 b=1"),
    Check("RDY-20", "{a: A} && {b: B}", "A B", "2: a=1 b=2"),
    Check("RDY-20", "{a: A} && {b: B}", "A", "none"),
    Check("RDY-21", "{a: A} || {b: B}", "B", "1: b=1"),
    Check("RDY-21", "{a: A} || {b: B}", "A", "1: a=1"),
    Check("RDY-22", "{a: A}; {b: B}", "B A", "none"),
    Check("RDY-22", "{a: A}; {b: B}", "B A B", "3: a=2 b=3"),
    Check("RDY-23", "{a: A} butnot {b: B}", "A", "1: a=1"),
    Check("RDY-23", "{a: A} butnot {b: B}", "B A", "none"),
    Check("RDY-24", "({a: A} && {b: B}); ({c: C} butnot {d: D})", "D A B C", "4: a=2 b=3 c=4"),
    Check("RDY-24", "({a: A} && {b: B}); ({c: C} butnot {d: D})", "A B D C", "none"),
    Check("RDY-25", "{a: A}; {v[0..*]: B}; {c: C}", "A B B B C", "5: a=1 v=2,3,4 c=5"),
    Check("RDY-25", "{a: A}; {v[0..*]: B}; {c: C}", "A C", "2: a=1 v= c=2"),
    Check("RDY-26", "{v[2..4]: A} once", "A A A A", "2: v=1,2"),
    Check("RDY-26", "{v[2..4]: A}", "A A A A", "2: v=1,2; 4: v=3,4"),
    Check("RDY-27", "{v[2..4]: A} && {b: B}", "A A A B", "4: v=1,2,3 b=4"),
    Check("RDY-27", "{v[2..4]: A} && {b: B}", "A A A A A A B", "7: v=1,2,3,4 b=7"),
    Check("RDY-27", "{v[2..4]: A} && {b: B}", "A B", "none"),
    Check("RDY-28", "({a: A} && {b: B}) where a.user == b.user",
          'A(user="u1") B(user="u2")', "none"),
    Check("RDY-28", "({a: A} && {b: B}) where a.user == b.user",
          'A(user="u1") B(user="u1")', "2: a=1 b=2"),
    Check("RDY-29", "{v[3..3]: Alarm} where span(v.Priority) < 5",
          "Alarm(Priority=2) Alarm(Priority=4) Alarm(Priority=6)", "3: v=1,2,3"),
    Check("RDY-29", "{v[3..3]: Alarm} where span(v.Priority) < 5",
          "Alarm(Priority=1) Alarm(Priority=4) Alarm(Priority=6)", "none"),
    Check("RDY-43", "{a: A}; {t: Time::Tick | $handle == 'h'}",
          'A Time::Tick(handle="g") Time::Tick(handle="h")', "3: a=1 t=3"),
    Check("RDY-45", "{a: A}; {b: B}", "B A +1s B", "3: a=2 b=3"),
    Check("RDY-45", "{a: A}; ({b: B} && {c: C})", "B A +1s B +1s C", "4: a=2 b=3 c=4"),
    Check("RDY-45", "{a: A}; ({b: B} && {c: C})", "B A +2s C", "none"),
)  # fmt: skip
REFUSED = {  # with what the message says
    "{v[3..2]: A}; {b: B}": "write [2..3]",
    "{v[0..3]: A}": "Write v[1..3]",
    "{v[0..*]: A}": "Write v[1..*]",
}
