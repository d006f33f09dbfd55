"""Removes the archived copies of a deleted stream. Plain module."""

from collections.abc import Collection

from eventhub.eventlog.archive import layout
from eventhub.eventlog.archive.folder import ArchiveFolder


def remove_copies(
    folder: ArchiveFolder, zone_id: int, stream: str, segments: Collection[str]
) -> None:
    """Remove the files of the segments, given by UUID, also of copies that were not finished. A new
    stream of the same name has files in the same folder. Raises ArchiveUnavailable.
    """
    names = set(segments)
    paths = folder.names(layout.stream_folder(zone_id, stream))
    for path in sorted(paths, key=lambda path: path.endswith(".json")):  # manifests last
        if layout.segment_of(path) in names:
            folder.remove(path)
