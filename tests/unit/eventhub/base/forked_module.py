"""What test_forking has a server load."""

import os

LOADED_BY = os.getpid()
adopted: list[str] = []


def adopt_environment() -> None:
    adopted.append(os.environ.get("WORD", ""))
