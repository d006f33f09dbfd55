-- The use of what quotas bound, and which quotas are reached.

-- name: used
-- How much of each kind a client, or with client 0 a zone as a whole, uses now. Stored bytes are those of the events in the database,
-- without indexes. Sockets are those of web processes with a heartbeat. Backlogs are as last counted.
SELECT t.zone_id, t.client_id, t.kind, (
       CASE t.kind
       WHEN 'stored_bytes' THEN
            (SELECT COALESCE(sum(g.bytes), 0) FROM streams s JOIN segments g ON g.stream_id = s.id
              WHERE s.zone_id = t.zone_id AND g.tier = 'live' AND g.last IS NOT NULL)
          + (SELECT COALESCE(sum(h.bytes), 0) FROM streams s JOIN heads h ON h.stream_id = s.id
              WHERE s.zone_id = t.zone_id)
       WHEN 'sockets' THEN
            (SELECT COALESCE(sum(k.sockets), 0) FROM socket_counts k JOIN web_processes p ON p.id = k.process_id
              WHERE k.zone_id = t.zone_id AND t.client_id IN (0, k.client_id)
                AND abs(extract(epoch FROM clock_timestamp() - p.last_seen_at)) < %(lost_s)s)
       WHEN 'registrations' THEN
            (SELECT COALESCE(sum(o.registrations), 0) FROM clients c JOIN registration_owners o ON o.client_id = c.id
              WHERE c.zone_id = t.zone_id AND t.client_id IN (0, c.id))
       WHEN 'endpoints' THEN
            (SELECT count(*) FROM endpoints e
              WHERE e.zone_id = t.zone_id AND t.client_id IN (0, e.client_id) AND e.deleted_at IS NULL)
       WHEN 'timers' THEN
            (SELECT COALESCE(sum(n.timers), 0) FROM timer_counts n
              WHERE n.zone_id = t.zone_id AND t.client_id IN (0, n.client_id))
       WHEN 'patterns' THEN
            (SELECT COALESCE(sum(g.patterns), 0) FROM pattern_groups g
              WHERE g.zone_id = t.zone_id AND t.client_id IN (0, g.client_id) AND g.deleted_at IS NULL)
       WHEN 'backlog_events' THEN
            (SELECT COALESCE(sum(b.events), 0) FROM backlog_counts b
              WHERE b.zone_id = t.zone_id AND t.client_id IN (0, b.client_id))
       WHEN 'backlog_bytes' THEN
            (SELECT COALESCE(sum(b.bytes), 0) FROM backlog_counts b
              WHERE b.zone_id = t.zone_id AND t.client_id IN (0, b.client_id))
       END)::bigint AS used
  FROM unnest(%(zones)s::bigint[], %(clients)s::bigint[], %(kinds)s::text[]) AS t (zone_id, client_id, kind)

-- name: watched
-- The quotas that are announced when they are reached.
SELECT id, zone_id, COALESCE(client_id, 0) AS client_id, kind, value, reached_at IS NOT NULL AS reached
  FROM quotas
 WHERE kind = ANY (%(kinds)s)

-- name: mark
-- Quotas that are now reached, or no longer, if they were not changed meanwhile. One that refuses emits ends at once, another one
-- is reached for a while at least: a client with a small quota of sockets would reach and leave it every second.
UPDATE quotas q SET reached_at = CASE WHEN v.reached THEN now() END
  FROM unnest(%(ids)s::bigint[], %(values)s::bigint[], %(reached)s::boolean[], %(used)s::bigint[])
       AS v (id, value, reached, used),
       zones z
 WHERE q.id = v.id AND q.value = v.value AND z.id = q.zone_id
   AND (v.reached OR q.kind = 'stored_bytes' OR q.reached_at < now() - make_interval(secs => %(held_s)s))
RETURNING z.name AS zone, (SELECT c.name FROM clients c WHERE c.id = q.client_id) AS client, q.kind, q.value, v.reached, v.used
