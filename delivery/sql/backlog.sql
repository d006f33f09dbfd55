-- The backlog of pending deliveries: counts it, drops the oldest beyond its bounds, and announces what endpoints did not
-- receive. All times are the database's.

-- name: settings
-- Every statement must use the partial indexes of pending deliveries, whose conditions require values known at planning.
SELECT set_config('plan_cache_mode', 'force_custom_plan', false), set_config('enable_seqscan', 'off', false),
       set_config('enable_bitmapscan', 'off', false), set_config('enable_hashjoin', 'off', false),
       set_config('enable_mergejoin', 'off', false), set_config('enable_hashagg', 'off', false),
       set_config('max_parallel_workers_per_gather', '0', false), set_config('jit', 'off', false)

-- name: some
-- Whether any delivery is pending.
SELECT EXISTS (SELECT FROM deliveries WHERE state = 'pending' AND NOT ordered)
    OR EXISTS (SELECT FROM deliveries WHERE state = 'pending' AND ordered) AS some

-- name: waiting
-- The backlog of a page of endpoints after the given one: events, their bytes, those pending for too long, and the
-- registrations that they name. Bytes are those of the row and of the event: the delivery's own copy, or the average of the
-- segment, which the delivery would receive once its partition is dropped.
SELECT d.endpoint_id, count(*) FILTER (WHERE d.gap_first IS NULL) AS events,
       sum(%(row_bytes)s + 8 * cardinality(d.registrations)
           + CASE WHEN d.gap_first IS NOT NULL THEN 0
                  ELSE COALESCE(octet_length(d.payload),
                                COALESCE(s.bytes, h.bytes) / greatest(COALESCE(s.last, h.sequence) - s.first + 1, 1),
                                0) END)::bigint AS bytes,
       count(*) FILTER (WHERE d.gap_first IS NULL AND COALESCE(d.resent_at, d.created_at) < now() - make_interval(secs => %(age_s)s)) AS overdue,
       sum(cardinality(d.registrations))::bigint AS registrations
  FROM deliveries d
  JOIN segments s ON s.id = d.segment_id
  LEFT JOIN heads h ON h.stream_id = s.stream_id AND h.segment_id = s.id
 WHERE d.state = 'pending' AND d.ordered = %(ordered)s AND d.endpoint_id > %(after)s
 GROUP BY d.endpoint_id
 ORDER BY d.endpoint_id
 LIMIT %(endpoints_max)s

-- name: quotas
-- The quotas of backlogs; without a client those of a zone as a whole.
SELECT zone_id, client_id, max(value) FILTER (WHERE kind = 'backlog_events') AS events,
       max(value) FILTER (WHERE kind = 'backlog_bytes') AS bytes
  FROM quotas
 WHERE kind IN ('backlog_events', 'backlog_bytes')
 GROUP BY zone_id, client_id

-- name: store_counts
-- The backlogs of clients; those without one have no row.
WITH now AS (
    SELECT * FROM unnest(%(zones)s::bigint[], %(clients)s::bigint[], %(events)s::bigint[], %(bytes)s::bigint[])
        AS v (zone_id, client_id, events, bytes)
), emptied AS (
    DELETE FROM backlog_counts WHERE client_id <> ALL (%(clients)s::bigint[])
)
INSERT INTO backlog_counts AS c (zone_id, client_id, events, bytes)
SELECT zone_id, client_id, events, bytes FROM now
    ON CONFLICT (client_id) DO UPDATE SET events = excluded.events, bytes = excluded.bytes
 WHERE (c.events, c.bytes) IS DISTINCT FROM (excluded.events, excluded.bytes)

-- name: clients
-- The client of each endpoint with its zone, and the endpoint's status.
SELECT e.id, e.client_id, e.zone_id,
       CASE WHEN NOT e.enabled THEN 'disabled' WHEN c.endpoint_id IS NOT NULL THEN 'failing' ELSE 'healthy' END AS status
  FROM endpoints e LEFT JOIN circuits c ON c.endpoint_id = e.id AND c.failures > 0
 WHERE e.id = ANY (%(endpoints)s::bigint[]) AND e.deleted_at IS NULL

-- name: dead_letters
-- The dead letters of the next endpoints after the given one that have some, up to a number of endpoints or of dead letters; of
-- each endpoint up to that number, too. A deleted endpoint has no status.
WITH RECURSIVE hop AS (
    SELECT 0::bigint AS n, %(after)s::bigint AS endpoint_id, 0::bigint AS deliveries, 0::bigint AS total
    UNION ALL
    SELECT hop.n + 1, next.endpoint_id, counted.deliveries, hop.total + counted.deliveries
      FROM hop, LATERAL (
        SELECT endpoint_id FROM deliveries
         WHERE state = 'dead_lettered' AND endpoint_id > hop.endpoint_id
         ORDER BY endpoint_id LIMIT 1) AS next, LATERAL (
        SELECT count(*) AS deliveries
          FROM (SELECT FROM deliveries WHERE state = 'dead_lettered' AND endpoint_id = next.endpoint_id
                 LIMIT %(deliveries_max)s) AS first) AS counted
     WHERE hop.n < %(endpoints_max)s AND hop.total < %(deliveries_max)s
)
SELECT hop.endpoint_id, hop.deliveries,
       CASE WHEN NOT e.enabled THEN 'disabled' WHEN c.endpoint_id IS NOT NULL THEN 'failing'
            WHEN e.id IS NOT NULL THEN 'healthy' END AS status
  FROM hop LEFT JOIN endpoints e ON e.id = hop.endpoint_id AND e.deleted_at IS NULL
           LEFT JOIN circuits c ON c.endpoint_id = e.id AND c.failures > 0
 WHERE hop.n > 0
 ORDER BY hop.endpoint_id

-- name: cutoff
-- The last of an endpoint's oldest deliveries to be dropped: at least this many, this many bytes, and all overdue ones. A
-- delivery that was requested again is as old as that request.
SELECT created_at, segment_id AS segment, sequence
  FROM (SELECT created_at, segment_id, sequence, row_number() OVER oldest AS number,
               sum(bytes) OVER oldest - bytes AS bytes_before
          FROM (SELECT COALESCE(d.resent_at, d.created_at) AS created_at, d.segment_id, d.sequence,
                       %(row_bytes)s + 8 * cardinality(d.registrations)
                       + COALESCE(octet_length(d.payload),
                                  COALESCE(s.bytes, h.bytes) / greatest(COALESCE(s.last, h.sequence) - s.first + 1, 1),
                                  0) AS bytes
                  FROM (SELECT * FROM deliveries
                         WHERE endpoint_id = %(endpoint)s AND state = 'pending' AND ordered
                        UNION ALL
                        SELECT * FROM deliveries
                         WHERE endpoint_id = %(endpoint)s AND state = 'pending' AND NOT ordered) AS d
                  JOIN segments s ON s.id = d.segment_id
                  LEFT JOIN heads h ON h.stream_id = s.stream_id AND h.segment_id = s.id
                 WHERE d.gap_first IS NULL) AS sized
        WINDOW oldest AS (ORDER BY created_at, segment_id, sequence ROWS UNBOUNDED PRECEDING)) AS counted
 WHERE number <= %(events)s OR bytes_before < %(bytes)s
    OR created_at < now() - make_interval(secs => %(age_s)s)
 ORDER BY created_at DESC, segment_id DESC, sequence DESC
 LIMIT 1

-- name: drop_oldest
-- Drops some of an endpoint's oldest deliveries, up to the cutoff, except those being posted. The last dropped delivery of each
-- lane becomes the gap notice for them. A lane has one such notice: it absorbs an older one, unless a notice with another
-- reason lies between them, so that a lane's notices stay in order. The statement counts the losses, to be announced.
WITH others AS MATERIALIZED (
    SELECT stream_id, sequence FROM deliveries
     WHERE endpoint_id = %(endpoint)s AND state = 'pending' AND gap_first IS NOT NULL AND gap_reason <> 'backlog'
), picked AS MATERIALIZED (
    SELECT partition_id, endpoint_id, segment_id, sequence, stream_id, registrations,
           (SELECT count(*) FROM others o
             WHERE o.stream_id = d.stream_id AND o.sequence < d.sequence) AS block
      FROM deliveries d
     WHERE endpoint_id = %(endpoint)s AND state = 'pending' AND ordered = %(ordered)s AND gap_first IS NULL
       AND (COALESCE(resent_at, created_at), segment_id, sequence) <= (%(created_at)s::timestamptz, %(segment)s, %(sequence)s)
       AND (claim IS NULL OR next_attempt_at <= now())
     LIMIT %(rows_max)s
       FOR UPDATE SKIP LOCKED
), last AS MATERIALIZED (
    SELECT DISTINCT ON (stream_id, block) * FROM picked ORDER BY stream_id, block, sequence DESC
), notices AS MATERIALIZED (
    SELECT d.partition_id, d.endpoint_id, d.segment_id, d.sequence, d.stream_id, d.gap_first, d.registrations, l.block
      FROM last l
      JOIN deliveries d ON d.endpoint_id = l.endpoint_id AND d.stream_id = l.stream_id
     WHERE d.state = 'pending' AND d.ordered = %(ordered)s AND d.gap_first IS NOT NULL AND d.gap_reason = 'backlog'
       AND d.sequence < l.sequence AND (d.claim IS NULL OR d.next_attempt_at <= now())
       AND l.block = (SELECT count(*) FROM others o
                       WHERE o.stream_id = d.stream_id AND o.sequence < d.sequence)
       FOR UPDATE OF d SKIP LOCKED
), ranges AS (
    SELECT stream_id, block, sequence AS first, registrations FROM picked
    UNION ALL SELECT stream_id, block, gap_first, registrations FROM notices
), gaps AS MATERIALIZED (
    SELECT g.stream_id, g.block, min(g.first) AS first, array_agg(DISTINCT r.id ORDER BY r.id) AS registrations
      FROM ranges g, unnest(g.registrations) AS r (id)
     GROUP BY g.stream_id, g.block
), dropped AS (
    UPDATE deliveries d
       SET state = 'dropped', payload = NULL, gap_first = NULL, gap_reason = NULL, claim = NULL, finished_at = now()
      FROM (SELECT partition_id, endpoint_id, segment_id, sequence, stream_id FROM picked
            EXCEPT SELECT partition_id, endpoint_id, segment_id, sequence, stream_id FROM last
            UNION ALL SELECT partition_id, endpoint_id, segment_id, sequence, stream_id FROM notices) AS p
     WHERE d.partition_id = p.partition_id AND d.endpoint_id = p.endpoint_id AND d.segment_id = p.segment_id
       AND d.sequence = p.sequence
), noticed AS (
    UPDATE deliveries d
       SET gap_first = g.first, gap_reason = 'backlog', registrations = g.registrations, version_ids = NULL, payload = NULL,
           attempts = 0, claim = NULL, next_attempt_at = now()
      FROM last l JOIN gaps g USING (stream_id, block)
     WHERE d.partition_id = l.partition_id AND d.endpoint_id = l.endpoint_id AND d.segment_id = l.segment_id
       AND d.sequence = l.sequence
), lost AS (
    INSERT INTO endpoint_losses AS l (endpoint_id, kind, deliveries, first, last, since, reason)
    SELECT %(endpoint)s, 'dropped', count(*), min(ARRAY[segment_id, sequence]), max(ARRAY[segment_id, sequence]), now(),
           %(why)s
      FROM picked
    HAVING count(*) > 0
        ON CONFLICT (endpoint_id, kind) DO UPDATE
       SET deliveries = l.deliveries + excluded.deliveries, first = least(l.first, excluded.first),
           last = greatest(l.last, excluded.last), since = COALESCE(l.since, excluded.since),
           reason = excluded.reason
)
SELECT count(*) FROM picked

-- name: noted
SELECT EXISTS (SELECT FROM circuits) AS circuits, EXISTS (SELECT FROM endpoint_losses) AS losses,
       EXISTS (SELECT FROM session_skips) AS skips

-- name: losses_due
-- Losses to announce now: an endpoint's first at once, later ones together after an interval.
WITH due AS (
    SELECT * FROM endpoint_losses
     WHERE deliveries > 0 AND announced_at <= now() - make_interval(secs => %(interval_s)s)
     ORDER BY announced_at, endpoint_id
     LIMIT %(losses_max)s
       FOR UPDATE SKIP LOCKED
), taken AS (
    UPDATE endpoint_losses l SET deliveries = 0, first = NULL, last = NULL, since = NULL, announced_at = now()
      FROM due d WHERE l.endpoint_id = d.endpoint_id AND l.kind = d.kind
)
SELECT d.kind, z.name AS zone, c.name AS client, d.endpoint_id AS endpoint, d.deliveries, d.reason AS why,
       (extract(epoch FROM d.since) * 1000000)::bigint AS since_us,
       fs.name AS first_stream, f.uuid::text AS first_segment, d.first[2] AS first_sequence,
       ls.name AS last_stream, l.uuid::text AS last_segment, d.last[2] AS last_sequence
  FROM due d
  JOIN endpoints e ON e.id = d.endpoint_id
  JOIN zones z ON z.id = e.zone_id
  JOIN clients c ON c.id = e.client_id
  JOIN segments f ON f.id = d.first[1] JOIN streams fs ON fs.id = f.stream_id
  JOIN segments l ON l.id = d.last[1] JOIN streams ls ON ls.id = l.stream_id
 ORDER BY z.name, d.endpoint_id, d.kind

-- name: forget_losses
DELETE FROM endpoint_losses
 WHERE deliveries = 0 AND announced_at <= now() - make_interval(secs => %(interval_s)s)
