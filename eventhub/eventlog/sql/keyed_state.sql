-- The latest event of each key of a keyed stream: its position, which the append writes (keyed_state), or the copy that was
-- stored when its segment left `events`.

-- name: page
-- A page in digest order, up to a sequence. A key that changed since is left out: it comes with the tail from that sequence.
-- At most `keys_max` rows and `bytes_max` bytes, but at least one row.
SELECT digest, key, segment, sequence, mask, appended_at_us, payload
  FROM (SELECT *, sum(octet_length(payload)) OVER (ORDER BY digest) - octet_length(payload) AS bytes_before
          FROM (SELECT k.digest, k.key, k.segment::text, k.sequence, COALESCE(k.mask, e.mask) AS mask,
                       (extract(epoch FROM COALESCE(k.appended_at, e.appended_at)) * 1000000)::bigint AS appended_at_us,
                       COALESCE(k.payload, e.payload) AS payload
                  FROM (SELECT * FROM keyed_state
                         WHERE stream_id = %(stream_id)s AND digest > %(after)s AND sequence <= %(upto)s
                         ORDER BY digest
                         LIMIT %(keys_max)s) AS k
                  LEFT JOIN segments s ON s.uuid = k.segment AND k.payload IS NULL
                  LEFT JOIN events e ON e.partition_id = s.partition_id AND e.segment_id = s.id AND e.sequence = k.sequence) AS taken
       ) AS page
 WHERE bytes_before < %(bytes_max)s
 ORDER BY digest

-- name: position
-- The position of the stream, and whether a cursor belongs to it.
SELECT h.segment::text, h.first, h.sequence AS last,
       COALESCE(%(sequence)s BETWEEN c.first - 1 AND COALESCE(c.last, h.sequence), false) AS has_cursor
  FROM heads h LEFT JOIN segments c ON c.uuid = %(segment)s::uuid AND c.stream_id = h.stream_id
 WHERE h.stream_id = %(stream_id)s

-- name: one
SELECT k.digest, k.key, k.segment::text, k.sequence, COALESCE(k.mask, e.mask) AS mask,
       (extract(epoch FROM COALESCE(k.appended_at, e.appended_at)) * 1000000)::bigint AS appended_at_us,
       COALESCE(k.payload, e.payload) AS payload
  FROM keyed_state k
  LEFT JOIN segments s ON s.uuid = k.segment AND k.payload IS NULL
  LEFT JOIN events e ON e.partition_id = s.partition_id AND e.segment_id = s.id AND e.sequence = k.sequence
 WHERE k.stream_id = %s AND k.digest = %s
