-- What pgio's own functions do for a select, in our words but for the query.
CREATE FUNCTION draw(bigint, bigint) RETURNS bigint STRICT LANGUAGE plpgsql AS $$
BEGIN
    RETURN trunc(random() * ($2 - $1) + $1);
END $$;
CREATE FUNCTION selects(named varchar, seconds bigint, scale bigint, work_unit int)
RETURNS bigint LANGUAGE plpgsql AS $$
DECLARE
    ends timestamp := clock_timestamp() + (seconds || ' seconds')::interval;
    started timestamp;
    key bigint;
    total bigint;
    took numeric;
    longest numeric := 0;
    done bigint := 0;
BEGIN
    WHILE clock_timestamp()::timestamp < ends LOOP
        SELECT draw(1, scale - work_unit) INTO key;
        started := clock_timestamp();
        EXECUTE 'SELECT sum(scratch) FROM ' || named || ' WHERE mykey BETWEEN ' || key
            || ' AND ' || key + work_unit INTO total;
        took := extract(epoch FROM clock_timestamp() - started)::numeric(12, 8);
        IF took > longest THEN
            longest := took;
        END IF;
        done := done + 1;
    END LOOP;
    RETURN done;
END $$;
