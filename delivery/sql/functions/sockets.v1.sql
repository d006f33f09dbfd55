-- Sets how many sockets of a client a process has, one more than before, unless that exceeds the quota of the client or its zone:
-- then the count stays, and `scope` and `quota` say which. `is_new`: the process was unknown, so none of its counts are there.
--
-- It is one function, so that the lock is held only inside the server: a process that is stopped never holds it. The sockets of a
-- zone are taken one after the other, and each statement sees what the others have committed.
CREATE OR REPLACE FUNCTION take_socket(
    in_zone bigint, in_client bigint, in_process uuid, in_sockets integer, lost_s double precision
) RETURNS TABLE (scope text, quota bigint, is_new boolean) LANGUAGE plpgsql AS $$
BEGIN
    PERFORM pg_advisory_xact_lock(hashtextextended('eventhub sockets', in_zone));
    INSERT INTO web_processes AS p (id, last_seen_at) VALUES (in_process, clock_timestamp())
        ON CONFLICT (id) DO UPDATE SET last_seen_at = excluded.last_seen_at
    RETURNING p.xmax = 0 INTO is_new;
    INSERT INTO socket_counts (zone_id, client_id, process_id, sockets)
    VALUES (in_zone, in_client, in_process, in_sockets)
        ON CONFLICT (zone_id, client_id, process_id) DO UPDATE SET sockets = excluded.sockets;
    SELECT CASE WHEN q.client_id IS NULL THEN 'zone' ELSE 'client' END, q.value INTO scope, quota
      FROM quotas q
     WHERE q.zone_id = in_zone AND q.kind = 'sockets' AND (q.client_id = in_client OR q.client_id IS NULL)
       AND q.value < (SELECT sum(c.sockets)
                        FROM socket_counts c JOIN web_processes p ON p.id = c.process_id
                       WHERE c.zone_id = in_zone AND (q.client_id IS NULL OR c.client_id = in_client)
                         AND abs(extract(epoch FROM clock_timestamp() - p.last_seen_at)) < lost_s)
     ORDER BY q.client_id NULLS LAST
     LIMIT 1;
    IF FOUND THEN
        UPDATE socket_counts SET sockets = in_sockets - 1
         WHERE zone_id = in_zone AND client_id = in_client AND process_id = in_process;
        DELETE FROM socket_counts
         WHERE zone_id = in_zone AND client_id = in_client AND process_id = in_process AND sockets = 0;
    END IF;
    RETURN NEXT;
END
$$;
