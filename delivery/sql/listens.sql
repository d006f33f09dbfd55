-- The record of listens: written by web processes in batches, and shown.

-- name: begin
-- Listens that begin, as JSON. Ids and the time are the database's, so that all processes' are in one order.
WITH given AS MATERIALIZED (
    SELECT nextval('listen_ids') AS id, w.*
      FROM jsonb_to_recordset(%(listens)s::jsonb)
           AS w (number integer, zone_id bigint, client_id bigint, stream_id bigint, door text, name text, start text,
                 segment uuid, sequence bigint, mask bigint, filter text, registrations bigint[], wish text)
), written AS (
    INSERT INTO listens (started_at, id, zone_id, client_id, stream_id, node, door, name, start, segment, sequence, mask, filter,
                         registrations, wish, told_segment, told_sequence, told, last_seen_at)
    SELECT now(), id, zone_id, client_id, stream_id, %(node)s, door, name, start, segment, sequence, mask, filter,
           registrations, wish, segment, sequence, 0, now()
      FROM given
)
SELECT now() AS at, id FROM given ORDER BY number

-- name: tell
-- How far listens were told, and which have ended, so many seconds ago.
UPDATE listens l
   SET told_segment = w.segment, told_sequence = w.sequence, told = w.told, last_seen_at = now(), end_reason = w.why,
       ended_at = now() - make_interval(secs => w.ended_s)
  FROM jsonb_to_recordset(%(listens)s::jsonb)
       AS w (at timestamptz, id bigint, segment uuid, sequence bigint, told bigint, why text, ended_s double precision)
 WHERE l.started_at = w.at AND l.id = w.id AND l.started_at BETWEEN %(oldest)s AND %(newest)s
