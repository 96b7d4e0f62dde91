-- Every kind of key: two tables that reference each other, two keys to the own table, composite
-- ones with NULLs under both kinds of MATCH, unique columns that are no primary key, partitions,
-- inheritance, deferrable keys, other types on both sides, tables without a primary key.
CREATE SCHEMA "Odd ""names""";
CREATE TYPE mood AS ENUM ('calm', 'busy');
CREATE DOMAIN code AS varchar(8) CHECK (value <> '');
CREATE TABLE country (code code PRIMARY KEY, name text NOT NULL);
INSERT INTO country SELECT 'C' || i, 'country ' || i FROM generate_series(1, 20) i;
CREATE TABLE store (id int PRIMARY KEY, manager int NOT NULL UNIQUE);
CREATE TABLE staff (id int PRIMARY KEY, store bigint NOT NULL, boss int REFERENCES staff,
    mentor int REFERENCES staff DEFERRABLE INITIALLY DEFERRED);
INSERT INTO store SELECT i, i FROM generate_series(1, 40) i;
INSERT INTO staff SELECT i, 1 + i % 40, nullif(i / 2, 0), nullif(i / 3, 0) FROM generate_series(1, 400) i;
ALTER TABLE store ADD FOREIGN KEY (manager) REFERENCES staff;
ALTER TABLE staff ALTER COLUMN store TYPE bigint, ADD FOREIGN KEY (store) REFERENCES store;
CREATE TABLE customer (id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, region numeric(6, 2) NOT NULL,
    number int NOT NULL, country varchar(8) REFERENCES country, mood mood, note text,
    twice int GENERATED ALWAYS AS (number * 2) STORED, UNIQUE (region, number));
INSERT INTO customer (region, number, country, mood, note)
    SELECT i % 7, i, 'C' || 1 + i % 20, 'calm', E'tab\there\nbackslash \\ ' || i FROM generate_series(1, 3000) i;
CREATE TABLE orders (id uuid PRIMARY KEY, customer bigint NOT NULL REFERENCES customer, placed date NOT NULL,
    region numeric, number int, full_region numeric, full_number int,
    FOREIGN KEY (region, number) REFERENCES customer (region, number),
    FOREIGN KEY (full_region, full_number) REFERENCES customer (region, number) MATCH FULL);
INSERT INTO orders SELECT md5(i::text)::uuid, 1 + i % 3000, date '2025-01-01' + i % 700,
    CASE WHEN i % 3 > 0 THEN (1 + i % 2999) % 7 END, CASE WHEN i % 5 > 0 THEN 1 + i % 2999 END,
    CASE WHEN i % 2 > 0 THEN (1 + i % 2000) % 7 + 0.00 END, CASE WHEN i % 2 > 0 THEN 1 + i % 2000 END
    FROM generate_series(1, 5000) i;
CREATE TABLE line (order_id uuid NOT NULL REFERENCES orders, place int NOT NULL, at date NOT NULL,
    PRIMARY KEY (order_id, place, at)) PARTITION BY RANGE (at);
CREATE TABLE line_2025 PARTITION OF line FOR VALUES FROM ('2025-01-01') TO ('2026-01-01');
CREATE TABLE line_2026 PARTITION OF line FOR VALUES FROM ('2026-01-01') TO ('2027-01-01')
    PARTITION BY HASH (order_id);
CREATE TABLE line_2026_a PARTITION OF line_2026 FOR VALUES WITH (MODULUS 2, REMAINDER 0);
CREATE TABLE line_2026_b PARTITION OF line_2026 FOR VALUES WITH (MODULUS 2, REMAINDER 1);
INSERT INTO line SELECT id, place, placed FROM orders, generate_series(1, 2) place;
CREATE TABLE gift (line_order uuid, line_place int, line_at date, mood mood,
    FOREIGN KEY (line_order, line_place, line_at) REFERENCES line ON DELETE CASCADE);
INSERT INTO gift SELECT order_id, place, at, 'busy' FROM line WHERE place = 2;
CREATE TABLE "Odd ""names"""."COPY {child} FROM STDIN" ("Text" text, kind mood);
INSERT INTO "Odd ""names"""."COPY {child} FROM STDIN" SELECT 'event ' || i, 'busy' FROM generate_series(1, 2000) i;
CREATE TABLE animal (id int PRIMARY KEY, country code);
CREATE TABLE dog (tricks int REFERENCES customer (id), PRIMARY KEY (id)) INHERITS (animal);
ALTER TABLE animal ADD FOREIGN KEY (country) REFERENCES country;
INSERT INTO animal SELECT i, 'C1' FROM generate_series(1, 500) i;
INSERT INTO dog SELECT i, NULL, i FROM generate_series(501, 1500) i;
CREATE TABLE visit (id int PRIMARY KEY, customer bigint);
INSERT INTO visit SELECT i, 1 + i % 3000 FROM generate_series(1, 2000) i;
CREATE SEQUENCE ticket START 70;
SELECT nextval('ticket');
CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RAISE EXCEPTION ''no''; END';
CREATE TRIGGER refuse BEFORE INSERT ON visit FOR EACH ROW EXECUTE FUNCTION refuse();
CREATE VIEW busy AS SELECT * FROM gift WHERE mood = 'busy';
ANALYZE;
