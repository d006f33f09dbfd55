-- Partitions ahead of need, old producers and old idempotency digests.

-- name: state
-- The current and the newest partition, and how many there are; of the current one the bytes on the disk, with those of the
-- tables that are partitioned alike, and the stored bytes, live and in all.
SELECT l.current_partition AS current, (SELECT max(id) FROM event_partitions) AS newest,
       (SELECT count(*) FROM pg_inherits WHERE inhparent = 'events'::regclass) AS partitions,
       (SELECT sum(pg_total_relation_size(c.oid))::bigint FROM pg_class c
         WHERE c.relkind = 'r' AND c.relnamespace = (SELECT relnamespace FROM pg_class WHERE oid = 'events'::regclass)
           AND c.relname LIKE '%%\_p' || l.current_partition) AS size,
       COALESCE(g.live, 0)::bigint AS live, COALESCE(g.stored, 0)::bigint AS stored
  FROM log_state l,
       LATERAL (SELECT sum(COALESCE(s.bytes, h.bytes)) FILTER (WHERE s.tier = 'live') AS live,
                       sum(COALESCE(s.bytes, h.bytes)) AS stored
                  FROM segments s LEFT JOIN heads h ON h.segment_id = s.id AND s.last IS NULL
                 WHERE s.partition_id = l.current_partition) AS g

-- name: insert_partition
INSERT INTO event_partitions (id) VALUES (%s)

-- name: set_current_partition
UPDATE log_state SET current_partition = %s

-- name: expire_producers
-- Superseded incarnations that have not emitted for long, and all but the newest `incarnations_max` of a client.
WITH ranked AS (
    SELECT stream_id, client_id, incarnation, last_seen_at,
           row_number() OVER (PARTITION BY stream_id, client_id ORDER BY last_seen_at DESC, incarnation DESC) AS rank
      FROM producers
), old AS (
    DELETE FROM producers p USING ranked r
     WHERE p.stream_id = r.stream_id AND p.client_id = r.client_id AND p.incarnation = r.incarnation
       AND p.last_seen_at = r.last_seen_at AND r.rank > 1
       AND (r.last_seen_at < now() - make_interval(secs => %(expiry_s)s) OR r.rank > %(incarnations_max)s)
    RETURNING p.stream_id, p.client_id, p.incarnation
)
DELETE FROM producer_numbers n USING old
 WHERE n.stream_id = old.stream_id AND n.client_id = old.client_id AND n.incarnation = old.incarnation

-- name: expired_digest_slot
-- Tomorrow's slot, unless it is empty. Not near midnight, when it may be in use before the result arrives.
WITH today AS (SELECT floor(extract(epoch FROM now()) / 86400)::bigint AS day, now() AT TIME ZONE 'UTC' AS at)
SELECT (day + 1) % 4 AS slot FROM today
 WHERE at::time < time '23:58' AND EXISTS (SELECT FROM idempotency_digests WHERE slot = (day + 1) % 4)
