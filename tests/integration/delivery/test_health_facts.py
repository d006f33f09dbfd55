"""What web processes read of the hub's health while a table cannot be read."""

from delivery.health import facts
from eventhub.postgresql.connections import connect
from tests.integration.callbacks_world import CallbacksWorld


async def test_late_deliveries_are_unknown_if_they_cannot_be_found_in_time(
    world: CallbacksWorld,
) -> None:
    async with (
        await connect(world.url, name="eventhub test") as connection,
        await connect(world.url, name="eventhub test") as other,
    ):
        async with other.transaction():
            await other.execute("LOCK TABLE lanes IN ACCESS EXCLUSIVE MODE")
            found = await facts.read(connection)
        assert (found.overdue, found.overdue_us) == (False, None)
        assert found.now_us > 0
        again = await facts.read(connection)
        assert (again.overdue, again.overdue_us) == (True, None)
