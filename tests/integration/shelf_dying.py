"""Retirements that kill themselves at a moment: `python -m tests.integration.shelf_dying URL`. What
it is told and answers: see archive_dying.
"""

import asyncio
import sys

from delivery.partitions.archive import Shelf
from delivery.partitions.retire import retire
from eventhub.postgresql.connections import connect
from tests.integration.archive_dying import DyingPlace, serve


async def shelve(url: str, place: str, at: str) -> None:
    shelf = Shelf(place, url)
    shelf.place = DyingPlace(place, at)
    connection = await connect(url, name="test")
    await retire(connection, shelf)
    await connection.close()


if __name__ == "__main__":
    serve(lambda place, at: asyncio.run(shelve(sys.argv[1], place, at)))
