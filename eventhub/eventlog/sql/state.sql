-- The latest event of each key of a keyed stream, as the append itself writes it (keyed_state).

-- name: page
-- A page by digest: what is not newer than a sequence. A key that changed since is left out: the tail from that sequence
-- brings it. At most so many rows and so many bytes (always one row).
SELECT digest, key, segment::text, sequence, mask, (extract(epoch FROM appended_at) * 1000000)::bigint, payload
  FROM (SELECT digest, key, segment, sequence, mask, appended_at, payload,
               sum(octet_length(payload)) OVER (ORDER BY digest) - octet_length(payload) AS bytes_before
          FROM (SELECT digest, key, segment, sequence, mask, appended_at, payload
                  FROM keyed_state
                 WHERE stream_id = %(stream_id)s AND digest > %(after)s AND sequence <= %(upto)s
                 ORDER BY digest
                 LIMIT %(keys_max)s) AS taken) AS page
 WHERE bytes_before < %(bytes_max)s
 ORDER BY digest

-- name: one
SELECT digest, key, segment::text, sequence, mask, (extract(epoch FROM appended_at) * 1000000)::bigint, payload
  FROM keyed_state
 WHERE stream_id = %s AND digest = %s
