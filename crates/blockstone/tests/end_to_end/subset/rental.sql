-- A chain of shops that rent films: shops and their staff reference each other, films reference
-- languages twice, payments are partitioned with keys on each partition, types and text search.
CREATE TYPE rating AS ENUM ('G', 'PG', 'R');
CREATE DOMAIN year AS int CHECK (value BETWEEN 1901 AND 2155);
CREATE TABLE country (id serial PRIMARY KEY, name text NOT NULL);
CREATE TABLE city (id serial PRIMARY KEY, name text, country int NOT NULL REFERENCES country);
CREATE TABLE address (id serial PRIMARY KEY, street text, city int NOT NULL REFERENCES city);
CREATE TABLE language (id serial PRIMARY KEY, name char(20) NOT NULL);
CREATE TABLE film (id serial PRIMARY KEY, title text NOT NULL, released year,
    language int NOT NULL REFERENCES language, original int REFERENCES language,
    rate numeric(4, 2) DEFAULT 4.99, rating rating DEFAULT 'G', features text[], words tsvector NOT NULL);
CREATE TRIGGER words BEFORE INSERT OR UPDATE ON film FOR EACH ROW
    EXECUTE FUNCTION tsvector_update_trigger(words, 'pg_catalog.english', title);
CREATE INDEX ON film USING gist (words);
CREATE TABLE actor (id serial PRIMARY KEY, name text NOT NULL);
CREATE TABLE film_actor (actor int REFERENCES actor, film int REFERENCES film, PRIMARY KEY (actor, film));
CREATE TABLE category (id serial PRIMARY KEY, name text NOT NULL);
CREATE TABLE film_category (film int REFERENCES film, category int REFERENCES category,
    PRIMARY KEY (film, category));
CREATE TABLE shop (id serial PRIMARY KEY, manager int NOT NULL UNIQUE, address int NOT NULL REFERENCES address);
CREATE TABLE staff (id serial PRIMARY KEY, name text, shop int NOT NULL, address int NOT NULL REFERENCES address,
    picture bytea);
CREATE TABLE customer (id serial PRIMARY KEY, shop int NOT NULL REFERENCES shop, name text, email text,
    address int NOT NULL REFERENCES address, active bool DEFAULT true, since date DEFAULT '2026-01-01');
CREATE TABLE inventory (id serial PRIMARY KEY, film int NOT NULL REFERENCES film, shop int NOT NULL REFERENCES shop);
CREATE TABLE rental (id serial PRIMARY KEY, at timestamptz NOT NULL, inventory int NOT NULL REFERENCES inventory,
    customer int NOT NULL REFERENCES customer, back timestamptz, staff int NOT NULL REFERENCES staff,
    UNIQUE (at, inventory, customer));
CREATE TABLE payment (id serial, customer int NOT NULL, staff int NOT NULL, rental int NOT NULL,
    amount numeric(5, 2) NOT NULL, paid timestamptz NOT NULL, PRIMARY KEY (paid, id)) PARTITION BY RANGE (paid);
CREATE TABLE payment_1 PARTITION OF payment FOR VALUES FROM ('2026-01-01') TO ('2026-02-01');
CREATE TABLE payment_2 PARTITION OF payment FOR VALUES FROM ('2026-02-01') TO ('2026-03-01');
CREATE TABLE payment_3 PARTITION OF payment FOR VALUES FROM ('2026-03-01') TO ('2026-04-01');
INSERT INTO country (name) SELECT 'country ' || i FROM generate_series(1, 100) i;
INSERT INTO city (name, country) SELECT 'city ' || i, 1 + i % 100 FROM generate_series(1, 600) i;
INSERT INTO address (street, city) SELECT i || ' street', 1 + i % 600 FROM generate_series(1, 700) i;
INSERT INTO language (name) SELECT 'language ' || i FROM generate_series(1, 6) i;
INSERT INTO film (title, released, language, original, rating, features)
    SELECT 'film about ' || i, 1950 + i % 70, 1 + i % 6, CASE WHEN i % 4 = 0 THEN 1 + i % 5 END,
    (ARRAY['G', 'PG', 'R'])[1 + i % 3]::rating, ARRAY['a "quoted" one', 'b\c'] FROM generate_series(1, 1000) i;
INSERT INTO actor (name) SELECT 'actor ' || i FROM generate_series(1, 200) i;
INSERT INTO film_actor SELECT 1 + (i * 7) % 200, 1 + i % 1000 FROM generate_series(1, 5000) i ON CONFLICT DO NOTHING;
INSERT INTO category (name) SELECT 'category ' || i FROM generate_series(1, 16) i;
INSERT INTO film_category SELECT i, 1 + i % 16 FROM generate_series(1, 1000) i;
INSERT INTO shop (manager, address) SELECT i, i FROM generate_series(1, 2) i;
INSERT INTO staff (name, shop, address, picture) SELECT 'clerk ' || i, 1 + i % 2, 10 + i, '\x00ff0a5c'
    FROM generate_series(1, 20) i;
ALTER TABLE shop ADD FOREIGN KEY (manager) REFERENCES staff;
ALTER TABLE staff ADD FOREIGN KEY (shop) REFERENCES shop;
INSERT INTO customer (shop, name, email, address) SELECT 1 + i % 2, 'name ' || i, i || '@example.org', 1 + i % 700
    FROM generate_series(1, 600) i;
INSERT INTO inventory (film, shop) SELECT 1 + i % 1000, 1 + i % 2 FROM generate_series(1, 4600) i;
INSERT INTO rental (at, inventory, customer, back, staff) SELECT timestamptz '2026-01-01' + i * interval '8 min',
    1 + i % 4600, 1 + i % 600, NULL, 1 + i % 20 FROM generate_series(1, 15000) i;
INSERT INTO payment (customer, staff, rental, amount, paid)
    SELECT customer, staff, id, 2.99, at FROM rental WHERE at < '2026-03-25';
ALTER TABLE payment_1 ADD FOREIGN KEY (customer) REFERENCES customer, ADD FOREIGN KEY (staff) REFERENCES staff,
    ADD FOREIGN KEY (rental) REFERENCES rental;
ALTER TABLE payment_2 ADD FOREIGN KEY (customer) REFERENCES customer, ADD FOREIGN KEY (staff) REFERENCES staff,
    ADD FOREIGN KEY (rental) REFERENCES rental;
ALTER TABLE payment_3 ADD FOREIGN KEY (customer) REFERENCES customer, ADD FOREIGN KEY (staff) REFERENCES staff,
    ADD FOREIGN KEY (rental) REFERENCES rental;
CREATE VIEW titles AS SELECT f.title, a.name FROM film f JOIN film_actor fa ON fa.film = f.id JOIN actor a ON a.id = fa.actor;
CREATE MATERIALIZED VIEW takings AS SELECT staff, sum(amount) FROM payment GROUP BY staff;
CREATE FUNCTION in_stock(film int) RETURNS bigint LANGUAGE sql AS 'SELECT count(*) FROM inventory i WHERE i.film = $1';
ANALYZE;
