"""The garbage collector of a long-lived process. Plain module."""

import gc

from eventhub.base import limits


def freeze_loaded() -> None:
    """Exempt all objects loaded so far from collections, which live as long as the process (a full
    collection that walks them stops it for 50 ms), and collect the others less often.
    """
    gc.collect()
    gc.freeze()
    gc.set_threshold(limits.GC_THRESHOLD)
