"""Metrics of a process's interests: their sizes, and the work of matching. Plain module."""

from collections.abc import Mapping, Sequence

from delivery.forward.stream_matcher import CallbackMatcher
from eventhub.base import metrics


def update_metrics(
    by_label: Mapping[str, Sequence[CallbackMatcher]], before: frozenset[str]
) -> frozenset[str]:
    """Set the metrics of streams by label, zero those of labels gone since `before`; return
    labels.
    """
    for label, interests in by_label.items():
        for interest in interests:
            interest.report_work(label)
        sizes = [interest.sizes for interest in interests]
        _set(label, "base", sum(size.base for size in sizes))
        _set(label, "memory", sum(size.delta for size in sizes))
        _set(label, "ended", sum(size.ended for size in sizes))
        epochs = [one.indexed.epoch.manifest.epoch for one in interests if one.indexed is not None]
        metrics.INDEX_EPOCH.labels(stream=label).set(max(epochs, default=0))
    for label in before - by_label.keys():
        for where in ("base", "memory", "ended"):
            _set(label, where, 0)
        metrics.INDEX_EPOCH.labels(stream=label).set(0)
    return frozenset(by_label)


def _set(label: str, where: str, versions: int) -> None:
    metrics.INDEX_VERSIONS.labels(stream=label, where=where).set(versions)
