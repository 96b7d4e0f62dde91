-- One small table that all others reference, with a key of each of several types.
CREATE TABLE currency (code char(3) PRIMARY KEY, number int UNIQUE, stamp timestamptz UNIQUE, net inet UNIQUE,
    share double precision UNIQUE, amount numeric UNIQUE, raw bytea UNIQUE, span int4range UNIQUE);
INSERT INTO currency SELECT 'C' || lpad(i::text, 2, '0'), i, timestamptz '2026-01-01 00:00:00.000001' + i * interval '1 day',
    ('10.0.0.' || i)::inet, i / 7.0, i / 8.0, ('\x' || lpad(to_hex(i), 4, '0'))::bytea, int4range(i, i + 5)
    FROM generate_series(1, 50) i;
DO $$ BEGIN FOR at IN 1..30 LOOP
    EXECUTE format('CREATE TABLE sale_%s (id bigint PRIMARY KEY, code char(3) REFERENCES currency, number smallint
        REFERENCES currency (number), stamp timestamptz REFERENCES currency (stamp), net inet REFERENCES currency (net),
        share real, amount numeric(9, 4) REFERENCES currency (amount), raw bytea REFERENCES currency (raw),
        span int4range REFERENCES currency (span))', at);
    EXECUTE format('INSERT INTO sale_%s SELECT i, code, c.number, stamp, net, share, amount, raw, span
        FROM generate_series(1, 500) i JOIN currency c ON c.number = 1 + (i * 13 + %s) %% 50', at, at);
END LOOP; END $$;
ANALYZE;
