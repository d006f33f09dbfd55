-- The deletion of streams: scheduled, withdrawn, done at the end of the grace period, and then the removal of what was stored.

-- name: schedule
UPDATE streams SET deletes_at = now() + make_interval(secs => %(grace_s)s), ended_registrations = 0 WHERE id = %(id)s

-- name: withdraw
-- Only before the end of the grace period.
UPDATE streams SET deletes_at = NULL WHERE id = %s AND deleted_at IS NULL AND deletes_at > now()

-- name: due
-- Streams whose grace period has ended, and those of which something is left.
SELECT s.id, s.zone_id, z.name AS zone, s.name, s.durability, s.deleted_at IS NOT NULL AS is_deleted
  FROM streams s LEFT JOIN zones z ON z.id = s.zone_id
 WHERE s.deletes_at <= now() AND s.erased_at IS NULL
 ORDER BY s.deletes_at, s.id
 LIMIT %s

-- name: still_due
SELECT id FROM streams WHERE id = %s AND deletes_at <= now() AND deleted_at IS NULL FOR NO KEY UPDATE

-- name: count_ended
UPDATE streams SET ended_registrations = ended_registrations + %(registrations)s WHERE id = %(id)s

-- name: delete
-- From here on the name is free, nothing is appended or read, and the segments count as dropped. Rows of streams and segments
-- remain, because barriers, listeners' records and the mark of the log name them. The counts are those of the readable events;
-- `last` is the last sequence.
WITH head AS (
    DELETE FROM heads WHERE stream_id = %(id)s RETURNING segment_id, sequence, bytes
), readable AS (
    SELECT g.id, g.first, COALESCE(g.last, h.sequence) AS last, COALESCE(g.bytes, h.bytes) AS bytes
      FROM segments g LEFT JOIN head h ON h.segment_id = g.id
     WHERE g.stream_id = %(id)s AND g.tier <> 'dropped'
), dropped AS (
    UPDATE segments g
       SET last = r.last, bytes = r.bytes, sealed_at = COALESCE(g.sealed_at, now()), tier = 'dropped', removed_at = now(),
           removal_reason = 'deleted'
      FROM readable r WHERE g.id = r.id
), marked AS (
    UPDATE streams SET deleted_at = now() WHERE id = %(id)s
)
SELECT count(*) AS segments, COALESCE(sum(last - first + 1), 0)::bigint AS events, COALESCE(sum(bytes), 0)::bigint AS bytes,
       COALESCE((SELECT sequence FROM head), 0)::bigint AS last,
       (SELECT ended_registrations FROM streams WHERE id = %(id)s) AS registrations
  FROM readable

-- name: segments
-- The segments of a deleted stream whose events may still be stored, with the partitions in which they may be: cleaning may have
-- copied some to the newest one.
SELECT g.id, p.id AS partition_id, g.last
  FROM segments g CROSS JOIN event_partitions p
 WHERE g.stream_id = %s AND g.last >= g.first AND p.id >= g.partition_id AND to_regclass('events_p' || p.id) IS NOT NULL
 ORDER BY p.id, g.id

-- name: first_stored
SELECT min(sequence) FROM events WHERE partition_id = %(partition_id)s AND segment_id = %(segment_id)s

-- name: erase_events
WITH erased AS (
    DELETE FROM events
     WHERE partition_id = %(partition_id)s AND segment_id = %(segment_id)s AND sequence BETWEEN %(first)s AND %(last)s
    RETURNING 1
)
UPDATE streams SET erased_events = erased_events + (SELECT count(*) FROM erased) WHERE id = %(id)s

-- name: erase_keyed_state
DELETE FROM keyed_state WHERE stream_id = %(id)s AND digest IN (SELECT digest FROM keyed_state WHERE stream_id = %(id)s LIMIT %(rows_max)s)

-- name: erase_producer_numbers
DELETE FROM producer_numbers
 WHERE stream_id = %(id)s AND (client_id, incarnation) IN (SELECT client_id, incarnation FROM producers WHERE stream_id = %(id)s LIMIT 1)

-- name: erase_producer
DELETE FROM producers
 WHERE stream_id = %(id)s AND (client_id, incarnation) IN (SELECT client_id, incarnation FROM producers WHERE stream_id = %(id)s LIMIT 1)

-- name: erase_digests
DELETE FROM idempotency_digests
 WHERE stream_id = %(id)s AND (slot, digest) IN (SELECT slot, digest FROM idempotency_digests WHERE stream_id = %(id)s LIMIT %(rows_max)s)

-- name: archived
-- The segments of a deleted stream that the archive has, or may have in part.
SELECT uuid::text FROM segments g
 WHERE stream_id = %s AND (archive_path IS NOT NULL OR EXISTS (SELECT FROM archive_attempts a WHERE a.segment_id = g.id))

-- name: being_archived
-- Whether an archiver may be writing a copy.
SELECT EXISTS (SELECT FROM archive_attempts a JOIN segments g ON g.id = a.segment_id WHERE g.stream_id = %(id)s)
   AND EXISTS (SELECT FROM archiver WHERE owner IS NOT NULL AND NOT is_over(until, %(lease_s)s))

-- name: unarchive
WITH ended AS (
    DELETE FROM archive_attempts a USING segments g WHERE g.id = a.segment_id AND g.stream_id = %(id)s
)
UPDATE segments SET archive_path = NULL WHERE stream_id = %(id)s AND archive_path IS NOT NULL

-- name: erased
UPDATE streams SET erased_at = now() WHERE id = %s AND erased_at IS NULL
RETURNING erased_events AS events, erased_deliveries AS deliveries, erased_pending AS pending
