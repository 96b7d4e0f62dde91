-- Cycles that share tables: two keys to the own table, one of them to a pair that is no primary
-- key, and four tables each of which is reached from every other.
CREATE TABLE part (id int PRIMARY KEY, x int NOT NULL, y int NOT NULL, boss int REFERENCES part,
    twin_x int, twin_y int, lead int, UNIQUE (y, x));
CREATE TABLE line (id int PRIMARY KEY, part int NOT NULL REFERENCES part, next int);
CREATE TABLE plan (id int PRIMARY KEY, line int NOT NULL REFERENCES line, old int REFERENCES plan);
CREATE TABLE site (id int PRIMARY KEY, plan int REFERENCES plan, line int REFERENCES line DEFERRABLE);
CREATE TABLE alone (id int PRIMARY KEY);
INSERT INTO part SELECT i, i % 50, i / 50, nullif(i / 2, 0) FROM generate_series(1, 4000) i;
UPDATE part SET twin_x = (id + 1) % 50, twin_y = (id + 1) / 50 WHERE id < 4000 AND id % 3 = 0;
INSERT INTO line SELECT i, 1 + i % 4000 FROM generate_series(1, 3000) i;
INSERT INTO plan SELECT i, 1 + i % 3000, nullif(i - 1, 0) FROM generate_series(1, 300) i;
INSERT INTO site SELECT i, 1 + i % 300, 1 + (i * 11) % 3000 FROM generate_series(1, 2000) i;
INSERT INTO alone SELECT generate_series(1, 1000);
UPDATE part SET lead = 1 + id % 2000 WHERE id % 40 = 0;
UPDATE line SET next = 1 + id % 300 WHERE id % 60 = 0;
ALTER TABLE part ADD FOREIGN KEY (twin_x, twin_y) REFERENCES part (x, y) DEFERRABLE INITIALLY DEFERRED,
    ADD FOREIGN KEY (lead) REFERENCES site;
ALTER TABLE line ADD FOREIGN KEY (next) REFERENCES plan;
ANALYZE;
