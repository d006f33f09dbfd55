"""The garbage collector of a long-lived process. Plain module."""

import gc

from eventhub.base import limits


def freeze_loaded() -> None:
    """Keep collections away from all objects loaded so far, which live as long as the process: a
    full collection that walks them stops it for 50 ms. Collect young objects in short steps, and
    all of them rarely: cycles among old ones are few, the rest goes without the collector.
    """
    gc.collect()
    gc.freeze()
    gc.set_threshold(*limits.GC_THRESHOLDS)
