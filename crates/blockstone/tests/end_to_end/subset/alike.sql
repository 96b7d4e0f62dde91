-- Keys whose values are equal though they look different, and types of several parts.
CREATE COLLATION folded (provider = icu, locale = 'und-u-ks-level2', deterministic = false);
CREATE TYPE pair AS (a numeric, b text);
CREATE DOMAIN short AS interval CHECK (value > interval '0');
CREATE DOMAIN whole_pair AS pair CHECK ((value).a IS NOT NULL);
CREATE TYPE mood AS ENUM ('calm', 'busy');
CREATE TABLE span (length short PRIMARY KEY);
INSERT INTO span SELECT i * interval '24 hours' FROM generate_series(1, 400) i;
CREATE TABLE word (word text COLLATE folded PRIMARY KEY, plain text COLLATE "C" NOT NULL UNIQUE, raw json);
INSERT INTO word SELECT 'Word' || i, 'plain ' || i, '{"a" : 1, "a": 2}' FROM generate_series(1, 400) i;
CREATE TABLE place (code char(8) PRIMARY KEY, number bit(12) NOT NULL UNIQUE);
INSERT INTO place SELECT 'P' || i, i::bit(12) FROM generate_series(1, 400) i;
CREATE TABLE point_of (id whole_pair PRIMARY KEY, list numeric[] NOT NULL UNIQUE, span numrange NOT NULL UNIQUE,
    doc jsonb NOT NULL UNIQUE, ratio float8 NOT NULL UNIQUE, moods mood[] NOT NULL UNIQUE, net inet NOT NULL UNIQUE);
INSERT INTO point_of SELECT ROW(i + 0.0, 'x' || i)::pair, ARRAY[i + 0.0, 1], numrange(i, i + 1.0), jsonb_build_object('a', i + 0.0),
    CASE WHEN i = 200 THEN float8 '-0' ELSE i / 8.0 END, array_fill('calm'::mood, ARRAY[i]), inet '10.0.0.0' + i
    FROM generate_series(1, 400) i;
CREATE TABLE visit (id int PRIMARY KEY, length interval REFERENCES span, word text COLLATE folded REFERENCES word,
    code char(9) REFERENCES place, number bit varying REFERENCES place (number), point whole_pair REFERENCES point_of,
    list numeric[] REFERENCES point_of (list), span numrange REFERENCES point_of (span), doc jsonb REFERENCES point_of (doc),
    ratio float8 REFERENCES point_of (ratio), moods mood[] REFERENCES point_of (moods), net cidr REFERENCES point_of (net));
INSERT INTO visit SELECT i, (1 + i % 400) * interval '1 day', 'WORD' || 1 + i % 400, 'P' || 1 + i % 400 || '  ',
    (1 + i % 400)::bit(12), ROW((1 + i % 400) + 0.000, 'x' || 1 + i % 400)::pair, ARRAY[(1 + i % 400) + 0.000, 1.00],
    numrange((1 + i % 400) + 0.00, (2 + i % 400)), jsonb_build_object('a', (1 + i % 400) + 0.000),
    CASE WHEN 1 + i % 400 = 200 THEN float8 '0' ELSE (1 + i % 400) / 8.0 END,
    array_fill('calm'::mood, ARRAY[1 + i % 400]), cidr (host(inet '10.0.0.1' + i % 400)) FROM generate_series(1, 2000) i;
CREATE TABLE empty_parts (id int, at date, PRIMARY KEY (id, at)) PARTITION BY RANGE (at);
CREATE TABLE empty_of (id int, at date, FOREIGN KEY (id, at) REFERENCES empty_parts);
CREATE TABLE empty_below PARTITION OF empty_parts FOR VALUES FROM ('2026-01-01') TO ('2027-01-01') PARTITION BY LIST (id);
