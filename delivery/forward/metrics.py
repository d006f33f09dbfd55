"""Shows as metrics what the interests of a process have, and what matching them took.
Plain module.
"""

from collections.abc import Mapping, Sequence

from delivery.forward.interest import Interest
from eventhub.base import metrics


def show(by_label: Mapping[str, Sequence[Interest]], before: frozenset[str]) -> frozenset[str]:
    """Of streams by label; the labels `before` that are gone have nothing any more. The labels."""
    for label, interests in by_label.items():
        for interest in interests:
            interest.tell_work(label)
        sizes = [interest.sizes for interest in interests]
        _set(label, "base", sum(size.base for size in sizes))
        _set(label, "memory", sum(size.delta for size in sizes))
        _set(label, "ended", sum(size.ended for size in sizes))
        epochs = [one.based.epoch.manifest.epoch for one in interests if one.based is not None]
        metrics.INDEX_EPOCH.labels(stream=label).set(max(epochs, default=0))
    for label in before - by_label.keys():
        for where in ("base", "memory", "ended"):
            _set(label, where, 0)
        metrics.INDEX_EPOCH.labels(stream=label).set(0)
    return frozenset(by_label)


def _set(label: str, where: str, versions: int) -> None:
    metrics.INDEX_VERSIONS.labels(stream=label, where=where).set(versions)
