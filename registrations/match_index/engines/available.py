"""The engines of the match index by name, the fastest first. Plain module."""

from collections.abc import Callable

from registrations.filters.evaluate import TypeHierarchy, no_supertypes
from registrations.match_index.engines.compiled_engine import IS_BUILT, CompiledEngine
from registrations.match_index.engines.engine import Engine
from registrations.match_index.engines.numpy_engine import NumpyEngine
from registrations.match_index.engines.python_engine import PythonEngine
from registrations.match_index.format.shard import Shard

AUTO = "auto"  # the fastest that is there
ENGINES: dict[str, Callable[[Shard, TypeHierarchy], Engine]] = {
    **({"compiled": CompiledEngine} if IS_BUILT else {}),
    "numpy": NumpyEngine,
    "python": PythonEngine,
}


def new_engine(name: str, shard: Shard, hierarchy: TypeHierarchy = no_supertypes) -> Engine:
    """Over a shard of an index that is open. Raises ValueError if there is no such engine."""
    return ENGINES[chosen(name)](shard, hierarchy)


def chosen(name: str) -> str:
    """The engine that a name means here. Raises ValueError if there is no such engine."""
    if name == AUTO:
        return next(iter(ENGINES))
    if name not in ENGINES:
        raise ValueError(f"no engine {name!r}; there are {', '.join(ENGINES)}")
    return name


def told() -> str:
    """One line for people: which engine answers here."""
    if IS_BUILT:
        return "The match index uses its compiled engine."
    return (
        "The match index uses numpy: its compiled engine was not built, for which a C++ compiler"
        " and Python's headers are needed."
    )


if __name__ == "__main__":
    print(told())  # noqa: T201 - what the installation says
