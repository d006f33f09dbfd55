-- True when a delivery may be attempted (is_over): no retry is due later than its pause allows.
CREATE OR REPLACE FUNCTION is_due(next_attempt_at timestamptz, claim uuid, pause_s double precision) RETURNS boolean LANGUAGE sql AS $$
    SELECT next_attempt_at <= now() OR claim IS NULL AND is_over(next_attempt_at, COALESCE(pause_s, 0))
$$;
