"""The clock of a hub's database, driven by a test: hours pass in a running hub in seconds.

`now()` and its relatives are functions of the schema `test_clock`, which every session finds before
PostgreSQL's own. They are ahead of the machine's clock by what one of them says, so all sessions
see a step at once. What lives in real time, heartbeats, leases and claims under way, moves with the
step: no worker seems dead because a test let an hour pass.
"""

import asyncio
import time
from collections.abc import Sequence
from typing import Any, LiteralString, NamedTuple

import psycopg
from psycopg import sql
from psycopg.conninfo import conninfo_to_dict

from tests.chaos.until import until_true

LOCK_S = 0.1  # shorter than a deadlock is looked for
SETTLE_S = 90.0  # until the workers have done what is due
CLAIM_S = 46.0

# PostgreSQL inlines these functions into every statement, so the clock costs a row no more than its
# own. A step replaces the one that has the distance, which has all sessions plan again.
SCHEMA: LiteralString = """
    CREATE SCHEMA test_clock;
    CREATE FUNCTION test_clock.ahead() RETURNS interval STABLE LANGUAGE sql
        AS $$SELECT interval '0'$$;
    CREATE FUNCTION test_clock.now() RETURNS timestamptz STABLE LANGUAGE sql
        AS 'SELECT pg_catalog.now() + test_clock.ahead()';
    CREATE FUNCTION test_clock.transaction_timestamp() RETURNS timestamptz STABLE LANGUAGE sql
        AS 'SELECT pg_catalog.now() + test_clock.ahead()';
    CREATE FUNCTION test_clock.statement_timestamp() RETURNS timestamptz STABLE LANGUAGE sql
        AS 'SELECT pg_catalog.statement_timestamp() + test_clock.ahead()';
    CREATE FUNCTION test_clock.clock_timestamp() RETURNS timestamptz VOLATILE LANGUAGE sql
        AS 'SELECT pg_catalog.clock_timestamp() + test_clock.ahead()';
    -- Django writes CURRENT_TIMESTAMP, which is no function
    CREATE FUNCTION test_clock.changed() RETURNS trigger LANGUAGE plpgsql
        AS 'BEGIN NEW.changed_at := test_clock.now(); RETURN NEW; END';
    CREATE TRIGGER test_clock BEFORE UPDATE OF changed_at ON endpoints
        FOR EACH ROW EXECUTE FUNCTION test_clock.changed();
"""
DEFAULTS: LiteralString = """
    SELECT format('ALTER TABLE %s ALTER COLUMN %I SET DEFAULT test_clock.now()',
                  d.adrelid::regclass, a.attname)
      FROM pg_attrdef d
      JOIN pg_attribute a ON a.attrelid = d.adrelid AND a.attnum = d.adnum
      JOIN pg_class c ON c.oid = d.adrelid
     WHERE c.relnamespace = 'public'::regnamespace AND NOT c.relispartition
       AND pg_get_expr(d.adbin, d.adrelid)
           ~ '^(CURRENT_TIMESTAMP|(now|transaction_timestamp|statement_timestamp)\\(\\))$'
"""
HAS_PARTITIONS: LiteralString = """
    SELECT FROM pg_class  -- which are created last
     WHERE relnamespace = 'public'::regnamespace AND relname ~ '^listeners_[0-9]+$'
    OFFSET 1
"""
END_SESSIONS: LiteralString = """
    SELECT pg_terminate_backend(pid) FROM pg_stat_activity
     WHERE datname = current_database() AND pid <> pg_backend_pid()
       AND backend_type = 'client backend'
"""
LOCK: LiteralString = """
    LOCK TABLE lanes, circuits, deliveries, callback_workers, forwarders, forwarding
      IN EXCLUSIVE MODE
"""
STEP: tuple[LiteralString, ...] = (
    "UPDATE callback_workers SET last_seen_at = last_seen_at + %(step)s::interval",
    "UPDATE forwarders SET last_seen_at = last_seen_at + %(step)s::interval",
    """
    UPDATE forwarding SET expires_at = expires_at + %(step)s::interval
     WHERE expires_at > clock_timestamp()
    """,
    "UPDATE circuits SET retry_at = retry_at + %(step)s::interval WHERE state = 'half_open'",
    """
    UPDATE deliveries d SET next_attempt_at = d.next_attempt_at + %(step)s::interval
      FROM endpoints e
     WHERE d.endpoint_id = e.id AND d.state = 'pending' AND NOT d.ordered AND d.claim IS NOT NULL
       AND d.next_attempt_at > now()
       AND d.next_attempt_at <= now() + make_interval(secs => %(claim_s)s)
    """,
    """
    UPDATE deliveries d SET next_attempt_at = d.next_attempt_at + %(step)s::interval
      FROM lanes l
     WHERE l.expires_at > now() AND d.endpoint_id = l.endpoint_id
       AND COALESCE(d.lane, d.stream_id) = l.stream_id AND d.state = 'pending' AND d.ordered
       AND d.claim IS NOT NULL
    """,
    """
    UPDATE lanes SET expires_at = expires_at + %(step)s::interval,
                     due_at = due_at + %(step)s::interval
     WHERE expires_at > now()
    """,
)
AHEAD: LiteralString = """
    CREATE OR REPLACE FUNCTION test_clock.ahead() RETURNS interval STABLE LANGUAGE sql
        AS $$SELECT interval {}$$
"""
# What is due of some endpoints, or under way, and when the next thing is.
DUE: LiteralString = """
    WITH one AS (
        SELECT e.id, COALESCE(c.state, 'closed') AS state, c.retry_at,
               least((SELECT d.next_attempt_at FROM deliveries d
                       WHERE d.endpoint_id = e.id AND d.state = 'pending' AND NOT d.ordered
                       ORDER BY d.next_attempt_at LIMIT 1),
                     (SELECT l.due_at FROM lanes l WHERE l.endpoint_id = e.id
                       ORDER BY l.due_at LIMIT 1)) AS due_at,
               EXISTS (SELECT FROM deliveries d
                        WHERE d.endpoint_id = e.id AND d.state = 'pending' AND NOT d.ordered
                          AND d.claim IS NOT NULL AND d.next_attempt_at > now()
                          AND d.next_attempt_at <= now() + make_interval(secs => %(claim_s)s))
               OR EXISTS (SELECT FROM lanes l WHERE l.endpoint_id = e.id AND l.expires_at > now())
               AS claimed
          FROM endpoints e LEFT JOIN circuits c ON c.endpoint_id = e.id AND c.failures > 0
         WHERE e.id = ANY (%(endpoints)s) AND e.enabled
    ), next AS (
        SELECT state = 'half_open' OR claimed AS busy,
               -- a circuit is probed when its pause is over, also if nothing is due; no receiver
               -- of these runs answers with a Retry-After
               CASE WHEN state = 'open' AND due_at IS NOT NULL THEN retry_at ELSE due_at END AS at
          FROM one
    )
    SELECT COALESCE(bool_or(busy OR at <= now()), false) AS is_due,
           extract(epoch FROM min(at) - now())::float8 AS next_s
      FROM next
"""


class Due(NamedTuple):
    """Whether something of some endpoints is due or under way, and the seconds until the next."""

    is_due: bool
    next_s: float | None


class Step(NamedTuple):
    """A step of the clock: from `at` on (monotonic) it is `ahead_s` ahead of the machine's."""

    at: float
    ahead_s: float


class DatabaseClock:
    """The clock of one database. Statements run in threads, one at a time."""

    def __init__(self, url: str) -> None:
        self.steps = [Step(time.monotonic(), 0.0)]
        self._connection = psycopg.connect(url, autocommit=True, application_name="test clock")
        self._name = str(conninfo_to_dict(url)["dbname"])

    @property
    def ahead_s(self) -> float:
        return self.steps[-1].ahead_s

    def install(self) -> None:
        """Put the clock in place, once the hub, which is starting, has created its partitions: what
        is created later is in the clock's schema. Sessions that exist are ended: those that follow
        have it.
        """
        while not self._connection.execute(HAS_PARTITIONS).fetchall():
            time.sleep(LOCK_S)
        path = sql.SQL("ALTER DATABASE {} SET search_path = test_clock, public, pg_catalog")
        while not self._installed():
            time.sleep(LOCK_S)
        self._connection.execute(path.format(sql.Identifier(self._name)))
        self._connection.execute("SET search_path = test_clock, public, pg_catalog")
        self._connection.execute(END_SESSIONS)

    def _installed(self) -> bool:
        """Change the schema; return False if the hub, which is running, locked tables in another
        order.
        """
        try:
            with self._connection.transaction():
                self._connection.execute(SCHEMA)
                for (statement,) in self._connection.execute(DEFAULTS).fetchall():
                    self._connection.execute(statement)
        except psycopg.errors.DeadlockDetected:
            return False
        return True

    def advance(self, seconds: float) -> None:
        """Let so much time pass at once, and wake the workers."""
        while not self._stepped(seconds):
            time.sleep(LOCK_S / 10)
        self.steps.append(Step(time.monotonic(), self.ahead_s + seconds))
        self._connection.execute("SELECT pg_notify('eventhub_deliveries', '')")

    def _stepped(self, seconds: float) -> bool:
        values = {"step": f"{seconds} seconds", "claim_s": CLAIM_S}
        ahead = sql.SQL(AHEAD).format(sql.Literal(f"{self.ahead_s + seconds} seconds"))
        try:
            with self._connection.transaction():
                self._connection.execute(f"SET LOCAL lock_timeout = '{int(LOCK_S * 1000)}ms'")
                self._connection.execute(LOCK)
                for statement in STEP:
                    self._connection.execute(statement, values)
                self._connection.execute(ahead)
        except psycopg.errors.LockNotAvailable:
            return False
        return True

    def due(self, endpoints: Sequence[int]) -> Due:
        """Return what is due of these endpoints, without those that are disabled."""
        values = {"endpoints": list(endpoints), "claim_s": CLAIM_S}
        row: Any = self._connection.execute(DUE, values).fetchone()
        return Due(*row)

    def seconds_at(self, at: float) -> float:
        """Return the driven time, in seconds since the beginning, of a monotonic time."""
        ahead_s = 0.0
        for step in self.steps:
            if step.at > at:
                break
            ahead_s = step.ahead_s
        return at - self.steps[0].at + ahead_s

    def close(self) -> None:
        self._connection.close()


class Hours(NamedTuple):
    """How time passes: for these endpoints, from one due time to the next but at least `step_s` at
    once.
    """

    clock: DatabaseClock
    endpoints: Sequence[int]
    step_s: float = 0.0

    async def settle(self) -> Due:
        """Wait until the workers have done all that is due. Raise NeverCame."""
        found = Due(True, None)

        async def settled() -> bool:
            nonlocal found
            found = await asyncio.to_thread(self.clock.due, self.endpoints)
            return not found.is_due

        await until_true(settled, "the workers to do what is due", SETTLE_S)
        return found

    async def run(self, seconds: float) -> None:
        """Let so much time pass. Raise NeverCame."""
        end_s = self.clock.ahead_s + seconds
        while True:
            found = await self.settle()
            left_s = end_s - self.clock.ahead_s
            if left_s <= 0.0:
                return
            due_s = left_s if found.next_s is None else found.next_s + 0.001
            step_s = min(left_s, max(due_s, self.step_s))
            await asyncio.to_thread(self.clock.advance, step_s)
