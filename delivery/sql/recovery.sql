-- Deliveries that are requested again, skipped or discarded. All times are the database's.

-- name: lock_delivery
-- Locks a delivery. `is_posted`: a worker holds a claim of it.
SELECT state, claim IS NOT NULL AND NOT is_over(next_attempt_at, %(claim_s)s) AS is_posted
  FROM deliveries
 WHERE partition_id = %(partition_id)s AND endpoint_id = %(endpoint_id)s AND segment_id = %(segment_id)s
   AND sequence = %(sequence)s
   FOR UPDATE

-- name: resend
-- Makes a delivery pending again, due before all others of its endpoint. Its attempts so far do not count any more.
UPDATE deliveries d
   SET state = 'pending', claim = NULL, next_attempt_at = 'epoch', retry_after_s = NULL, finished_at = NULL, resent_at = now(),
       forced = %(force)s, ordered = e.ordered,
       uncounted_attempts = CASE WHEN d.state = 'pending' THEN d.uncounted_attempts ELSE d.attempts END,
       message_number = CASE WHEN %(new_id)s THEN COALESCE(d.message_number, 1) + 1 ELSE d.message_number END
  FROM endpoints e
 WHERE e.id = d.endpoint_id
   AND d.partition_id = %(partition_id)s AND d.endpoint_id = %(endpoint_id)s AND d.segment_id = %(segment_id)s
   AND d.sequence = %(sequence)s

-- name: discard
UPDATE deliveries SET state = 'discarded', claim = NULL, finished_at = now()
 WHERE partition_id = %(partition_id)s AND endpoint_id = %(endpoint_id)s AND segment_id = %(segment_id)s
   AND sequence = %(sequence)s

-- name: end_pause
-- Ends the pause of an endpoint in backoff: a worker probes it at once.
UPDATE backoffs SET paused_until = now() WHERE endpoint_id = %(endpoint_id)s AND pause_s > 0

-- name: notify
SELECT pg_notify('eventhub_deliveries', '')
