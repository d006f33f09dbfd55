-- name: append
SELECT * FROM append_events(
    %b::bigint[], %b::bigint[], %b::bytea[], %b::bigint[], %b::bigint[], %b::bigint[], %b::integer
)

-- name: notify
-- Never inside the appending transaction: there it would serialise every commit of the server.
SELECT pg_notify('eventhub_heads', %s)
