"""Random temporal patterns and streams, and their matches by enumeration: every combination of the
events in the window is evaluated, by code that shares nothing with the product's.
"""

from itertools import combinations, pairwise, product
from random import Random
from typing import Any, NamedTuple

from eventhub.event.envelope import Event
from registrations.patterns.pattern_engine import EventPosition

Test = tuple[Any, ...]  # an operator and its operands; `?x` is a variable
USERS = ("p", "q", "r")
VALUES = (0, 1, 1.0, 2, "1", "2", "10", "k", None, True, [1], {"a": 1})
CLOCK = ("9:00:00", "09:00:05", "10:00:00", "10:00:01.5", "23:59:59")


class RuleEvent(NamedTuple):
    """An event pattern: the variable of each field, constants, and a lower bound of x."""

    fields: tuple[tuple[str, str], ...]
    constants: tuple[tuple[str, Any], ...] = ()
    above: int | None = None

    def text(self) -> str:
        slots = [f"({field} ?{name})" for field, name in self.fields]
        slots += [f"({field} {_constant(value)})" for field, value in self.constants]
        if self.above is not None:
            slots.append(f"(where (> x {self.above}))")
        return f"({' '.join(['event', *slots])})"


class Rule(NamedTuple):
    memory: int
    events: tuple[RuleEvent, ...]
    tests: tuple[Test, ...]
    absent: tuple[tuple[RuleEvent, tuple[Test, ...]], ...]

    def text(self) -> str:
        parts = [f"(memory {self.memory})", *(event.text() for event in self.events)]
        parts += [f"(test {_test(test)})" for test in self.tests]
        for event, tests in self.absent:
            inner = "".join(f" (test {_test(test)})" for test in tests)
            parts.append(f"(not {event.text()}{inner})")
        return "\n".join(parts)


# --- random rules and streams ---


def random_rule(random: Random, events_max: int = 3) -> Rule:
    count = random.choice((1, 2, 2, *range(3, events_max + 1)))
    shares = random.random() < 0.3
    events = tuple(_random_event(random, str(number), shares) for number in range(count))
    names = [name for event in events for _, name in event.fields]
    tests = [_random_test(random, names) for _ in range(random.choice((0, 1, 1, 2)))]
    users = sorted({name for name in names if name.startswith("u")})
    if len(users) > 1 and random.random() < 0.6:
        tests.append((random.choice(("eq", "eq", "=", "neq")), *(f"?{one}" for one in users)))
    times = [name for name in names if name.startswith("t")]
    if len(times) > 1 and random.random() < 0.6:
        tests.append((random.choice(("<", "<=")), *(f"?{one}" for one in times)))
    absent = tuple(
        _random_absent(random, f"n{number}", names)
        for number in range(random.choice((0, 0, 1, 1, 2)))
    )
    return Rule(random.randint(1, 8 if count < 4 else 5), events, tuple(tests), absent)


def _random_event(random: Random, name: str, shares: bool) -> RuleEvent:
    fields = [("time", f"t{name}")] if random.random() < 0.8 else []
    if random.random() < 0.8:
        fields.append(("userid", "u" if shares else f"u{name}"))
    if random.random() < 0.4:
        fields.append(("x", f"x{name}"))
    constants = (("type", random.choice("ab")),) if random.random() < 0.5 else ()
    above = random.choice((0, 1)) if random.random() < 0.2 else None
    return RuleEvent(tuple(fields), constants, above)


def _random_absent(
    random: Random, name: str, names: list[str]
) -> tuple[RuleEvent, tuple[Test, ...]]:
    event = _random_event(random, name, shares=False)
    if names and random.random() < 0.4:
        shared = [one for one in names if one.startswith("u")]
        if shared:
            others = [field for field in event.fields if field[0] != "userid"]
            event = event._replace(fields=(*others, ("userid", random.choice(shared))))
    inner = [one for _, one in event.fields]
    count = random.choice((0, 1, 1, 2)) if inner else 0
    return event, tuple(_random_test(random, [*names, *inner]) for _ in range(count))


def _random_test(random: Random, names: list[str]) -> Test:
    if random.random() < 0.15:
        return (random.choice(("and", "or")), *(_random_test(random, names) for _ in range(2)))
    if random.random() < 0.15:
        return ("not", _random_test(random, names))
    op = random.choice(("=", "!=", "<", "<", "<=", ">", ">=", "eq", "neq"))
    operands = [_random_operand(random, names) for _ in range(random.choice((2, 2, 3)))]
    return (op, *operands)


def _random_operand(random: Random, names: list[str]) -> Any:
    if not names or random.random() < 0.15:
        return random.choice((0, 1, 2, "1", "k", "9:00:03", 3.5))
    if random.random() < 0.15:
        left, right = (_random_operand(random, names) for _ in range(2))
        return (random.choice("+-*/"), left, right)
    return f"?{random.choice(names)}"


def random_stream(random: Random, length: int) -> list[dict[str, Any]]:
    clock = random.random() < 0.4
    stream = []
    for number in range(length):
        event: dict[str, Any] = {"type": random.choice("ab")}
        if random.random() < 0.95:
            time: Any = random.choice(CLOCK) if clock else max(0, number + random.randint(-2, 2))
            event["time"] = str(time) if random.random() < 0.2 else time
        if random.random() < 0.95:
            event["userid"] = random.choice(USERS[: random.choice((2, 3))])
        if random.random() < 0.7:
            event["x"] = random.choice(VALUES)
        stream.append(event)
    return stream


def position(number: int, stream: int = 1) -> EventPosition:
    return EventPosition(number, stream, "c0ffee", number, number * 1_000_000)


def event(attributes: dict[str, Any]) -> Event:
    return Event("d", "t", attributes)


# --- enumeration ---


class Enumeration:
    """The matches of a rule, event by event. `examined`: evaluated combinations."""

    def __init__(self, rule: Rule) -> None:
        self.rule = rule
        self.window: list[tuple[int, dict[str, Any]]] = []
        self.reported: set[tuple[int, ...]] = set()
        self.examined = 0

    def feed(self, number: int, event: dict[str, Any]) -> list[tuple[int, ...]]:
        """Return the combinations that match for the first time, as numbers of their events."""
        self.window = [*self.window, (number, event)][-self.rule.memory :]
        return self.new()

    def new(self) -> list[tuple[int, ...]]:
        found = []
        for some in product(self.window, repeat=len(self.rule.events)):
            self.examined += 1
            numbers = tuple(number for number, _ in some)
            if numbers not in self.reported and self._matches([event for _, event in some]):
                found.append(numbers)
        self.reported.update(found)
        return sorted(found)

    def _matches(self, events: list[dict[str, Any]]) -> bool:
        bound: dict[str, Any] = {}
        for pattern, event in zip(self.rule.events, events, strict=True):
            if not _binds(pattern, event, bound):
                return False
        if not all(_holds(test, bound) for test in self.rule.tests):
            return False
        return not any(self._exists(pattern, tests, bound) for pattern, tests in self.rule.absent)

    def _exists(self, pattern: RuleEvent, tests: tuple[Test, ...], bound: dict[str, Any]) -> bool:
        for _, event in self.window:
            more = dict(bound)
            if _binds(pattern, event, more) and all(_holds(test, more) for test in tests):
                return True
        return False


def _binds(pattern: RuleEvent, event: dict[str, Any], bound: dict[str, Any]) -> bool:
    """Add the variables of one event; return whether it fits them and the pattern."""
    for field, value in pattern.constants:
        if event.get(field) != value:
            return False
    if pattern.above is not None and not _above(event.get("x"), pattern.above):
        return False
    for field, name in pattern.fields:
        if field not in event or isinstance(event[field], list | dict):
            return False
        if name in bound and not _same(bound[name], event[field]):
            return False
        bound[name] = event[field]
    return True


def _above(value: Any, bound: int) -> bool:
    members = value if isinstance(value, list) else [value]
    return any(
        not isinstance(one, bool | None | dict) and _is_number(one) and float(one) > bound
        for one in members
    )


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) or value.replace(".", "", 1).isdigit()


def _same(one: Any, other: Any) -> bool:
    return isinstance(one, bool) == isinstance(other, bool) and one == other


def _holds(test: Test, bound: dict[str, Any]) -> bool:
    op, *operands = test
    if op in ("and", "or"):
        return (all if op == "and" else any)(_holds(one, bound) for one in operands)
    if op == "not":
        return not _holds(operands[0], bound)
    if op in ("=", "eq"):
        return all(_equal(operands[0], one, bound) for one in operands[1:])
    if op in ("!=", "neq"):
        return all(_differ(one, other, bound) for one, other in combinations(operands, 2))
    amounts = [_amount(one, bound) for one in operands]
    return all(
        one is not None and other is not None and one[0] == other[0] and _in_order(op, one, other)
        for one, other in pairwise(amounts)
    )


def _in_order(op: str, one: tuple[str, Any], other: tuple[str, Any]) -> bool:
    less: bool = one[1] < other[1]
    equal: bool = one[1] == other[1]
    return {"<": less, "<=": less or equal, ">": not less and not equal, ">=": not less}[op]


def _equal(one: Any, other: Any, bound: dict[str, Any]) -> bool:
    if isinstance(one, tuple) or isinstance(other, tuple):
        left, right = _amount(one, bound), _amount(other, bound)
        return left is not None and left == right
    return _same(_value(one, bound), _value(other, bound))


def _differ(one: Any, other: Any, bound: dict[str, Any]) -> bool:
    if isinstance(one, tuple) or isinstance(other, tuple):
        left, right = _amount(one, bound), _amount(other, bound)
        return left is not None and right is not None and left != right
    return not _same(_value(one, bound), _value(other, bound))


def _value(operand: Any, bound: dict[str, Any]) -> Any:
    is_variable = isinstance(operand, str) and operand.startswith("?")
    return bound[operand[1:]] if is_variable else operand


def _amount(operand: Any, bound: dict[str, Any]) -> tuple[str, Any] | None:
    """Return the kind and amount of a value: a number, the seconds of a clock, or a text."""
    if isinstance(operand, tuple):
        op, left, right = operand[0], _amount(operand[1], bound), _amount(operand[2], bound)
        return None if left is None or right is None else _calculated(op, left, right)
    value = _value(operand, bound)
    if value is None or isinstance(value, bool):
        return None
    if isinstance(value, str) and value.count(":") == 2:
        hours, minutes, seconds = value.split(":")
        return "clock", int(hours) * 3600 + int(minutes) * 60 + float(seconds)
    if isinstance(value, str) and not _is_number(value):
        return "text", value
    return "number", float(value)


def _calculated(op: str, left: tuple[str, Any], right: tuple[str, Any]) -> tuple[str, Any] | None:
    kinds = left[0], right[0]
    if op == "-" and kinds == ("clock", "clock"):
        return "number", round(left[1] - right[1], 6)
    if op == "+" and kinds == ("number", "clock"):
        left, right, kinds = right, left, ("clock", "number")
    if kinds == ("clock", "number") and op in "+-":
        return "clock", round(left[1] + right[1] if op == "+" else left[1] - right[1], 6)
    if kinds != ("number", "number") or (op == "/" and right[1] == 0):
        return None
    one, other = left[1], right[1]
    return "number", {"+": one + other, "-": one - other, "*": one * other}.get(
        op, one / other if other else None
    )


def _test(test: Test) -> str:
    return f"({' '.join([test[0], *(_operand(one) for one in test[1:])])})"


def _operand(operand: Any) -> str:
    if isinstance(operand, tuple):
        return _test(operand)
    if isinstance(operand, str) and operand.startswith("?"):
        return operand
    return _constant(operand)


def _constant(value: Any) -> str:
    return f'"{value}"' if isinstance(value, str) else str(value)
