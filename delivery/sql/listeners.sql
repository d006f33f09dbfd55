-- The record of listeners, which web processes write in batches.

-- name: insert
-- Inserts the given listeners (JSON) and returns their keys in the given order. Ids and the time come from
-- the database, so that the rows of all processes are in one order.
WITH given AS MATERIALIZED (
    SELECT nextval('listener_ids') AS id, g.*
      FROM jsonb_to_recordset(%(listeners)s::jsonb)
           AS g (number integer, zone_id bigint, client_id bigint, stream_id bigint, transport text, name text, start text,
                 segment uuid, sequence bigint, mask bigint, filter text, registrations bigint[], request_digest text)
), inserted AS (
    INSERT INTO listeners (started_at, id, zone_id, client_id, stream_id, node, transport, name, start, segment, sequence, mask,
                           filter, registrations, request_digest, delivered_segment, delivered_sequence, delivered_events, updated_at)
    SELECT now(), id, zone_id, client_id, stream_id, %(node)s, transport, name, start, segment, sequence, mask,
           filter, registrations, request_digest, segment, sequence, 0, now()
      FROM given
)
SELECT now() AS started_at, id FROM given ORDER BY number

-- name: update
-- Sets how far the given listeners (JSON) were delivered to, and which ended, `ended_s` seconds ago.
UPDATE listeners l
   SET delivered_segment = g.segment, delivered_sequence = g.sequence, delivered_events = g.delivered_events, updated_at = now(),
       end_reason = g.end_reason, ended_at = now() - make_interval(secs => g.ended_s)
  FROM jsonb_to_recordset(%(listeners)s::jsonb)
       AS g (started_at timestamptz, id bigint, segment uuid, sequence bigint, delivered_events bigint, end_reason text,
             ended_s double precision)
 WHERE l.started_at = g.started_at AND l.id = g.id AND l.started_at BETWEEN %(oldest)s AND %(newest)s
