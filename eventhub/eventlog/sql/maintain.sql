-- name: lead
-- One maintainer at a time; released with its transaction.
SELECT pg_try_advisory_xact_lock(hashtext('eventhub maintain'))

-- name: state
SELECT l.current_group, max(g.id), count(*), pg_total_relation_size(('events_g' || l.current_group)::regclass)
  FROM log_state l, groups g GROUP BY l.current_group

-- name: announce_group
INSERT INTO groups (id) VALUES (%s)

-- name: move_current_group
UPDATE log_state SET current_group = %s

-- name: expire_producers
-- A superseded incarnation that has not been seen for long, and all but the newest so many of a client.
WITH ranked AS (
    SELECT stream_id, client_id, incarnation, seen_at,
           row_number() OVER (PARTITION BY stream_id, client_id ORDER BY seen_at DESC, incarnation DESC) AS place
      FROM producers
), old AS (
    DELETE FROM producers p USING ranked r
     WHERE p.stream_id = r.stream_id AND p.client_id = r.client_id AND p.incarnation = r.incarnation
       AND p.seen_at = r.seen_at AND r.place > 1
       AND (r.seen_at < now() - make_interval(secs => %(expiry_s)s) OR r.place > %(kept_max)s)
    RETURNING p.stream_id, p.client_id, p.incarnation
)
DELETE FROM producer_numbers n USING old
 WHERE n.stream_id = old.stream_id AND n.client_id = old.client_id AND n.incarnation = old.incarnation
