"""Retirements that kill their own process at a given moment:
`python -m tests.integration.partition_archive_dying URL`. For the protocol see archive_crash.
"""

import asyncio
import sys

from delivery.partitions.archive import PartitionArchive
from delivery.partitions.retire import retire
from eventhub.postgresql.connections import connect
from tests.integration.archive_crash import CrashingFolder, serve


async def run(url: str, place: str, at: str) -> None:
    archive = PartitionArchive(place, url)
    archive.folder = CrashingFolder(place, at)
    connection = await connect(url, name="test")
    await retire(connection, archive)
    await connection.close()


if __name__ == "__main__":
    serve(lambda place, at: asyncio.run(run(sys.argv[1], place, at)))
