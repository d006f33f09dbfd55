"""A retirement that kills itself at a moment: `python -m tests.integration.shelf_dying URL PLACE
MOMENT`. With MOMENT `list` it goes to its end and prints the moments there were.
"""

import asyncio
import sys

from delivery.forward.retiring import retire
from delivery.forward.shelf import Shelf
from eventhub.eventlog.database import connect
from tests.integration.archive_dying import DyingPlace


async def main(url: str, place: str, at: str) -> None:
    shelf = Shelf(place, url)
    shelf.place = DyingPlace(place, at)
    connection = await connect(url, name="test")
    await retire(connection, shelf)
    await connection.close()


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
