"""pyarrow without pandas. Plain module."""

import sys
from importlib.machinery import ModuleSpec


class _NoPandas:
    """An importer that finds no pandas."""

    def find_spec(self, name: str, path: object = None, target: object = None) -> ModuleSpec | None:
        if name == "pandas":
            raise ImportError(name=name)
        return None


def leave_pandas_out() -> None:
    """Prevent pyarrow from importing pandas, before its first conversion of Python's values.

    It does so to see whether they are of pandas: 0.4 s of CPU and 40 MB, and in the hub's processes
    they never are. A later conversion to pandas still works.
    """
    import pyarrow as pa

    if "pandas" in sys.modules:
        return
    importer = _NoPandas()
    sys.meta_path.insert(0, importer)
    try:
        pa.array([0])  # it tries, and remembers that there is none
    finally:
        sys.meta_path.remove(importer)
