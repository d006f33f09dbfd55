"""Builds what is compiled, where there is a compiler: the engine of the match index, and the
transcoder, the encoder and the decoder of events. What else is to be said of the package stands in
pyproject.toml. Plain.

An installation without a compiler or Python's headers succeeds without them, and one without
nanobind without the engine; `python -m registrations.match_index.engines.available` says which
engine there is.
"""

from pathlib import Path
from typing import Any

from setuptools import Extension, setup

try:
    import nanobind
except ImportError:
    nanobind = None

KERNEL = Path("registrations/match_index/engines")
OPTIONS: dict[str, Any] = {
    "extra_compile_args": [
        "-std=c++17",
        "-O3",
        "-g0",
        "-fvisibility=hidden",
        "-fno-strict-aliasing",
    ],
    "optional": True,
}


def extensions() -> list[Extension]:
    events = [
        Extension(
            f"eventhub.event.{name}",
            [f"eventhub/event/{name}.cpp"],
            depends=["eventhub/event/stored_event.h"],
            **OPTIONS,
        )
        for name in ("transcoder", "encoder", "decoder")
    ]
    return events if nanobind is None else [*events, kernel()]


def kernel() -> Extension:
    home = Path(nanobind.include_dir()).parent
    return Extension(
        "registrations.match_index.engines.kernel",
        [str(KERNEL / "kernel.cpp"), str(KERNEL / "nanobind.cpp")],
        include_dirs=[str(home / part) for part in ("include", "src", "ext/robin_map/include")],
        depends=[str(path) for path in sorted(KERNEL.glob("*.h"))],
        define_macros=[("NDEBUG", None), ("NB_COMPACT_ASSERTIONS", None)],
        **OPTIONS,
    )


setup(ext_modules=extensions())
