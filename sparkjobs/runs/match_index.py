"""The hooks of the job `match_index`: the hub's own builder handles few registrations, and shards
built by Spark are published. SQL module.
"""

import csv
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from eventhub.base import limits
from eventhub.postgresql.connections import blocking
from registrations.match_index.builds.build import BuildOrder, build
from registrations.match_index.builds.builder_lock import builder_lock
from registrations.match_index.epochs.publish import BuiltShards, publish_stream
from registrations.match_index.epochs.state import IndexState, state_of
from registrations.match_index.epochs.tables import snapshot_of
from registrations.match_index.format.builder import BuildProgress
from registrations.match_index.format.manifest import IndexManifest
from sparkjobs.match_index.shards import SHARDS
from sparkjobs.match_index.slices import REFUSED
from sparkjobs.result import JobResult, StoredResult
from sparkjobs.runs.context import RunContext
from sparkjobs.runs.errors import BadResult
from sparkjobs.runs.export.snapshot import read_snapshot

AUTO, LOCAL = "auto", "local"
SEALED = "sealed"  # the builder's last stage before an epoch is published
_POLL_S = 0.5  # for the end of another builder


def build_locally(context: RunContext) -> JobResult | None:
    """Build with the hub's builder if that is requested or faster than Spark; else return None.
    Raises IndexNotUsed and the builder's errors.
    """
    stream_id, engine = context.params["stream_id"], context.params["engine"]
    with blocking(context.database_url, name="job") as connection:
        snapshot_of(connection, stream_id)
        state = state_of(connection, context.data, stream_id)
    if engine != LOCAL and (engine != AUTO or state.changed_since >= limits.SPARK_INDEX_MIN):
        return None
    order = BuildOrder(context.database_url, context.data, stream_id)
    manifest = build(order, lambda progress: _report(context, progress))
    return _result(context, manifest, "local builder", _reason(state, requested=engine == LOCAL))


def publish(context: RunContext, stored: StoredResult) -> JobResult:
    """Publish Spark's shards as the stream's next epoch, as of the snapshot they were built from.
    Raises BadResult and errors of publishing.
    """
    stream_id = context.params["stream_id"]
    files = sorted((context.work / SHARDS).glob("*.idx"))
    if len(files) != stored.result.figures["shards"]:
        raise BadResult(
            f"{len(files)} shards exist; the job wrote {stored.result.figures['shards']}."
        )
    moment = read_snapshot(context.inputs).moments[stream_id]
    shards = BuiltShards(stream_id, moment, files, _refused(context.result / REFUSED))
    with blocking(context.database_url, name="job") as connection:
        manifest = publish_stream(
            connection, context.data, shards, lambda progress: _report(context, progress)
        )
    result = _result(context, manifest, "spark", "built by Spark")
    return result._replace(about=stored.result.about)


def _reason(state: IndexState, *, requested: bool) -> str:
    """Explain why the local builder was used."""
    if state.epoch:
        count = f"{state.changed_since:,} versions changed since epoch {state.epoch}"
    else:
        count = f"{state.changed_since:,} registrations"
    because = "as requested" if requested else f"Spark pays off from {limits.SPARK_INDEX_MIN:,}"
    return f"built locally: {count}; {because}"


def _result(context: RunContext, manifest: IndexManifest, engine: str, reason: str) -> JobResult:
    figures: dict[str, int | float | str | None] = {
        "epoch": manifest.epoch,
        "registrations": manifest.ids,
        "entries": manifest.entries,
        "shards": len(manifest.parts),
        "bytes": manifest.bytes,
        "refused": len(manifest.facts["refused"]),
    }
    stream = context.params["stream"]
    summary = f"{stream}: epoch {manifest.epoch}, {manifest.ids:,} versions of registrations"
    details = {"stream": stream, "engine": engine, "reason": reason, **figures}
    return JobResult(f"{summary}, {reason}.", figures, details=details)


def _refused(file: Path) -> tuple[int, ...]:
    with file.open(newline="") as lines:
        return tuple(int(row["version"]) for row in csv.DictReader(lines))


def _report(context: RunContext, progress: BuildProgress) -> None:
    context.report(f"building: {progress.stage}", progress.entries)
    if progress.stage == SEALED:  # published next
        context.publishing()


@contextmanager
def lock(context: RunContext) -> Iterator[None]:
    """Exclude other builders of this data folder within the block, so that none publishes a newer
    epoch than the snapshot read here.
    """
    while True:
        with builder_lock(context.data, wait=False) as ours:
            if ours:
                yield
                return
        context.report("waiting for another builder", 0)
        threading.Event().wait(_POLL_S)
