-- True when a delivery may be attempted (is_over): the first attempt has no pause, and a retry none beyond its backoff.
CREATE OR REPLACE FUNCTION is_due(
    next_attempt_at timestamptz, claim uuid, attempts integer, retry_after_s integer,
    pause_s_base double precision, pause_s_max double precision
) RETURNS boolean LANGUAGE sql AS $$
    SELECT next_attempt_at <= now() OR claim IS NULL AND is_over(
        next_attempt_at,
        CASE WHEN attempts = 0 THEN 0
             ELSE least(pause_s_max, greatest(pause_s_base * power(2, least(attempts - 1, 30)), retry_after_s)) END)
$$;
