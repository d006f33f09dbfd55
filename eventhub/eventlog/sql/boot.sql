-- A start of the hub: markers in the streams, and the state of some told again.

-- name: mark_all
-- Where each stream stood before the start. The head of `system` is locked; what other streams are given meanwhile comes
-- after the start.
UPDATE streams s SET boot_segment = h.segment, boot_sequence = h.sequence
  FROM heads h WHERE h.stream_id = s.id

-- name: mark_one
-- The same of one stream, whose head is locked.
UPDATE streams s SET boot_segment = h.segment, boot_sequence = h.sequence
  FROM heads h WHERE h.stream_id = s.id AND s.id = %s

-- name: booted
UPDATE log_state SET booted_at = now()

-- name: restated_streams
SELECT id FROM streams WHERE restate AND keyed ORDER BY id

-- name: boot
-- The last event of `system` before the hub's last start, and when that was.
SELECT s.boot_segment::text AS segment, s.boot_sequence AS sequence,
       (extract(epoch FROM l.booted_at) * 1000000)::bigint AS started_at_us
  FROM streams s, log_state l WHERE s.id = 1 AND s.boot_segment IS NOT NULL
