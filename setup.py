"""Builds the compiled engine of the match index where there is a compiler; what else is to be said
of the package stands in pyproject.toml. Plain.

An installation without a compiler, without Python's headers or without nanobind succeeds without
that engine; `python -m registrations.match_index.engines.available` says which one there is.
"""

from pathlib import Path

from setuptools import Extension, setup

try:
    import nanobind
except ImportError:
    nanobind = None

KERNEL = Path("registrations/match_index/engines")


def extensions() -> list[Extension]:
    if nanobind is None:
        return []
    home = Path(nanobind.include_dir()).parent
    return [
        Extension(
            "registrations.match_index.engines.kernel",
            [str(KERNEL / "kernel.cpp"), str(KERNEL / "nanobind.cpp")],
            include_dirs=[str(home / part) for part in ("include", "src", "ext/robin_map/include")],
            depends=[str(path) for path in sorted(KERNEL.glob("*.h"))],
            define_macros=[("NDEBUG", None), ("NB_COMPACT_ASSERTIONS", None)],
            extra_compile_args=[
                "-std=c++17",
                "-O3",
                "-g0",
                "-fvisibility=hidden",
                "-fno-strict-aliasing",
            ],
            optional=True,
        )
    ]


setup(ext_modules=extensions())
