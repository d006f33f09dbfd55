-- name: append
SELECT outcome, draft, stream, segment, first, last, appended_at_us, watchers FROM append_events(
    %b::bigint[], %b::bigint[], %b::bytea[], %b::bigint[], %b::bigint[], %b::bigint[], %b::integer,
    %b::bytea[], %b::text[], %b::bigint[]
)

-- name: append_plain
-- The append of events of one stream without producers, tokens and keys. No row: nothing was stored, because there is no such
-- stream or its segment would be full, which the function takes care of.
WITH head AS (
    UPDATE heads h
       SET sequence = h.sequence + %(count)s::integer, bytes = h.bytes + %(bytes)s::bigint
      FROM streams s
     WHERE h.stream_id = %(stream)s::bigint AND s.id = h.stream_id
       AND h.sequence - h.first + 1 + %(count)s::integer < s.segment_events_max
       AND h.bytes + %(bytes)s::bigint < s.segment_bytes_max
    RETURNING h.stream_id, h.segment, h.segment_id, h.partition_id, h.sequence - %(count)s::integer AS before, h.sequence AS last,
              h.watchers, clock_timestamp() AS at
), stored AS (
    INSERT INTO events (segment_id, sequence, mask, partition_id, payload, appended_at)
    SELECT h.segment_id, h.before + v.n, v.mask, h.partition_id, v.payload, h.at
      FROM head h, unnest(%(masks)s::bigint[], %(payloads)s::bytea[]) WITH ORDINALITY AS v (mask, payload, n)
)
SELECT 'run' AS outcome, NULL::integer AS draft, stream_id AS stream, segment, before + 1 AS first, last,
       (extract(epoch FROM at) * 1000000)::bigint AS appended_at_us, watchers
  FROM head

-- name: notify
-- Never inside the appending transaction, where it would serialize all commits of the server.
SELECT pg_notify('eventhub_heads', %s)

-- name: watch
-- Names a process that follows streams, by the backend that it listens on, in their heads, and removes it from others. The locks
-- are those of an append: an event is committed before, and found by the look at the heads that follows, or it is announced. The
-- commit does not wait for the disk, because no backend outlives the server.
WITH changed AS MATERIALIZED (
    SELECT stream_id FROM heads
     WHERE stream_id = ANY (%(watched)s::bigint[] || %(left)s::bigint[]) AND set_config('synchronous_commit', 'off', true) = 'off'
     ORDER BY stream_id FOR NO KEY UPDATE
)
UPDATE heads h
   SET watchers = NULLIF(array_remove(h.watchers, %(backend)s::integer)
                         || CASE WHEN h.stream_id = ANY (%(watched)s::bigint[]) THEN ARRAY[%(backend)s::integer] ELSE '{}' END, '{}')
  FROM changed WHERE h.stream_id = changed.stream_id

-- name: ended_watchers
SELECT DISTINCT w.backend
  FROM heads h, unnest(h.watchers) AS w (backend)
 WHERE w.backend NOT IN (SELECT pid FROM pg_stat_activity)

-- name: forget_watchers
WITH changed AS MATERIALIZED (
    SELECT stream_id FROM heads WHERE watchers && %(ended)s::integer[] ORDER BY stream_id FOR NO KEY UPDATE
)
UPDATE heads h
   SET watchers = NULLIF(ARRAY(SELECT w.backend FROM unnest(h.watchers) AS w (backend) WHERE w.backend <> ALL (%(ended)s::integer[])), '{}')
  FROM changed WHERE h.stream_id = changed.stream_id

-- name: lock_head
SELECT sequence FROM heads WHERE stream_id = %s FOR NO KEY UPDATE

-- name: state_sequence
SELECT sequence FROM keyed_state WHERE stream_id = %s AND digest = sha256(convert_to(%s, 'UTF8'))

-- name: proven
-- The life for which the log was proved, if it was, and the key of its mark. There is a new life after every start of the
-- server, every crash recovery and every restore.
SELECT proven_life()::text AS life,
       (SELECT system_identifier FROM pg_control_system())::text || ':' || current_database() AS key

-- name: appendable
-- Whether the log was proved for this life of the server, or nothing was ever appended.
SELECT proven_life() IS NOT NULL OR life IS NULL AS is_appendable FROM log_state

-- name: prove_continuity
SELECT reason, streams, before::text, life::text FROM prove_continuity(%s::uuid, %s::uuid, %s::uuid, %s)

-- name: shows_loss
SELECT shows_loss(%s, %s::uuid, %s)

-- name: roll_one
SELECT FROM roll_segments(ARRAY[%s]::bigint[], true)

-- name: history
-- The history of the database; null until it is proved for this life of the server, because a restore starts another one.
SELECT CASE WHEN proven_life() IS NOT NULL THEN history::text END AS history FROM log_state

-- name: new_history
-- Data derived from the database and stored elsewhere may be of a history that is lost.
UPDATE log_state SET history = gen_random_uuid()

-- name: roll_all
SELECT count(*) FROM roll_segments((SELECT array_agg(stream_id) FROM heads), true)
