-- Deliveries that are requested again, skipped or discarded. All times are the database's.

-- name: search_settings
-- For the transaction of a search. Its statements read an index in its order, and stop after a page. As in callbacks.sql, the
-- statistics of a partition that was empty a moment ago mislead: all deliveries of an endpoint would be read and sorted.
SELECT set_config('enable_seqscan', 'off', true), set_config('enable_bitmapscan', 'off', true),
       set_config('enable_sort', 'off', true), set_config('enable_incremental_sort', 'off', true),
       set_config('enable_hashjoin', 'off', true), set_config('enable_mergejoin', 'off', true), set_config('jit', 'off', true)

-- name: partitions
-- The partitions with deliveries of an endpoint, up to one if given, the newest first: one look-up each.
SELECT p.id
  FROM (SELECT substring(pg_get_expr(c.relpartbound, c.oid) FROM '[0-9]+')::bigint AS id
          FROM pg_inherits i JOIN pg_class c ON c.oid = i.inhrelid
         WHERE i.inhparent = 'deliveries'::regclass) AS p,
       LATERAL (SELECT FROM deliveries d WHERE d.partition_id = p.id AND d.endpoint_id = %(endpoint)s LIMIT 1) AS first
 WHERE p.id <= %(newest)s::bigint OR %(newest)s::bigint IS NULL
 ORDER BY p.id DESC

-- name: lock_delivery
-- Locks a delivery. `is_posted`: a worker holds a claim of it.
SELECT state, claim IS NOT NULL AND NOT is_over(next_attempt_at, %(claim_s)s) AS is_posted
  FROM deliveries
 WHERE partition_id = %(partition_id)s AND endpoint_id = %(endpoint_id)s AND segment_id = %(segment_id)s
   AND sequence = %(sequence)s
   FOR UPDATE

-- name: resend
-- Makes a delivery pending again, due before all others of its endpoint. Its attempts so far do not count any more.
-- Its lane is due, too.
WITH written AS (
    UPDATE deliveries d
       SET state = 'pending', claim = NULL, next_attempt_at = 'epoch', retry_after_s = NULL, finished_at = NULL, resent_at = now(),
           forced = %(force)s, ordered = e.ordered, lane = CASE WHEN e.order_by <> '' THEN d.lane END,
           uncounted_attempts = CASE WHEN d.state = 'pending' THEN d.uncounted_attempts ELSE d.attempts END,
           message_number = CASE WHEN %(new_id)s THEN COALESCE(d.message_number, 1) + 1 ELSE d.message_number END
      FROM endpoints e
     WHERE e.id = d.endpoint_id
       AND d.partition_id = %(partition_id)s AND d.endpoint_id = %(endpoint_id)s AND d.segment_id = %(segment_id)s
       AND d.sequence = %(sequence)s
    RETURNING d.endpoint_id, d.stream_id, d.lane, d.ordered
)
{mark_again}

-- name: discard
-- Ends a delivery without an attempt. Its lane goes on with the next one.
WITH written AS (
    UPDATE deliveries SET state = 'discarded', claim = NULL, finished_at = now()
     WHERE partition_id = %(partition_id)s AND endpoint_id = %(endpoint_id)s AND segment_id = %(segment_id)s
       AND sequence = %(sequence)s
    RETURNING endpoint_id, stream_id, lane, ordered
)
UPDATE lanes l SET touched = true, due_at = CASE WHEN l.expires_at > now() THEN l.due_at ELSE now() END
  FROM written w
 WHERE w.ordered AND l.endpoint_id = w.endpoint_id AND l.stream_id = COALESCE(w.lane, w.stream_id)

-- name: end_pause
-- Ends the pause of an endpoint whose circuit is open: a worker probes it at once.
UPDATE circuits SET retry_at = now() WHERE endpoint_id = %(endpoint_id)s AND state = 'open'

-- name: dead_letter_groups
-- The newest deliveries of a zone that ended in a state, before a position, by endpoint and cause, up to a number of groups;
-- and the last one of them that was grouped, if there are more.
WITH examined AS MATERIALIZED (
    SELECT *, row_number() OVER (ORDER BY partition_id DESC, segment_id DESC, sequence DESC, endpoint_id DESC) AS place
      FROM (SELECT partition_id, segment_id, sequence, endpoint_id, stream_id, finished_at, last_outcome, last_status
              FROM deliveries
             WHERE zone_id = %(zone_id)s AND state = %(state)s
               AND (partition_id, segment_id, sequence, endpoint_id)
                   < (%(partition_id)s, %(segment_id)s, %(sequence)s, %(endpoint_id)s)
             ORDER BY partition_id DESC, segment_id DESC, sequence DESC, endpoint_id DESC
             LIMIT %(rows_max)s) AS newest
), shown AS (
    SELECT x.*, c.name AS client
      FROM examined x JOIN endpoints e ON e.id = x.endpoint_id JOIN clients c ON c.id = e.client_id
     WHERE (%(client)s::bigint IS NULL OR e.client_id = %(client)s)
       AND (%(endpoint)s::bigint IS NULL OR e.id = %(endpoint)s)
       AND (%(stream_ids)s::bigint[] IS NULL OR x.stream_id = ANY (%(stream_ids)s))
), numbered AS (
    SELECT *, row_number() OVER (PARTITION BY endpoint_id, last_outcome, last_status ORDER BY place) AS number FROM shown
), counted AS (
    SELECT *, count(*) FILTER (WHERE number = 1) OVER (ORDER BY place) AS number_of_groups FROM numbered
), page AS MATERIALIZED (
    SELECT * FROM counted WHERE number_of_groups <= %(groups_max)s
), groups AS (
    SELECT endpoint_id, client, last_outcome, last_status, count(*) AS deliveries, min(finished_at) AS first_at,
           max(finished_at) AS last_at,
           array_agg(ARRAY[endpoint_id, partition_id, segment_id, sequence] ORDER BY place)
               FILTER (WHERE number <= %(samples)s) AS samples
      FROM page
     GROUP BY endpoint_id, client, last_outcome, last_status
)
SELECT g.endpoint_id, g.client, g.last_outcome, g.last_status, g.deliveries, g.first_at, g.last_at, g.samples,
       (SELECT ARRAY[x.endpoint_id, x.partition_id, x.segment_id, x.sequence] FROM examined x
         WHERE x.place = CASE WHEN EXISTS (SELECT FROM counted WHERE number_of_groups > %(groups_max)s)
                              THEN (SELECT max(place) FROM page)
                              WHEN (SELECT count(*) FROM examined) = %(rows_max)s THEN %(rows_max)s END) AS next
  FROM (SELECT 1) AS one LEFT JOIN groups g ON true
 ORDER BY g.deliveries DESC, g.endpoint_id, g.last_outcome, g.last_status

-- name: events
-- Stored bytes by segment and sequence, of events that are in the database.
SELECT e.segment_id, e.sequence, e.payload
  FROM unnest(%(segments)s::bigint[], %(sequences)s::bigint[]) AS requested (segment_id, sequence)
  JOIN segments s ON s.id = requested.segment_id
  JOIN events e ON e.partition_id = s.partition_id AND e.segment_id = requested.segment_id AND e.sequence = requested.sequence
