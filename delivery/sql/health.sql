-- Which processes are alive and what is waiting. Every web process runs this every few seconds, so each statement reads an
-- index or a small table.

-- name: settings
-- For the transaction of a check. As in callbacks.sql, the statistics of a partition that was empty a moment ago mislead. The
-- statements are planned once for a connection: planning takes several times what they take.
SELECT set_config('statement_timeout', %(statement_ms)s, true), set_config('enable_seqscan', 'off', true),
       set_config('enable_bitmapscan', 'off', true), set_config('enable_hashjoin', 'off', true),
       set_config('enable_mergejoin', 'off', true), set_config('plan_cache_mode', 'force_generic_plan', true),
       set_config('jit', 'off', true)

-- name: heartbeat
-- Writes the heartbeat of a periodic task that a worker has started.
INSERT INTO heartbeats (part) VALUES (%(part)s) ON CONFLICT (part) DO UPDATE SET last_seen_at = clock_timestamp()

-- name: timetable
-- The heartbeat of the timetable, and what its tasks would find: `log` changes once something was appended or a segment
-- sealed; `expired` and `deletions` as in endpoint_expiry.sql, deletion.sql and zone_deletion.sql; `replays` are running, or old
-- enough to be forgotten.
INSERT INTO heartbeats (part) VALUES ('beat') ON CONFLICT (part) DO UPDATE SET last_seen_at = clock_timestamp()
RETURNING (SELECT sum(sequence + segment_id)::bigint FROM heads) AS log,
          EXISTS (SELECT FROM replay_runs
                   WHERE state = 'running' OR ended_at < now() - make_interval(days => %(retained_days)s)) AS replays,
          EXISTS (SELECT FROM endpoints WHERE expires_at <= now() AND deleted_at IS NULL) AS expired,
          EXISTS (SELECT FROM streams WHERE deletes_at <= now() AND erased_at IS NULL)
          OR EXISTS (SELECT FROM event_types WHERE deletes_at <= now() AND deleted_at IS NULL)
          OR EXISTS (SELECT FROM channels WHERE deletes_at <= now() AND deleted_at IS NULL)
          OR EXISTS (SELECT FROM zones WHERE deletes_at <= now() AND erased_at IS NULL) AS deletions

-- name: facts
-- A heartbeat in the future is from before the clock stepped back.
SELECT (extract(epoch FROM now()) * 1000000)::bigint AS now_us,
       (SELECT (extract(epoch FROM booted_at) * 1000000)::bigint FROM log_state) AS booted_at_us,
       f.alive AS forwarders, (extract(epoch FROM f.last) * 1000000)::bigint AS forwarder_us,
       w.alive AS workers, (extract(epoch FROM w.last) * 1000000)::bigint AS worker_us,
       h.beat_us, h.archiver_us, h.indexer_us,
       n.streams AS stranded, n.groups AS stranded_groups, p.groups AS stopped_groups, (extract(epoch FROM n.since) * 1000000)::bigint AS stranded_us,
       -- the oldest sealed segment that is to be archived
       (SELECT (extract(epoch FROM s.sealed_at) * 1000000)::bigint
          FROM segments s JOIN streams t ON t.id = s.stream_id
         WHERE t.archive AND s.archive_path IS NULL AND s.tier = 'live' AND s.last IS NOT NULL
         ORDER BY s.sealed_at LIMIT 1) AS unarchived_us,
       a.segments AS unarchivable, a.reason AS unarchivable_code,
       b.failed AS unbuilt, b.reason AS unbuilt_code, (extract(epoch FROM b.since) * 1000000)::bigint AS unbuilt_us,
       (extract(epoch FROM b.requested_at) * 1000000)::bigint AS requested_us,
       true AS overdue, NULL::bigint AS overdue_us  -- set by the next statement
  FROM (SELECT count(*) FILTER (WHERE abs(extract(epoch FROM now() - last_seen_at)) < %(silent_s)s) AS alive,
               max(last_seen_at) AS last
          FROM forwarders) AS f,
       (SELECT count(*) FILTER (WHERE abs(extract(epoch FROM now() - last_seen_at)) < %(silent_s)s) AS alive,
               greatest(max(last_seen_at), (SELECT last_seen_at FROM heartbeats WHERE part = 'worker')) AS last
          FROM callback_workers) AS w,
       (SELECT (extract(epoch FROM max(last_seen_at) FILTER (WHERE part = 'beat')) * 1000000)::bigint AS beat_us,
               (extract(epoch FROM max(last_seen_at) FILTER (WHERE part = 'archiver')) * 1000000)::bigint AS archiver_us,
               (extract(epoch FROM max(last_seen_at) FILTER (WHERE part = 'indexer')) * 1000000)::bigint AS indexer_us
          FROM heartbeats) AS h,
       -- pattern groups that no forwarder can run
       (SELECT count(*) AS groups FROM pattern_leases WHERE fault IS NOT NULL) AS p,
       -- streams with callbacks and pattern groups whose lease expired and was not taken again
       (SELECT count(*) FILTER (WHERE NOT is_group) AS streams, count(*) FILTER (WHERE is_group) AS groups, min(expires_at) AS since
          FROM (SELECT expires_at, false AS is_group FROM forwarding
                UNION ALL SELECT expires_at, true FROM pattern_leases) AS leases
         WHERE expires_at < now() - make_interval(secs => %(silent_s)s) AND expires_at <> 'epoch') AS n,
       -- segments whose last attempt at archiving failed
       (SELECT count(*) AS segments, max(a.reason) AS reason
          FROM archive_attempts a JOIN segments s ON s.id = a.segment_id
         WHERE a.reason <> 'unfinished' AND s.archive_path IS NULL AND s.tier = 'live') AS a,
       -- match indexes whose last build failed, and the oldest request that no builder works on
       (SELECT count(*) FILTER (WHERE i.attempts > 0 AND i.reason <> '') AS failed,
               max(i.reason) FILTER (WHERE i.attempts > 0) AS reason,
               min(i.ended_at) FILTER (WHERE i.attempts > 0 AND i.reason <> '') AS since,
               CASE WHEN count(*) FILTER (WHERE i.ended_at IS NULL
                                            AND i.heartbeat_at > now() - make_interval(secs => %(silent_s)s)) = 0
                    THEN min(i.requested_at) END AS requested_at
          FROM index_builds i JOIN streams t ON t.id = i.stream_id) AS b

-- name: overdue
-- The oldest delivery overdue beyond a bound although its endpoint may be called, did not fail the last time, and has nothing
-- claimed: then the endpoint is not the cause. One index look-up for each endpoint.
WITH RECURSIVE parallel AS (
    (SELECT endpoint_id, next_attempt_at, 1 AS number FROM deliveries
      WHERE state = 'pending' AND NOT ordered
      ORDER BY endpoint_id, next_attempt_at LIMIT 1)
    UNION ALL
    SELECT next.endpoint_id, next.next_attempt_at, p.number + 1
      FROM parallel p, LATERAL (
        SELECT endpoint_id, next_attempt_at FROM deliveries
         WHERE state = 'pending' AND NOT ordered AND endpoint_id > p.endpoint_id
         ORDER BY endpoint_id, next_attempt_at LIMIT 1) AS next
     WHERE p.number < %(endpoints_max)s
), lane AS (
    (SELECT endpoint_id, due_at, 1 AS number FROM lanes
      WHERE due_at IS NOT NULL
      ORDER BY endpoint_id, due_at LIMIT 1)
    UNION ALL
    SELECT next.endpoint_id, next.due_at, l.number + 1
      FROM lane l, LATERAL (
        SELECT endpoint_id, due_at FROM lanes
         WHERE due_at IS NOT NULL AND endpoint_id > l.endpoint_id
         ORDER BY endpoint_id, due_at LIMIT 1) AS next
     WHERE l.number < %(endpoints_max)s
), late AS (
    SELECT p.endpoint_id, p.next_attempt_at FROM parallel p
     WHERE p.next_attempt_at < now() - make_interval(secs => %(due_s)s)
       AND NOT EXISTS (SELECT FROM deliveries d
                        WHERE d.endpoint_id = p.endpoint_id AND d.state = 'pending' AND NOT d.ordered
                          AND d.claim IS NOT NULL
                          AND d.next_attempt_at BETWEEN now() AND now() + make_interval(secs => %(claim_s)s))
    UNION ALL
    SELECT l.endpoint_id, l.due_at FROM lane l
     WHERE l.due_at < now() - make_interval(secs => %(due_s)s)
       AND NOT EXISTS (SELECT FROM lanes t WHERE t.endpoint_id = l.endpoint_id AND t.expires_at > now())
)
SELECT (extract(epoch FROM min(late.next_attempt_at)) * 1000000)::bigint AS overdue_us
  FROM late JOIN endpoints e ON e.id = late.endpoint_id
  LEFT JOIN endpoint_health h ON h.endpoint_id = e.id
 WHERE e.enabled AND e.deleted_at IS NULL AND h.failing_since IS NULL
