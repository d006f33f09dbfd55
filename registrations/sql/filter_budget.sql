-- The cost of filters that are evaluated for every event of a stream: rows of `expensive_filters`.

-- name: record
INSERT INTO expensive_filters (client_id, stream_id, registration_id, cost)
SELECT r.client_id, g.stream_id, r.id, g.cost
  FROM unnest(%(registrations)s::bigint[], %(streams)s::bigint[], %(costs)s::integer[]) AS g (id, stream_id, cost)
  JOIN registrations r ON r.id = g.id

-- name: of_registrations
SELECT registration_id, stream_id, cost FROM expensive_filters WHERE registration_id = ANY (%s::bigint[])

-- name: used
-- The used budget of a client on a stream, from at most as many rows as the budget has units.
SELECT COALESCE(sum(cost), 0)::bigint FROM expensive_filters WHERE client_id = %s AND stream_id = %s

-- name: stream_name
SELECT name FROM streams WHERE id = %s
