-- A start of the hub: markers in the streams, and the streams that restate their keys.

-- name: mark_all
-- The position of each stream before the start. The head of `system` is locked; events that other streams get meanwhile come
-- after the start.
UPDATE streams s SET boot_segment = h.segment, boot_sequence = h.sequence
  FROM heads h WHERE h.stream_id = s.id

-- name: mark_one
-- The position of one stream, whose head is locked.
UPDATE streams s SET boot_segment = h.segment, boot_sequence = h.sequence
  FROM heads h WHERE h.stream_id = s.id AND s.id = %s

-- name: set_booted_at
UPDATE log_state SET booted_at = now()

-- name: restated_streams
SELECT id FROM streams WHERE restate AND keyed AND deletes_at IS NULL ORDER BY id

-- name: boot
-- The last event of `system` before the hub's last start, and when that was.
SELECT s.boot_segment::text AS segment, s.boot_sequence AS sequence,
       (extract(epoch FROM l.booted_at) * 1000000)::bigint AS started_at_us
  FROM streams s, log_state l WHERE s.id = 1 AND s.boot_segment IS NOT NULL
