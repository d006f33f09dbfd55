"""A summary of the values of one path in otherwise equal alternatives: all values, then prefixes of
texts or a range of numbers, then only that a value exists. Plain module.

Each step matches all that the step before matched, and takes less memory.
"""

from collections.abc import Iterator, Sequence

from registrations.filters.ast import Compare, Const, Exists, In, Node, Path, Scalar, Text

_PREFIXES_MAX = (64, 16, 4)  # of one path, by step
_PREFIX_CHARS_MAX = 64
_IN_VALUES_MAX = 400  # of one test, so that it can be parsed: a filter has 1,000 parts ...
_IN_CHARS_MAX = 8_192  # ... and 16,384 characters

Tests = tuple[Node, ...]  # that must all hold


class Texts:
    """A set of texts, or their prefixes."""

    def __init__(self) -> None:
        self.exact = True  # it matches nothing else
        self._texts: set[str] = set()
        self._step = 0
        self._chars = _PREFIX_CHARS_MAX  # of the prefixes; 0: it matches any text

    def add(self, value: Scalar) -> None:
        if self.exact:
            self._texts.add(str(value))
        elif self._chars:
            self._texts.add(str(value)[: self._chars])
            self._shorten()

    def merge(self, other: "Varying") -> None:
        """Add all that another summary matches."""
        if not isinstance(other, Texts):
            raise TypeError(other)
        self._step = max(self._step, other._step)
        self._chars = min(self._chars, other._chars)
        self._texts |= other._texts
        if not (self.exact and other.exact):
            self.exact = False
            self._shorten()

    def coarsen(self) -> bool:
        """Widen by one step; return False if that is not possible."""
        if not self._chars:
            return False
        self.exact = False
        self._step += 1
        self._shorten()
        return True

    def tests(self, path: Path) -> Iterator[Tests]:
        """Yield tests, of which one must hold."""
        if self.exact:
            yield from _among(path, sorted(self._texts))
        elif self._chars:
            for text in sorted(self._texts):
                yield (Text("prefix", path, text),)
        else:
            yield _there(path)

    def __len__(self) -> int:
        return len(self._texts)

    def _shorten(self) -> None:
        """Cut to as many prefixes as the step allows; a shorter text remains whole, as a prefix."""
        most = _PREFIXES_MAX[self._step - 1] if self._step <= len(_PREFIXES_MAX) else 0
        while self._chars:
            self._texts = {text[: self._chars] for text in self._texts}
            if len(self._texts) <= most and "" not in self._texts:
                return
            self._chars -= 1
        self._texts = set()


class Numbers:
    """A set of numbers, or their least and greatest."""

    def __init__(self) -> None:
        self.exact = True
        self._numbers: set[int | float] = set()
        self._bounds: tuple[int | float, int | float] | None = None
        self._any = False

    def add(self, value: Scalar) -> None:
        if not isinstance(value, int | float):
            raise TypeError(value)
        least, most = self._bounds or (value, value)
        self._bounds = min(least, value), max(most, value)
        if self.exact:
            self._numbers.add(value)

    def merge(self, other: "Varying") -> None:
        if not isinstance(other, Numbers):
            raise TypeError(other)
        self._any |= other._any
        self.exact &= other.exact
        for value in (*(other._bounds or ()), *other._numbers):
            self.add(value)
        if not self.exact:
            self._numbers = set()

    def coarsen(self) -> bool:
        if self._any:
            return False
        self._any = not self.exact
        self.exact = False
        self._numbers = set()
        return True

    def tests(self, path: Path) -> Iterator[Tests]:
        if self.exact:
            yield from _among(path, sorted(self._numbers))
        elif self._any or self._bounds is None:
            yield _there(path)
        else:
            least, most = self._bounds
            yield Compare(">=", path, Const(least)), Compare("<=", path, Const(most))

    def __len__(self) -> int:
        return len(self._numbers)


Varying = Texts | Numbers


def _among(path: Path, values: Sequence[Scalar]) -> Iterator[Tests]:
    """Yield tests for one of the values, each short enough to be parsed."""
    taken: list[Const] = []
    chars = 0
    for value in values:
        chars += len(str(value)) + 8
        if taken and (len(taken) == _IN_VALUES_MAX or chars > _IN_CHARS_MAX):
            yield (_one_of(path, taken),)
            taken, chars = [], len(str(value)) + 8
        taken.append(Const(value))
    if taken:
        yield (_one_of(path, taken),)


def _one_of(path: Path, values: list[Const]) -> Node:
    return Compare("=", path, values[0]) if len(values) == 1 else In(path, tuple(values))


def _there(path: Path) -> Tests:
    return (Exists(path),) if path.space == "attributes" else ()
