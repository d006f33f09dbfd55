-- The clients that are connected, compared with those that were announced. One process at a time does so, and nobody else writes
-- client_presences. All times are the database's.

-- name: needed
SELECT EXISTS (SELECT FROM zones WHERE presence) OR EXISTS (SELECT FROM client_presences)

-- name: mark
-- Clients that have no socket any more, and those that have one again. Those of a zone without presence count as absent.
WITH live AS (
    SELECT DISTINCT c.zone_id, c.client_id
      FROM socket_counts c
      JOIN web_processes p ON p.id = c.process_id
      JOIN zones z ON z.id = c.zone_id AND z.presence AND z.deleted_at IS NULL
     WHERE c.sockets > 0 AND abs(extract(epoch FROM clock_timestamp() - p.last_seen_at)) < %(lost_s)s
), changed AS (
    SELECT p.zone_id, p.client_id, l.client_id IS NULL AS absent
      FROM client_presences p LEFT JOIN live l ON l.zone_id = p.zone_id AND l.client_id = p.client_id
     WHERE (p.absent_since IS NULL) = (l.client_id IS NULL)
)
UPDATE client_presences p SET absent_since = CASE WHEN c.absent THEN now() END
  FROM changed c
 WHERE c.zone_id = p.zone_id AND c.client_id = p.client_id

-- name: leave
-- Removes clients that were absent for the grace time, in which they could have reconnected (`watched_s`); deleted ones at once.
WITH due AS (
    SELECT p.zone_id, p.client_id
      FROM client_presences p
     WHERE p.absent_since IS NOT NULL
       AND (%(watched_s)s::float8 >= %(grace_s)s::float8 AND is_over(p.absent_since + make_interval(secs => %(grace_s)s), %(grace_s)s)
            OR EXISTS (SELECT FROM clients c WHERE c.id = p.client_id AND c.deleted_at IS NOT NULL))
     ORDER BY p.zone_id, p.client_id
     LIMIT %(rows_max)s
), gone AS (
    DELETE FROM client_presences p USING due d
     WHERE p.zone_id = d.zone_id AND p.client_id = d.client_id
    RETURNING p.zone_id, p.client_id, p.client, p.since, p.absent_since
)
SELECT g.client, g.since, g.absent_since, s.id AS stream_id
  FROM gone g LEFT JOIN streams s ON s.zone_id = g.zone_id AND s.name = %(stream)s AND s.deleted_at IS NULL
 ORDER BY g.zone_id, g.client_id

-- name: join
-- Adds clients that have a socket and were not announced.
WITH live AS (
    SELECT DISTINCT c.zone_id, c.client_id, s.id AS stream_id
      FROM socket_counts c
      JOIN web_processes p ON p.id = c.process_id
      JOIN zones z ON z.id = c.zone_id AND z.presence AND z.deleted_at IS NULL
      JOIN streams s ON s.zone_id = c.zone_id AND s.name = %(stream)s AND s.deleted_at IS NULL
     WHERE c.sockets > 0 AND abs(extract(epoch FROM clock_timestamp() - p.last_seen_at)) < %(lost_s)s
       AND NOT EXISTS (SELECT FROM client_presences a WHERE a.zone_id = c.zone_id AND a.client_id = c.client_id)
     ORDER BY c.zone_id, c.client_id
     LIMIT %(rows_max)s
), added AS (
    INSERT INTO client_presences (zone_id, client_id, client, since)
    SELECT l.zone_id, l.client_id, c.name, now()
      FROM live l JOIN clients c ON c.id = l.client_id AND c.deleted_at IS NULL
        ON CONFLICT DO NOTHING
    RETURNING zone_id, client_id, client, since, absent_since
)
SELECT a.client, a.since, a.absent_since, l.stream_id
  FROM added a JOIN live l ON l.zone_id = a.zone_id AND l.client_id = a.client_id
 ORDER BY a.zone_id, a.client_id

-- name: count
SELECT count(*) FROM client_presences
