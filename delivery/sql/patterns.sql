-- Pattern groups in forwarders: what a runner loads, and its checkpoints (delivery/patterns).

-- name: group
-- A live group, under its lease, and the names that its outputs need.
SELECT g.id, g.name, g.zone_id, z.name AS zone, g.client_id, c.name AS client, g.output_stream_id AS output_stream,
       l.position, l.streams, l.segments::text[] AS segments, l.sequences, l.fault IS NOT NULL AS is_stopped
  FROM pattern_leases l
  JOIN pattern_groups g ON g.id = l.group_id AND g.deleted_at IS NULL
  JOIN zones z ON z.id = g.zone_id
  JOIN clients c ON c.id = g.client_id
 WHERE l.group_id = %(group_id)s AND l.epoch = %(epoch)s

-- name: set_fault
-- Stores why a group cannot be run, or (null) that it runs again; writes nothing if that is known, or unless the lease is held.
UPDATE pattern_leases SET fault = %(fault)s::json
 WHERE group_id = %(group_id)s AND epoch = %(epoch)s AND (fault IS NULL) <> (%(fault)s::json IS NULL)

-- name: name
SELECT name FROM pattern_groups WHERE id = %(group_id)s AND deleted_at IS NULL

-- name: stream_names
SELECT id, name FROM streams WHERE id = ANY (%(ids)s::bigint[])

-- name: state
SELECT position, versions, state FROM pattern_states WHERE group_id = %(group_id)s

-- name: journal
SELECT first, last, streams, segments::text[] AS segments, firsts, lasts, added, removed
  FROM pattern_journal WHERE group_id = %(group_id)s ORDER BY first

-- name: versions
-- The versions of a group that some number of the engines may need: those of a list, and those that begin or end after a
-- barrier; with the sequences at which each begins and ends, parallel to the group's streams (null: it does not concern one).
-- For a restart (`after` 0) without those others that the group has passed, of which there may be very many.
SELECT v.id, v.pattern_id AS pattern, p.name, v.number, v.language, v.text, v.once, v.recent, v.suspended,
       v.from_barrier AS since, v.until_barrier AS until,
       (SELECT array_agg(f.sequences[array_position(f.streams, s)] ORDER BY n)
          FROM unnest(g.streams) WITH ORDINALITY AS u (s, n)) AS since_sequences,
       CASE WHEN t.id IS NOT NULL THEN
           (SELECT array_agg(t.sequences[array_position(t.streams, s)] ORDER BY n)
              FROM unnest(g.streams) WITH ORDINALITY AS u (s, n)) END AS until_sequences
  FROM pattern_versions v
  JOIN patterns p ON p.id = v.pattern_id
  JOIN pattern_groups g ON g.id = v.group_id
  JOIN barriers f ON f.id = v.from_barrier
  LEFT JOIN barriers t ON t.id = v.until_barrier
 WHERE v.group_id = %(group_id)s
   AND (v.id = ANY (%(ids)s::bigint[]) OR v.from_barrier > %(after)s OR v.until_barrier > %(after)s)
   AND (%(after)s > 0 OR t.id IS NULL OR v.id = ANY (%(ids)s::bigint[])
        OR EXISTS (SELECT FROM pattern_leases l, unnest(l.streams, l.sequences) AS c (stream_id, sequence)
                     JOIN unnest(t.streams, t.sequences) AS e (stream_id, sequence) USING (stream_id)
                    WHERE l.group_id = v.group_id AND c.sequence < e.sequence))
 ORDER BY v.id

-- name: statuses
SELECT pattern_id AS pattern, version_id AS version, matches, dropped FROM pattern_statuses WHERE group_id = %(group_id)s

-- name: move
-- Moves the checkpoint of a group and, unless there is nothing, adds to its journal; writes nothing unless the lease is held and
-- the position is as expected.
WITH held AS MATERIALIZED (
    SELECT group_id FROM pattern_leases
     WHERE group_id = %(group_id)s AND epoch = %(epoch)s AND position = %(from_position)s
       FOR NO KEY UPDATE
), journalled AS (
    INSERT INTO pattern_journal (group_id, first, last, streams, segments, firsts, lasts, added, removed)
    SELECT group_id, %(first)s::bigint, %(position)s::bigint, %(run_streams)s::bigint[], %(run_segments)s::text[]::uuid[],
           %(run_firsts)s::bigint[], %(run_lasts)s::bigint[], %(added)s::bigint[], %(removed)s::bigint[]
      FROM held WHERE %(position)s::bigint >= %(first)s::bigint
    RETURNING 1
)
UPDATE pattern_leases l
   SET position = %(position)s, streams = %(streams)s::bigint[], segments = %(segments)s::text[]::uuid[],
       sequences = %(sequences)s::bigint[], expires_at = clock_timestamp() + make_interval(secs => %(lease_s)s)
  FROM held, (SELECT count(*) AS rows FROM journalled) AS done
 WHERE l.group_id = held.group_id AND done.rows >= 0

-- name: snapshot
-- Moves the checkpoint of a group and replaces its snapshot by one of this moment, which the journal then need not reach.
WITH held AS MATERIALIZED (
    SELECT group_id FROM pattern_leases
     WHERE group_id = %(group_id)s AND epoch = %(epoch)s AND position = %(from_position)s
       FOR NO KEY UPDATE
), stored AS (
    INSERT INTO pattern_states (group_id, position, streams, segments, sequences, versions, state)
    SELECT group_id, %(position)s, %(streams)s::bigint[], %(segments)s::text[]::uuid[], %(sequences)s::bigint[],
           %(versions)s::bigint[], %(state)s
      FROM held
        ON CONFLICT (group_id) DO UPDATE
       SET position = excluded.position, streams = excluded.streams, segments = excluded.segments, sequences = excluded.sequences,
           versions = excluded.versions, state = excluded.state, written_at = now()
    RETURNING 1
), erased AS (
    DELETE FROM pattern_journal j USING held WHERE j.group_id = held.group_id RETURNING 1
)
UPDATE pattern_leases l
   SET position = %(position)s, streams = %(streams)s::bigint[], segments = %(segments)s::text[]::uuid[],
       sequences = %(sequences)s::bigint[], expires_at = clock_timestamp() + make_interval(secs => %(lease_s)s)
  FROM held, (SELECT count(*) AS rows FROM stored) AS done, (SELECT count(*) AS rows FROM erased) AS erasing
 WHERE l.group_id = held.group_id AND done.rows > 0 AND erasing.rows >= 0

-- name: write_statuses
-- Replaces the statuses of some patterns, in the order of their ids. `state` null: as before if the version is the same.
INSERT INTO pattern_statuses AS s (pattern_id, group_id, version_id, state, fault, matches, dropped)
SELECT v.pattern, %(group_id)s, v.version, COALESCE(v.state, 'running'), v.fault::json, v.matches, v.dropped::jsonb
  FROM unnest(%(patterns)s::bigint[], %(versions)s::bigint[], %(states)s::text[], %(faults)s::text[], %(matches)s::bigint[],
              %(dropped)s::text[]) AS v (pattern, version, state, fault, matches, dropped)
 ORDER BY v.pattern
    ON CONFLICT (pattern_id) DO UPDATE
   SET version_id = excluded.version_id, matches = excluded.matches, dropped = excluded.dropped,
       state = CASE WHEN s.version_id <> excluded.version_id THEN excluded.state ELSE COALESCE(excluded.state, s.state) END,
       fault = CASE WHEN s.version_id <> excluded.version_id THEN excluded.fault ELSE COALESCE(excluded.fault, s.fault) END

-- name: output_streams
-- The streams that outputs can be appended to, by id or by name in the zone; `is_full`: its quota of stored bytes is reached.
SELECT id, name, EXISTS (SELECT FROM quotas WHERE zone_id = %(zone_id)s AND client_id IS NULL AND kind = 'stored_bytes'
                            AND reached_at IS NOT NULL) AS is_full
  FROM streams
 WHERE (id = ANY (%(ids)s::bigint[]) OR zone_id = %(zone_id)s AND name = ANY (%(names)s::text[]))
   AND deleted_at IS NULL AND durability <> 'transient'

-- name: lag
-- The events that leased groups have not consumed.
SELECT l.group_id, sum(greatest(h.sequence - c.sequence, 0))::bigint AS events
  FROM pattern_leases l
 CROSS JOIN LATERAL unnest(l.streams, l.sequences) AS c (stream_id, sequence)
  JOIN heads h ON h.stream_id = c.stream_id
 WHERE l.group_id = ANY (%(groups)s::bigint[])
 GROUP BY l.group_id
