"""One machine of a hub: a `manage.py up` with a data folder and a port of its own, on servers that
it does not run.
"""

import asyncio
import random
from collections.abc import Mapping
from pathlib import Path

from tests.chaos.hub import Crew, HubUnderTest
from tests.chaos.starts.endings import all_killed
from tests.chaos.until import until

CREW = Crew(web=1, forwarders=1, workers=1)
PARTS = ("web-1", "forward-1", "worker-1", "beat")
GONE_S_MAX = 30.0


class Machine:
    """A machine that is started, killed and started again. `given`: the settings that all machines
    share.
    """

    def __init__(self, data: Path, given: Mapping[str, str]) -> None:
        self.data = data
        self.url = ""
        self.lives = 0
        self.hub: HubUnderTest
        self._given = given

    async def start(self) -> None:
        """Start all processes, on the same port as before, and wait until they are ready."""
        port = int(self.url.rpartition(":")[2]) if self.url else 0
        self.hub = HubUnderTest(self.data, CREW, port, **self._given)
        self.lives += 1
        await self.hub.ready()
        self.url = self.hub.url

    async def kill(self, dice: random.Random) -> None:
        """Kill all processes with SIGKILL, the supervisor among them; keep what they printed."""
        await all_killed(self.hub, dice)
        self.hub.kill_leftovers()
        await until(lambda: not self.hub.leftovers(), f"the end of {self.data.name}", GONE_S_MAX)
        await asyncio.to_thread(self.hub.wait_end)
        self.data.with_name(f"{self.data.name}-{self.lives}.log").write_text(self.hub.output())

    def stop(self) -> None:
        if self.lives:
            self.hub.stop()
