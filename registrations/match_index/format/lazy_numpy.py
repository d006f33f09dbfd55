"""numpy, loaded when something of it is first used: a tenth of the CPU time of a start, and most
processes have too few registrations to build an index. Plain module.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import numpy as np
else:

    class _Numpy:
        def __getattr__(self, name: str) -> Any:
            found = getattr(import_module("numpy"), name)
            setattr(self, name, found)
            return found

    np = _Numpy()

__all__ = ["np"]
