-- 200 tables, each of which references the one before it.
CREATE TABLE link_0 (id int PRIMARY KEY);
INSERT INTO link_0 SELECT generate_series(1, 400);
DO $$ BEGIN FOR at IN 1..199 LOOP
    EXECUTE format('CREATE TABLE link_%s (id int PRIMARY KEY, before int NOT NULL REFERENCES link_%s)', at, at - 1);
    EXECUTE format('INSERT INTO link_%s SELECT i, 1 + (i * 17) %% 400 FROM generate_series(1, 400) i', at);
END LOOP; END $$;
ANALYZE;
