"""Metrics of a process's interests: their sizes, and the work of matching. Plain module."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from delivery.forward.stream_matcher import CallbackMatcher, Sizes
from eventhub.base import metrics


class Reported(NamedTuple):
    """What the metrics of an interest depend on; work is done while events are passed."""

    passed: int
    sizes: Sizes
    epoch: int  # of its index; 0: none


def update_metrics(
    by_label: Mapping[str, Sequence[CallbackMatcher]], before: Mapping[str, Sequence[Reported]]
) -> dict[str, list[Reported]]:
    """Set the metrics of streams by label, where something changed since `before`, and zero those
    of labels that are gone; return what is reported.
    """
    reported = {label: [*map(_reported, interests)] for label, interests in by_label.items()}
    for label, present in reported.items():
        if present == before.get(label):
            continue
        for interest in by_label[label]:
            interest.report_work(label)
        _set(label, present)
    for label in before.keys() - reported.keys():
        _set(label, [])
    return reported


def _reported(interest: CallbackMatcher) -> Reported:
    indexed = interest.indexed
    epoch = 0 if indexed is None else indexed.epoch.manifest.epoch
    return Reported(interest.passed, interest.sizes, epoch)


def _set(label: str, reported: Sequence[Reported]) -> None:
    sizes = [one.sizes for one in reported]
    versions = {
        "base": sum(size.base for size in sizes),
        "memory": sum(size.delta for size in sizes),
        "ended": sum(size.ended for size in sizes),
    }
    for where, count in versions.items():
        metrics.INDEX_VERSIONS.labels(stream=label, where=where).set(count)
    epoch = max((one.epoch for one in reported), default=0)
    metrics.INDEX_EPOCH.labels(stream=label).set(epoch)
