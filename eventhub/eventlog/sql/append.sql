-- name: append
SELECT * FROM append_events(
    %b::bigint[], %b::bigint[], %b::bytea[], %b::bigint[], %b::bigint[], %b::bigint[], %b::integer,
    %b::bytea[], %b::text[], %b::bigint[]
)

-- name: notify
-- Never inside the appending transaction: there it would serialise every commit of the server.
SELECT pg_notify('eventhub_heads', %s)

-- name: lock_head
SELECT sequence FROM heads WHERE stream_id = %s FOR NO KEY UPDATE

-- name: state_sequence
SELECT sequence FROM keyed_state WHERE stream_id = %s AND digest = sha256(convert_to(%s, 'UTF8'))

-- name: prove_continuity
SELECT reason, array_agg(stream) FROM prove_continuity() GROUP BY reason

-- name: life
-- Another one after every crash recovery and every restore, the same after an orderly stop.
SELECT since::text FROM incarnation

-- name: new_history
-- What was made of the database before, and is kept elsewhere, may be of a future that is lost.
UPDATE log_state SET history = gen_random_uuid()

-- name: roll_all
SELECT count(*) FROM roll_segments((SELECT array_agg(stream_id) FROM heads), true)
