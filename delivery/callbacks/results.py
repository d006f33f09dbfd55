"""Writes what became of deliveries, many in one statement, each with its attempt. SQL module."""

from collections.abc import Sequence
from typing import NamedTuple

import psycopg

from delivery.callbacks.claims import SQL, Claimed, where
from delivery.callbacks.retry import Decision
from eventhub.base.logs import get_logger
from eventhub.postgresql.arrays import int8_array, text_array
from eventhub.postgresql.connections import Connection
from eventhub.postgresql.rows import cursor_of

log = get_logger(__name__)


class Attempt(NamedTuple):
    """One try as it is kept. `began_s` is of the monotonic clock, the times are the database's
    only when they are written.
    """

    outcome: str
    status: int | None
    began_s: float
    duration_ms: int
    url: str
    request: str  # the headers, without the signature
    response: str  # the answer's headers and the beginning of its body, or the error

    def age_us(self, now_s: float) -> int:
        """How long ago it was answered, or given up."""
        return int((now_s - self.began_s) * 1e6) - self.duration_ms * 1_000


_NOTHING = Attempt("", None, 0.0, 0, "", "", "")  # its outcome is not written


class Result(NamedTuple):
    """What became of a claimed delivery; no attempt if nothing was sent."""

    claimed: Claimed
    decision: Decision
    attempt: Attempt | None

    @property
    def outcome(self) -> str | None:
        return None if self.attempt is None else self.attempt.outcome


class Written(NamedTuple):
    """How many results were written, and how many of them end a delivery that was given up."""

    results: int = 0
    dead_lettered: int = 0


async def write_results(connection: Connection, results: Sequence[Result], now_s: float) -> Written:
    """Write results and attempts where the claim still holds. The others are as if never tried.

    `now_s` is of the same clock as the attempts' `began_s`. Without a partition for the attempts'
    day the results are written all the same.
    """
    try:
        return await _write(connection, results, now_s, keep_attempts=True)
    except psycopg.errors.CheckViolation as error:
        log.warning("attempts_not_kept", reason=str(error).splitlines()[0])
        return await _write(connection, results, now_s, keep_attempts=False)


async def _write(
    connection: Connection, results: Sequence[Result], now_s: float, *, keep_attempts: bool
) -> Written:
    tokens: dict[str, int] = {}
    places = [tokens.setdefault(each.claimed.token, len(tokens) + 1) for each in results]
    tries = [each.attempt or _NOTHING for each in results]
    decisions = [each.decision for each in results]
    values = {
        **where([each.claimed for each in results]),
        "tokens": text_array([*tokens]),
        "token_places": int8_array(places),
        "states": text_array([decision.state for decision in decisions]),
        "delays_us": int8_array([int(decision.delay_s * 1e6) for decision in decisions]),
        "ages_us": int8_array([int((now_s - each.began_s) * 1e6) for each in tries]),
        "spared": int8_array([int(decision.spared) for decision in decisions]),
        "asked_s": int8_array([decision.asked_s for decision in decisions]),
        "outcomes": text_array([each.outcome for each in results]),
        "statuses": int8_array([each.status for each in tries]),
        "durations_ms": int8_array([each.duration_ms for each in tries]),
        "urls": text_array([each.url for each in tries]),
        "requests": text_array([each.request for each in tries]),
        "responses": text_array([each.response for each in tries]),
        "keep_attempts": keep_attempts,
    }
    query = cursor_of(connection, Written)
    return await (await query.execute(SQL["write_results"], values)).fetchone() or Written()
