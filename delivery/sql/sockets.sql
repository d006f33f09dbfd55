-- The sockets of clients, counted over all web processes. The counts of a process are its own; without its heartbeat they do not
-- count. All times are the database's; a heartbeat in the future is from before its clock stepped back.

-- name: take
SELECT scope, quota, is_new
  FROM take_socket(%(zone)s, %(client)s, %(process)s, %(sockets)s, %(lost_s)s)

-- name: heartbeat
-- True if the process was unknown, so that none of its counts are there.
INSERT INTO web_processes AS p (id, last_seen_at) VALUES (%(process)s, clock_timestamp())
    ON CONFLICT (id) DO UPDATE SET last_seen_at = excluded.last_seen_at
RETURNING p.xmax = 0 AS is_new

-- name: write
INSERT INTO socket_counts (zone_id, client_id, process_id, sockets)
SELECT v.zone_id, v.client_id, %(process)s, v.sockets
  FROM unnest(%(zones)s::bigint[], %(clients)s::bigint[], %(sockets)s::integer[]) AS v (zone_id, client_id, sockets)
    ON CONFLICT (zone_id, client_id, process_id) DO UPDATE SET sockets = excluded.sockets

-- name: delete_lost
-- The counts of processes that have ended without deleting theirs.
WITH lost AS (
    DELETE FROM web_processes WHERE abs(extract(epoch FROM clock_timestamp() - last_seen_at)) > %(delete_s)s RETURNING id
)
DELETE FROM socket_counts c USING lost WHERE c.process_id = lost.id

-- name: delete_empty
DELETE FROM socket_counts WHERE process_id = %(process)s AND sockets = 0

-- name: delete_own
WITH own AS (
    DELETE FROM web_processes WHERE id = %(process)s
)
DELETE FROM socket_counts WHERE process_id = %(process)s
