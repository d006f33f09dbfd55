"""The machine that runs compiled programs: a stack of values and a stack of calls, both lists, so
that no program reaches Python's own stack. Plain module.

Each instruction is a step, and a function takes more steps for more data, so that the limit of
steps is a limit of time. Every value that a run creates counts against its memory, even when the
value is no longer used: a run is short, and the count is the same each time. A machine knows no
clock, no random numbers and nothing of the host: the same program with the same event and memory
does the same.
"""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, Protocol

from eventhub.base import limits
from registrations.agents.errors import Fault, RunFault
from registrations.agents.values import EventValue, ListValue, Value, is_true, list_of, size_of
from registrations.filters.ast import TextPosition

UNDEFINED: Any = object()


class Code(NamedTuple):
    """The instructions of a function, each with an argument, and where in the text each is from.
    `slots`: local variables, of which the first are the parameters.
    """

    name: str
    parameters: int
    slots: int
    instructions: list[tuple["Instruction", Any]]
    positions: list[TextPosition]


class Host(Protocol):
    """What a run may use of the engine."""

    event: EventValue

    def recent(self, number: int, count: int) -> Sequence[EventValue]:
        """Return the events among the most recent `count` that filter `number` passes, the oldest
        first.
        """

    def recall(self, name: str) -> Value:
        """Return what the agent remembers under a name; UNDEFINED if it does not."""

    def remember(self, name: str, value: Value) -> None:
        """Remember a value; UNDEFINED forgets it. Raises RunFault beyond the limits."""

    def notify(self, events: Sequence[EventValue]) -> None:
        """Notify the agent's owner of events. Raises RunFault beyond the limits."""

    def announce(self, domain: str, type: str, attributes: Value) -> None:
        """Announce a new event. Raises RunFault beyond the limits."""


class Machine:
    """One run of a program."""

    __slots__ = (
        *("_calls", "_codes", "code", "frame", "globals", "host", "memory", "pc", "stack"),
        "steps",
    )

    def __init__(self, codes: Sequence[Code], host: Host) -> None:
        self.host = host
        self.stack: list[Value] = []
        self.steps = limits.AGENT_STEPS_MAX  # left
        self.memory = limits.AGENT_MEMORY_BYTES_MAX  # left
        self._codes = codes
        self._calls: list[tuple[Code, int, list[Any]]] = []
        self.code: Code | None = codes[0]
        self.pc = 0
        self.globals = self.frame = [UNDEFINED] * codes[0].slots

    def run(self, steps: int) -> Fault | None:
        """Run the program for about so many steps, or to its end: then `code` is None. Return why
        it ended early, if it did.
        """
        until = self.steps - steps
        try:
            while self.code is not None and self.steps > until:
                self.steps -= 1
                if self.steps < 0:
                    raise _steps_fault()
                instruction, argument = self.code.instructions[self.pc]
                self.pc += 1
                instruction(self, argument)
        except RunFault as fault:
            assert self.code is not None  # noqa: S101
            line, column = self.code.positions[max(self.pc - 1, 0)]
            self.code = None
            return Fault(fault.code, fault.message, line, column)
        return None

    def work(self, amount: int) -> None:
        """Count the steps of a function beyond its first. Raises RunFault beyond the limit."""
        self.steps -= amount
        if self.steps < 0:
            raise _steps_fault()

    def read(self, chars: int) -> None:
        """Count the steps to read or copy a text."""
        self.work(chars // limits.AGENT_CHARS_PER_STEP)

    def allocate(self, size: int) -> None:
        """Count the memory of a new value. Raises RunFault beyond the limit."""
        self.memory -= size
        if self.memory < 0:
            most = limits.AGENT_MEMORY_BYTES_MAX
            raise RunFault("memory_max", f"The values of one run take more than {most:,} bytes.")

    def created(self, value: Value) -> Value:
        """Count the memory of a new value and return it."""
        self.allocate(size_of(value))
        return value

    def call(self, number: int) -> None:
        """Begin a function, whose arguments are on the stack."""
        if len(self._calls) >= limits.AGENT_CALL_DEPTH_MAX:
            most = limits.AGENT_CALL_DEPTH_MAX
            raise RunFault("call_depth_max", f"Functions call each other more than {most:,} deep.")
        code = self._codes[number]
        assert self.code is not None  # noqa: S101
        self._calls.append((self.code, self.pc, self.frame))
        self.code, self.pc = code, 0
        count = code.parameters
        arguments = self.stack[len(self.stack) - count :]
        del self.stack[len(self.stack) - count :]
        self.frame = [*arguments, *[UNDEFINED] * (code.slots - count)]

    def leave(self) -> None:
        """End the function; its value is on the stack."""
        if self._calls:
            self.code, self.pc, self.frame = self._calls.pop()
        else:
            self.code = None


def _steps_fault() -> RunFault:
    return RunFault("steps_max", f"One run takes more than {limits.AGENT_STEPS_MAX:,} steps.")


Instruction = Callable[[Machine, Any], None]
Function = Callable[[Machine, list[Value]], Value]


# --- instructions ---


def constant(machine: Machine, value: Value) -> None:
    """Push a constant."""
    machine.stack.append(value)


def load(machine: Machine, slot: int) -> None:
    """Push a local variable."""
    machine.stack.append(machine.frame[slot])


def store(machine: Machine, slot: int) -> None:
    """Set a local variable to the top of the stack, and remove that."""
    machine.frame[slot] = machine.stack.pop()


def load_global(machine: Machine, slot: int) -> None:
    """Push a variable of the program."""
    value = machine.globals[slot]
    if value is UNDEFINED:
        raise RunFault("not_defined", "The variable has no value yet; define it further above.")
    machine.stack.append(value)


def store_global(machine: Machine, slot: int) -> None:
    """Set a variable of the program to the top of the stack, and remove that."""
    machine.globals[slot] = machine.stack.pop()


def drop(machine: Machine, _: None) -> None:
    """Remove the top of the stack."""
    machine.stack.pop()


def jump(machine: Machine, target: int) -> None:
    """Continue elsewhere."""
    machine.pc = target


def jump_unless(machine: Machine, target: int) -> None:
    """Continue elsewhere if the top of the stack is not true; remove it."""
    if not is_true(machine.stack.pop()):
        machine.pc = target


def jump_unless_or_drop(machine: Machine, target: int) -> None:
    """Continue elsewhere if the top of the stack is not true, and keep it; else remove it."""
    if is_true(machine.stack[-1]):
        machine.stack.pop()
    else:
        machine.pc = target


def jump_if_or_drop(machine: Machine, target: int) -> None:
    """Continue elsewhere if the top of the stack is true, and keep it; else remove it."""
    if is_true(machine.stack[-1]):
        machine.pc = target
    else:
        machine.stack.pop()


def call(machine: Machine, number: int) -> None:
    """Call a function of the program."""
    machine.call(number)


def leave(machine: Machine, _: None) -> None:
    """Return from a function, or end the program."""
    machine.leave()


def apply(machine: Machine, argument: tuple[Function, int]) -> None:
    """Replace the arguments on the stack by the value of a built-in function."""
    function, count = argument
    stack = machine.stack
    first = len(stack) - count
    arguments = stack[first:]
    del stack[first:]
    stack.append(function(machine, arguments))


def begin_loop(machine: Machine, slot: int) -> None:
    """Begin a loop over the list on top of the stack: an iterator and a list of results."""
    found = machine.stack.pop()
    if not isinstance(found, ListValue):
        raise RunFault("wrong_type", "A loop takes a list.")
    machine.frame[slot] = iter(found.items)
    machine.frame[slot + 1] = []


def next_item(machine: Machine, argument: tuple[int, int]) -> None:
    """Push the next item of a loop, or go on behind the loop."""
    slot, target = argument
    item = next(machine.frame[slot], UNDEFINED)
    if item is UNDEFINED:
        machine.pc = target
    else:
        machine.stack.append(item)


def collect(machine: Machine, slot: int) -> None:
    """Add the top of the stack to the results of a loop, and remove it."""
    machine.frame[slot + 1].append(machine.stack.pop())


def end_loop(machine: Machine, slot: int) -> None:
    """Push the list of the results of a loop."""
    results = machine.frame[slot + 1]
    machine.work(len(results) // 8)
    machine.stack.append(machine.created(list_of(results)))


def recent(machine: Machine, number: int) -> None:
    """Replace a count by the events among so many recent ones that a filter passes."""
    count = machine.stack.pop()
    most = limits.AGENT_RECENT_MAX
    if not isinstance(count, int) or isinstance(count, bool) or not 1 <= count <= most:
        raise RunFault("wrong_type", f"`recent` takes a number of events from 1 to {most:,}.")
    found = machine.host.recent(number, count)
    machine.work(len(found) // 4)
    machine.stack.append(machine.created(list_of(found)))
