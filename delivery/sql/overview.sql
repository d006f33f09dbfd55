-- name: streams
-- The zone's streams by name, with the hub's `system`: the `last` sequence, and the sequence up to which the stream is
-- `matched` for callbacks, null if it never had any.
SELECT s.name, h.sequence AS last, f.sequence AS matched,
       CASE WHEN f.sequence IS NOT NULL THEN greatest(0, h.sequence - f.sequence) END AS lag
  FROM streams s
  JOIN heads h ON h.stream_id = s.id
  LEFT JOIN forwarding f ON f.stream_id = s.id
 WHERE s.zone_id = %(zone)s OR s.zone_id IS NULL
 ORDER BY s.name
 LIMIT %(streams_max)s

-- name: totals
-- The sum of the last sequences of the zone's own streams.
SELECT (SELECT coalesce(sum(h.sequence), 0)::bigint FROM streams s JOIN heads h ON h.stream_id = s.id
         WHERE s.zone_id = %(zone)s) AS events,
       (SELECT count(*) FROM (SELECT FROM registrations WHERE zone_id = %(zone)s AND deleted_at IS NULL
                               LIMIT %(count_max)s) AS counted) AS registrations

-- name: endpoints
-- Failing: enabled, and no attempt was delivered since one failed.
SELECT count(*) FILTER (WHERE c.enabled) AS enabled, count(*) FILTER (WHERE NOT c.enabled) AS disabled,
       count(*) FILTER (WHERE c.enabled AND h.failing_since IS NOT NULL) AS failing, count(*) AS total
  FROM (SELECT id, enabled FROM endpoints WHERE zone_id = %(zone)s AND deleted_at IS NULL LIMIT %(count_max)s) AS c
  LEFT JOIN endpoint_health h ON h.endpoint_id = c.id

-- name: last_counted
-- The pending deliveries of the zone when the backlogs of clients were last counted.
SELECT COALESCE(sum(events), 0)::bigint AS pending FROM backlog_counts WHERE zone_id = %(zone)s

-- name: pending
-- Parallel and ordered deliveries, each by its own partial index, up to `pending_max`; then those that are due are not counted.
SELECT count(*) AS pending,
       CASE WHEN count(*) < %(pending_max)s THEN count(*) FILTER (WHERE next_attempt_at <= now()) END AS due
  FROM (
    (SELECT d.next_attempt_at FROM endpoints e JOIN deliveries d ON d.endpoint_id = e.id
      WHERE e.zone_id = %(zone)s AND d.state = 'pending' AND NOT d.ordered LIMIT %(pending_max)s)
    UNION ALL
    (SELECT d.next_attempt_at FROM endpoints e JOIN deliveries d ON d.endpoint_id = e.id
      WHERE e.zone_id = %(zone)s AND d.state = 'pending' AND d.ordered LIMIT %(pending_max)s)
    LIMIT %(pending_max)s
  ) AS counted

-- name: dead_lettered
SELECT count(*) AS dead_lettered
  FROM (SELECT FROM endpoints e JOIN deliveries d ON d.endpoint_id = e.id
         WHERE e.zone_id = %(zone)s AND d.state = 'dead_lettered' LIMIT %(count_max)s) AS counted

-- name: processes
SELECT (SELECT count(*) FROM forwarders WHERE abs(extract(epoch FROM now() - last_seen_at)) < %(silent_s)s) AS forwarders,
       (SELECT count(*) FROM callback_workers WHERE abs(extract(epoch FROM now() - last_seen_at)) < %(silent_s)s) AS workers
