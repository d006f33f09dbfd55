"""Builds the client's wheel, which contains the packages that the hub and its clients share and so
needs no hub. An editable installation finds them in the repository.
"""

import shutil
from pathlib import Path

from setuptools import setup
from setuptools.command.build_py import build_py

ROOT = Path(__file__).resolve().parents[2]
SHARED = (
    "eventhub/base/clock.py",
    "eventhub/base/errors.py",
    "eventhub/base/limits.py",
    "eventhub/event/*.py",
    "registrations/filters/**/*.py",
)


class BuildWithShared(build_py):
    """Copies the shared packages into the wheel."""

    def run(self) -> None:
        super().run()
        if self.editable_mode:
            return
        for source in (file for pattern in SHARED for file in sorted(ROOT.glob(pattern))):
            target = Path(self.build_lib, source.relative_to(ROOT))
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(source, target)


setup(cmdclass={"build_py": BuildWithShared})
