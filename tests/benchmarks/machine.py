"""The capacity of this machine in this run: write + fdatasync in a loop on the disk of the
database. Plain.
"""

import os
import tempfile
import time
from pathlib import Path
from statistics import median

BLOCK = bytes(8_192)


def fsync_rate(folder: Path, *, seconds: float) -> dict[str, float]:
    """Rewrite one preallocated block repeatedly, like a WAL file."""
    took: list[float] = []
    with tempfile.TemporaryFile(dir=folder) as file:
        file.write(bytes(16 * 1024 * 1024))
        file.flush()
        os.fsync(file.fileno())
        until = time.perf_counter() + seconds
        began = time.perf_counter()
        while began < until:
            os.pwrite(file.fileno(), BLOCK, len(took) % 2_048 * len(BLOCK))
            os.fdatasync(file.fileno())
            ended = time.perf_counter()
            took.append(ended - began)
            began = ended
    return {"fsync_per_s": len(took) / sum(took), "fsync_p50_ms": median(took) * 1_000}
