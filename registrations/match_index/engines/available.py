"""The engines of the match index by name, the fastest first. Plain module."""

from collections.abc import Callable

from registrations.filters.evaluate import TypeHierarchy, no_supertypes
from registrations.match_index.engines.compiled_engine import IS_BUILT, CompiledEngine
from registrations.match_index.engines.engine import Engine
from registrations.match_index.engines.numpy_engine import NumpyEngine
from registrations.match_index.engines.python_engine import PythonEngine
from registrations.match_index.format.shard import Shard

AUTO = "auto"  # the fastest available
ENGINES: dict[str, Callable[[Shard, TypeHierarchy], Engine]] = {
    **({"compiled": CompiledEngine} if IS_BUILT else {}),
    "numpy": NumpyEngine,
    "python": PythonEngine,
}


def new_engine(name: str, shard: Shard, hierarchy: TypeHierarchy = no_supertypes) -> Engine:
    """Return an engine for a shard of an open index. Raises ValueError for an unknown engine."""
    return ENGINES[chosen(name)](shard, hierarchy)


def chosen(name: str) -> str:
    """Return the engine that a name selects. Raises ValueError for an unknown engine."""
    if name == AUTO:
        return next(iter(ENGINES))
    if name not in ENGINES:
        raise ValueError(f"unknown engine {name!r}; use one of {', '.join(ENGINES)}")
    return name


def engine_description() -> str:
    """Return a line for people about the engine in use."""
    if IS_BUILT:
        return "The match index uses its compiled engine."
    return (
        "The match index uses numpy, because its compiled engine was not built; that needs a C++"
        " compiler and Python's headers."
    )


if __name__ == "__main__":
    print(engine_description())  # noqa: T201 - shown by the installation
