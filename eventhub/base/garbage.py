"""The garbage collector of a long-lived process. Plain module."""

import gc

from eventhub.base import limits


def collect_rarely() -> None:
    """Collect less often while a program is loaded: what is loaded stays, and to look through it
    again and again takes a fourth of a start.
    """
    gc.set_threshold(limits.GC_LOADING)


def freeze_loaded() -> None:
    """Keep collections away from all objects loaded so far, which live as long as the process: a
    full collection that walks them stops it for 50 ms. Collect young objects in short steps, and
    all of them rarely: cycles among old ones are few, the rest goes without the collector.
    """
    gc.collect()
    gc.freeze()
    gc.set_threshold(*limits.GC_THRESHOLDS)
