-- Segments to be archived, the archiver's lease, and failed attempts.

-- name: partition_of
-- A segment that was moved meanwhile has another partition, a dropped one has none.
SELECT partition_id FROM segments WHERE id = {segment} AND tier = 'live'

-- name: page
-- At most `events_max` rows and `bytes_max` bytes, but at least one row. The partition is given, so only that one is touched.
SELECT sequence, appended_at, mask, payload
  FROM (SELECT sequence, appended_at, mask, payload,
               sum(octet_length(payload)) OVER (ORDER BY sequence) - octet_length(payload) AS bytes_before
          FROM events
         WHERE partition_id = {partition_id} AND segment_id = {segment} AND sequence > {after}
         ORDER BY sequence
         LIMIT {events_max}) AS page
 WHERE bytes_before < {bytes_max}
 ORDER BY sequence

-- name: due_segments
-- Sealed segments that wait, the oldest first; a failed one waits for its next attempt.
SELECT s.id, s.uuid::text, s.first, s.last, s.bytes, t.id AS stream_id, t.zone_id, t.name AS stream
  FROM segments s JOIN streams t ON t.id = s.stream_id LEFT JOIN archive_attempts a ON a.segment_id = s.id
 WHERE t.archive AND s.archive_path IS NULL AND s.tier = 'live' AND s.last IS NOT NULL
   AND (a.retry_at IS NULL OR is_over(a.retry_at, %(retry_s_max)s))
   AND (%(stream)s::text IS NULL OR t.name = %(stream)s)
   AND (%(segment)s::text IS NULL OR s.uuid::text = %(segment)s)
 ORDER BY s.sealed_at, s.id
 LIMIT %(segments_max)s

-- name: acquire_lease
-- Acquire or prolong the lease, if it is free or ours, by the database's clock.
UPDATE archiver SET owner = %(owner)s, until = now() + make_interval(secs => %(lease_s)s)
 WHERE owner = %(owner)s OR until IS NULL OR is_over(until, %(lease_s)s)

-- name: release_lease
UPDATE archiver SET owner = NULL, until = NULL WHERE owner = %(owner)s

-- name: lease_holder
SELECT owner FROM archiver WHERE NOT is_over(until, %(lease_s)s)

-- name: start_attempt
-- The number of the attempt shows whether an earlier one did not finish. No row if the segment was archived or removed meanwhile.
INSERT INTO archive_attempts AS a (segment_id, attempts, reason, retry_at)
SELECT id, 1, 'unfinished', now() FROM segments
 WHERE id = %(segment_id)s AND archive_path IS NULL AND tier = 'live'
ON CONFLICT (segment_id) DO UPDATE SET attempts = a.attempts + 1, reason = 'unfinished', attempted_at = now()
RETURNING attempts

-- name: retry_failed_now
UPDATE archive_attempts SET retry_at = now()

-- name: expedite
-- With `act`, make one segment's next attempt due now. Returns why it cannot or need not be archived, or '' if it can; no row if
-- there is no such segment.
WITH found AS (
    SELECT s.id, CASE WHEN s.archive_path IS NOT NULL THEN 'archived'
                      WHEN s.tier <> 'live' THEN 'gone'
                      WHEN s.last IS NULL THEN 'open'
                      WHEN NOT t.archive THEN 'archive_policy'
                      ELSE '' END AS reason
      FROM segments s JOIN streams t ON t.id = s.stream_id
     WHERE s.id = %(segment_id)s AND s.uuid = %(segment)s::uuid
), hastened AS (
    UPDATE archive_attempts a SET retry_at = now() FROM found f
     WHERE f.id = a.segment_id AND f.reason = '' AND a.retry_at > now() AND %(act)s
)
SELECT reason FROM found

-- name: fail_attempt
UPDATE archive_attempts
   SET reason = %(reason)s, detail = %(detail)s, retry_at = now() + make_interval(secs => %(pause_s)s)
 WHERE segment_id = %(segment_id)s

-- name: complete
-- Only for the holder of the lease. A segment that was archived meanwhile is not changed.
WITH done AS (
    UPDATE segments SET archive_path = %(path)s
     WHERE id = %(segment_id)s AND archive_path IS NULL AND EXISTS (SELECT FROM archiver WHERE owner = %(owner)s)
    RETURNING id
)
DELETE FROM archive_attempts USING done WHERE segment_id = done.id

-- name: waiting
-- Segments, events and bytes that are sealed and not archived, and the time since the oldest was sealed.
SELECT count(*) AS segments, COALESCE(sum(s.last - s.first + 1), 0)::bigint AS events,
       COALESCE(sum(s.bytes), 0)::bigint AS bytes, extract(epoch FROM now() - min(s.sealed_at))::float8 AS lag_s
  FROM segments s JOIN streams t ON t.id = s.stream_id
 WHERE t.archive AND s.archive_path IS NULL AND s.tier = 'live' AND s.last IS NOT NULL
   AND (%(stream)s::text IS NULL OR t.name = %(stream)s)

-- name: archived
SELECT count(*) AS segments, COALESCE(sum(s.last - s.first + 1), 0)::bigint AS events,
       COALESCE(sum(s.bytes), 0)::bigint AS bytes
  FROM segments s JOIN streams t ON t.id = s.stream_id
 WHERE s.archive_path IS NOT NULL AND s.tier <> 'dropped' AND (%(stream)s::text IS NULL OR t.name = %(stream)s)

-- name: failures
SELECT t.zone_id, t.name AS stream, s.uuid::text AS segment, a.attempts, a.reason, a.detail,
       (extract(epoch FROM a.retry_at) * 1000000)::bigint AS retry_at_us
  FROM archive_attempts a JOIN segments s ON s.id = a.segment_id JOIN streams t ON t.id = s.stream_id
 WHERE a.reason <> 'unfinished' AND s.archive_path IS NULL AND s.tier = 'live'
   AND (%(stream)s::text IS NULL OR t.name = %(stream)s)
 ORDER BY s.id
 LIMIT %(failures_max)s

-- name: delete_finished_attempts
DELETE FROM archive_attempts a USING segments s
 WHERE s.id = a.segment_id AND (s.archive_path IS NOT NULL OR s.tier <> 'live')

-- name: archived_copy
SELECT uuid::text, archive_path AS path, first, last FROM segments WHERE id = %(segment_id)s AND archive_path IS NOT NULL

-- name: archived_segments
-- For `verify`: in the order of each stream, each with the last sequence of the segment before it.
SELECT s.id, t.id AS stream_id, t.zone_id, t.name AS stream, s.uuid::text, s.archive_path AS path, s.first, s.last, s.bytes, s.before
  FROM (SELECT *, lag(last) OVER (PARTITION BY stream_id ORDER BY first, id) AS before FROM segments) AS s
  JOIN streams t ON t.id = s.stream_id
 WHERE s.archive_path IS NOT NULL AND s.tier <> 'dropped'
   AND (%(stream)s::text IS NULL OR t.name = %(stream)s)
   AND (%(segment)s::text IS NULL OR s.uuid::text = %(segment)s)
 ORDER BY t.id, s.first, s.id
