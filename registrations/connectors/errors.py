"""Errors of connectors, part of the one tree of eventhub/base/errors.py, and the faults of a
connector that runs. Plain module.
"""

from eventhub.base.errors import Conflict, NotFound


class UnknownConnector(NotFound):
    """There is no such connector; list them with GET /v1/connectors."""


class ConnectorExists(Conflict):
    """The client has a connector with this name; choose another name."""


class ConnectorFault(Exception):
    """Why a connector cannot go on: a code, and a text that names no secret. `is_lasting`: only a
    change of the connector, or of what it reads, ends it; then it is tried rarely.
    """

    def __init__(self, code: str, detail: str, *, is_lasting: bool = False) -> None:
        self.code = code
        self.detail = detail
        self.is_lasting = is_lasting
        super().__init__(detail)
