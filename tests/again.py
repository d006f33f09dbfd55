"""Run the tests that failed once more, alone: `python -m tests.again STATUS`.

`make test` runs this module after pytest, whose exit status is STATUS. Several test processes share
a few cores, so a test that waits for another process may be late there. A test that fails alone as
well is broken. One that passes is listed: either it is impatient, or the product has a race, and
both are to be mended. More than `AGAIN_MAX` failures are never put down to load.
"""

import argparse
import json
import subprocess
import sys
from pathlib import Path

AGAIN_MAX = 10
SOME_FAILED = 1  # pytest's exit status: it ran to its end, and tests failed
FAILED = Path(".pytest_cache/v/cache/lastfailed")


def failed() -> list[str]:
    """Return the ids of the tests that failed, or of the files that could not be loaded, in the
    last run of pytest.
    """
    return sorted(json.loads(FAILED.read_text())) if FAILED.exists() else []


def main() -> int:
    """Return the exit status: that of the first run, or 0 if all that failed pass alone."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("status", type=int, help="the exit status of the first run of pytest")
    status: int = parser.parse_args().status
    tests = failed()
    if status != SOME_FAILED or not 0 < len(tests) <= AGAIN_MAX:
        return status
    print(f"\nRunning the tests that failed once more, alone: {len(tests)}", flush=True)
    again = subprocess.run([sys.executable, "-m", "pytest", *tests], check=False).returncode
    if again == 0:
        print("\nUNSTEADY, failed beside other tests and passed alone; find out why:")
        print("\n".join(f"  {test}" for test in tests))
    return again


if __name__ == "__main__":
    sys.exit(main())
