-- What belongs to a database rather than to its rows.
CREATE EXTENSION citext;
CREATE EXTENSION postgres_fdw;
CREATE TABLE settings (id int PRIMARY KEY);
INSERT INTO settings SELECT generate_series(1, 9);
ALTER EXTENSION citext ADD TABLE settings;
UPDATE pg_extension SET extconfig = ARRAY['settings'::regclass::oid], extcondition = ARRAY[''] WHERE extname = 'citext';
CREATE SERVER elsewhere FOREIGN DATA WRAPPER postgres_fdw OPTIONS (host 'nowhere.invalid');
CREATE USER MAPPING FOR admin SERVER elsewhere OPTIONS (user 'u', password 'secret;
CREATE TABLE no ();');
CREATE FOREIGN TABLE far (id int) SERVER elsewhere;
CREATE TABLE tree (id int PRIMARY KEY, before int REFERENCES tree, tenant int NOT NULL);
INSERT INTO tree SELECT i, nullif(i - 1, 0), 1 FROM generate_series(1, 2000) i;
CREATE TABLE leaf (id int PRIMARY KEY, tree int NOT NULL REFERENCES tree);
INSERT INTO leaf SELECT i, 2000 - i FROM generate_series(1, 200) i;
CREATE MATERIALIZED VIEW shadow AS SELECT id FROM leaf;
CREATE FUNCTION refuse() RETURNS event_trigger LANGUAGE plpgsql AS 'BEGIN RAISE EXCEPTION ''no''; END';
CREATE EVENT TRIGGER guard ON ddl_command_end WHEN TAG IN ('CREATE TABLE', 'ALTER FUNCTION', 'ALTER ROUTINE')
    EXECUTE FUNCTION refuse();
ALTER EVENT TRIGGER guard DISABLE;
COMMENT ON EVENT TRIGGER guard IS 'it''s
a guard;';
CREATE FUNCTION mine() RETURNS int LANGUAGE sql SECURITY DEFINER AS 'SELECT 1';
ALTER EVENT TRIGGER guard ENABLE;
