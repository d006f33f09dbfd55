"""The command `python -m tests.benchmarks.sampler OUT script.py WORD...`: runs a script and samples
the position of its main thread, every few milliseconds of CPU time, from SIGUSR1 to SIGUSR2; then
writes OUT.

A sample is taken between two bytecodes. Time in native code called by a function counts for that
function; time in the event loop's own native code shows as the first function called after it,
marked `(entered)`.
"""

import json
import runpy
import signal
import sys
from collections import Counter
from pathlib import Path
from types import FrameType

INTERVAL_S = 0.001  # asked for; the kernel's tick may be 4 ms
SHOWN = 15
EVERYWHERE = 0.97  # what nearly every sample is inside of says nothing
_self: Counter[str] = Counter()
_total: Counter[str] = Counter()


def _sample(signum: int, frame: FrameType | None) -> None:
    if frame is None:
        return
    entered = " (entered)" if frame.f_lasti <= 2 else ""
    _self[_place(frame) + entered] += 1
    seen = set()
    while frame is not None:
        seen.add(_place(frame))
        frame = frame.f_back
    _total.update(seen)


def _place(frame: FrameType) -> str:
    code = frame.f_code
    return f"{'/'.join(Path(code.co_filename).parts[-3:])}:{code.co_qualname}"


def _begin(signum: int, frame: FrameType | None) -> None:
    _self.clear()
    _total.clear()
    signal.setitimer(signal.ITIMER_PROF, INTERVAL_S, INTERVAL_S)


def main() -> None:
    out = Path(sys.argv[1])
    sys.argv = sys.argv[2:]

    def end(signum: int, frame: FrameType | None) -> None:
        signal.setitimer(signal.ITIMER_PROF, 0)
        aside = out.with_suffix(".part")
        aside.write_text(json.dumps([_self.total(), _self.most_common(60), _total.most_common(90)]))
        aside.rename(out)

    signal.signal(signal.SIGPROF, _sample)
    signal.signal(signal.SIGUSR1, _begin)
    signal.signal(signal.SIGUSR2, end)
    sys.path.insert(0, str(Path(sys.argv[0]).parent))
    runpy.run_path(sys.argv[0], run_name="__main__")


def table(out: Path, title: str) -> str:
    """Return a profile for people: the functions with the most time of their own, and in all."""
    count, own, total = json.loads(out.read_text())
    inside = [(place, found) for place, found in total if found < EVERYWHERE * count]
    lines = [f"profile of {title}: {count} samples of CPU time"]
    for name, ranked, shown in (("self", own, SHOWN), ("with callees", inside, 2 * SHOWN)):
        lines.append(f"  {name}")
        lines += [f"    {found / count:6.1%}  {place}" for place, found in ranked[:shown]]
    return "\n".join(lines)


if __name__ == "__main__":
    main()
