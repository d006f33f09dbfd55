-- Whether a deadline that was set at most `longest_s` ahead has passed. One that is further ahead was set before the clock stepped
-- back, and counts as passed.
CREATE OR REPLACE FUNCTION is_over(until timestamptz, longest_s double precision) RETURNS boolean LANGUAGE sql AS $$
    SELECT until <= clock_timestamp() OR until > clock_timestamp() + make_interval(secs => longest_s + 1)
$$;
