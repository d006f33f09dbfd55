-- True once a time that lay at most `longest_s` ahead is over. One that lies further ahead was set before the clock stepped
-- back, and is not believed.
CREATE OR REPLACE FUNCTION is_over(until timestamptz, longest_s double precision) RETURNS boolean LANGUAGE sql AS $$
    SELECT until <= clock_timestamp() OR until > clock_timestamp() + make_interval(secs => longest_s + 1)
$$;
