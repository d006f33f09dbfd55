-- Changes of pattern groups. Locks are taken in the order of registrations/statements.py; rows of groups, ascending, before
-- those of patterns, ascending.

-- name: start_lease
-- The group consumes the events after the barrier of its creation.
INSERT INTO pattern_leases (group_id, streams, segments, sequences)
SELECT %(group)s, streams, segments, sequences FROM barriers WHERE id = %(barrier)s

-- name: switch
-- Suspends or resumes the patterns of a group that have not ended, at a barrier; returns those that it changed.
WITH ended AS MATERIALIZED (
    UPDATE pattern_versions v SET until_barrier = %(barrier)s
     WHERE group_id = %(group)s AND until_barrier IS NULL
       AND CASE WHEN EXISTS (SELECT FROM pattern_statuses s
                              WHERE s.pattern_id = v.pattern_id AND s.version_id = v.id AND s.state = 'suspended')
                THEN true ELSE suspended END <> %(suspended)s
       AND NOT EXISTS (SELECT FROM pattern_statuses s
                        WHERE s.pattern_id = v.pattern_id AND s.version_id = v.id AND s.state = 'ended')
    RETURNING pattern_id, number, language, text, once, recent, cost
)
INSERT INTO pattern_versions (pattern_id, group_id, number, language, text, once, recent, cost, suspended, from_barrier)
SELECT pattern_id, %(group)s, number + 1, language, text, once, recent, cost, %(suspended)s, %(barrier)s
  FROM ended ORDER BY pattern_id
RETURNING pattern_id

-- name: groups_of_client
-- The live groups of a client, locked.
SELECT id, name, streams, patterns FROM pattern_groups
 WHERE client_id = %s AND deleted_at IS NULL ORDER BY id FOR UPDATE

-- name: groups_of_stream
-- A client with live groups that read a stream or write to it, and some of these groups.
SELECT client_id, array_agg(id) AS ids
  FROM (SELECT client_id, id FROM pattern_groups
         WHERE (streams @> ARRAY[%(id)s]::bigint[] OR output_stream_id = %(id)s) AND deleted_at IS NULL
         LIMIT %(rows_max)s) AS g
 GROUP BY client_id
 LIMIT 1

-- name: lock_groups
-- Live groups by id, locked.
SELECT id, name, streams, patterns FROM pattern_groups
 WHERE id = ANY (%s::bigint[]) AND deleted_at IS NULL ORDER BY id FOR UPDATE

-- name: names_stream
SELECT EXISTS (SELECT FROM pattern_groups
                WHERE (streams @> ARRAY[%(id)s]::bigint[] OR output_stream_id = %(id)s) AND deleted_at IS NULL)

-- name: lock_leases
-- Waits for checkpoints under way, so that `end_groups` sees, and deletes, what they wrote.
SELECT FROM pattern_leases WHERE group_id = ANY (%(groups)s::bigint[]) ORDER BY group_id FOR UPDATE

-- name: end_groups
-- Ends groups with their patterns, at a barrier, and deletes what the forwarders stored of them: a forwarder that runs one of
-- them finds no lease and stops.
WITH versions AS (
    UPDATE pattern_versions SET until_barrier = %(barrier)s
     WHERE group_id = ANY (%(groups)s::bigint[]) AND until_barrier IS NULL
), patterns AS (
    UPDATE patterns SET deleted_at = now() WHERE group_id = ANY (%(groups)s::bigint[]) AND deleted_at IS NULL
), leases AS (
    DELETE FROM pattern_leases WHERE group_id = ANY (%(groups)s::bigint[])
), journal AS (
    DELETE FROM pattern_journal WHERE group_id = ANY (%(groups)s::bigint[])
), states AS (
    DELETE FROM pattern_states WHERE group_id = ANY (%(groups)s::bigint[])
), statuses AS (
    DELETE FROM pattern_statuses WHERE group_id = ANY (%(groups)s::bigint[])
)
UPDATE pattern_groups SET deleted_at = now(), patterns = 0 WHERE id = ANY (%(groups)s::bigint[])

-- name: client_name
SELECT name FROM clients WHERE id = %s
