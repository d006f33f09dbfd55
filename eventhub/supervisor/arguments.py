"""Integer arguments of `manage.py up`, checked before anything starts. Plain module."""

from argparse import ArgumentTypeError
from collections.abc import Callable

PORT_MAX = 65_535


def whole(least: int, most: int | None = None) -> Callable[[str], int]:
    """Return a type for argparse: a whole number within bounds."""
    words = f"from {least} to {most}" if most is not None else f"of at least {least}"

    def read(text: str) -> int:
        try:
            number = int(text)
        except ValueError:
            number = least - 1
        if number < least or (most is not None and number > most):
            raise ArgumentTypeError(f"{text!r} is not a whole number {words}")
        return number

    return read
