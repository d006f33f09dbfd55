-- Timers that are due, and the ends of timers. Rows of timers are locked first, then those of timer_counts by client, then heads.

-- name: due
-- Timers that are due, the earliest first. `is_gone`: the stream or the client was deleted. `is_refused`: the stream is to be
-- deleted, or the zone may not store more.
SELECT t.id, t.client_id, c.name AS client, t.registration_id, t.stream_id, t.handle, t.payload, t.token, t.at, t.every_s, t.start, t."end",
       t.cron, t.timezone, t.next_at, t.due_at, t.fired,
       s.id IS NULL OR c.id IS NULL AS is_gone,
       s.deletes_at IS NOT NULL
       OR EXISTS (SELECT FROM quotas q WHERE q.zone_id = t.zone_id AND q.client_id IS NULL AND q.kind = 'stored_bytes'
                                         AND q.reached_at IS NOT NULL) AS is_refused
  FROM (SELECT * FROM timers WHERE due_at <= %(now)s ORDER BY due_at, id LIMIT %(rows_max)s) AS t
  LEFT JOIN streams s ON s.id = t.stream_id AND s.deleted_at IS NULL
  LEFT JOIN clients c ON c.id = t.client_id AND c.deleted_at IS NULL
 ORDER BY t.due_at, t.id

-- name: claim
-- Moves timers to their next times, and deletes those without one, unless somebody changed or deleted them since, or is doing
-- so. Returns those that were moved or deleted; only they fire.
WITH given AS (
    SELECT * FROM unnest(%(ids)s::bigint[], %(before)s::timestamptz[], %(next)s::timestamptz[], %(due)s::timestamptz[],
                         %(fires)s::bigint[]) AS v (id, before, next_at, due_at, fires)
), held AS MATERIALIZED (
    SELECT t.id, t.client_id, v.next_at, v.due_at, v.fires
      FROM given v JOIN timers t ON t.id = v.id AND t.due_at = v.before
     ORDER BY t.id
       FOR UPDATE OF t SKIP LOCKED
), moved AS (
    UPDATE timers t
       SET next_at = h.next_at, due_at = h.due_at, fired = t.fired + h.fires,
           fired_at = CASE WHEN h.fires > 0 THEN %(now)s ELSE t.fired_at END
      FROM held h WHERE t.id = h.id AND h.next_at IS NOT NULL
    RETURNING t.id
), deleted AS (
    DELETE FROM timers t USING held h WHERE t.id = h.id AND h.next_at IS NULL
    RETURNING t.id, t.client_id
)
SELECT id, NULL::bigint AS ended_of FROM moved UNION ALL SELECT id, client_id FROM deleted

-- name: count_ended
-- Subtracts ended timers from the numbers of their clients.
WITH ended AS (
    SELECT client_id, count(*) AS timers FROM unnest(%(clients)s::bigint[]) AS v (client_id) GROUP BY client_id
), held AS MATERIALIZED (
    SELECT n.client_id, e.timers FROM ended e JOIN timer_counts n ON n.client_id = e.client_id ORDER BY n.client_id FOR UPDATE OF n
)
UPDATE timer_counts n SET timers = n.timers - h.timers FROM held h WHERE n.client_id = h.client_id

-- name: lock_quotas
-- Locks the quotas of timers that apply to a client, so that the clients of a zone cannot exceed that of the zone together.
SELECT client_id IS NULL AS of_zone, value
  FROM quotas
 WHERE kind = 'timers' AND (client_id = %(client)s OR (client_id IS NULL AND zone_id = %(zone)s))
 ORDER BY id
   FOR UPDATE

-- name: delay
-- Stores delayed events. Their ids ascend in the order given. One whose token waits already is not stored again: its timer is
-- returned. Tokens are unique in the arguments; their order lets two transactions with the same tokens wait, not deadlock.
WITH given AS MATERIALIZED (
    SELECT nextval('timers_id_seq') AS id, v.*
      FROM (SELECT * FROM unnest(%(streams)s::bigint[], %(payloads)s::bytea[], %(dues)s::bigint[], %(tokens)s::bytea[])
                     WITH ORDINALITY AS v (stream_id, payload, due_us, token, n) ORDER BY n) AS v
)
INSERT INTO timers (id, zone_id, client_id, stream_id, payload, token, at, next_at, due_at, created_at)
SELECT g.id, %(zone)s, %(client)s, g.stream_id, g.payload, g.token, due.at, due.at, due.at, %(now)s
  FROM given g, LATERAL (SELECT timestamptz '1970-01-01 UTC' + g.due_us * interval '1 microsecond' AS at) AS due
 ORDER BY g.token NULLS FIRST, g.id
    ON CONFLICT (stream_id, token) WHERE token IS NOT NULL DO UPDATE SET token = excluded.token
RETURNING id, token, (extract(epoch FROM next_at) * 1000000)::bigint AS due_us, xmax = 0 AS is_new

-- name: stored_before
-- The positions of delayed events that the log has stored.
SELECT digest, segment::text, sequence FROM idempotency_digests WHERE stream_id = %s AND digest = ANY (%s::bytea[])

-- name: delete
DELETE FROM timers WHERE id = ANY (%s::bigint[])

-- name: add
-- Adds new timers to the number of their client; returns it.
INSERT INTO timer_counts (client_id, zone_id, timers) VALUES (%(client)s, %(zone)s, %(more)s)
    ON CONFLICT (client_id) DO UPDATE SET timers = timer_counts.timers + excluded.timers
RETURNING timers

-- name: used_in_zone
SELECT COALESCE(sum(timers), 0)::bigint FROM timer_counts WHERE zone_id = %s

-- name: next
-- When the next timer is due.
SELECT min(due_at) FROM timers WHERE due_at IS NOT NULL

-- name: overdue
-- How many timers are due, up to a bound.
SELECT count(*) FROM (SELECT FROM timers WHERE due_at <= %(now)s LIMIT %(rows_max)s) AS due

-- name: total
SELECT COALESCE(sum(timers), 0)::bigint FROM timer_counts

-- name: notify
-- Never inside a transaction, where it would serialize all commits of the server.
SELECT pg_notify('eventhub_timers', '')

-- name: end_of_registrations
DELETE FROM timers WHERE registration_id = ANY (%s::bigint[]) AND registration_id IS NOT NULL RETURNING client_id

-- name: end_of_client
DELETE FROM timers WHERE client_id = %s RETURNING client_id

-- name: end_of_stream
DELETE FROM timers WHERE id IN (SELECT id FROM timers WHERE stream_id = %(id)s LIMIT %(rows_max)s) RETURNING client_id
