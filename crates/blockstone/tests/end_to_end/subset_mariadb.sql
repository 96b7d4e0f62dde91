-- Every kind of key: two tables that reference each other, keys to the own table, composite ones
-- with NULLs, unique columns that are no primary key, text that is equal in another case, tables
-- without a primary key; and types whose values are no plain text.
SET NAMES utf8mb4, time_zone = '+00:00', sql_mode = '';
CREATE TABLE country (code varchar(8) CHARACTER SET latin1 PRIMARY KEY, name text NOT NULL);
INSERT INTO country SELECT concat('C', seq), concat('country ', seq, ' é') FROM seq_1_to_20;
CREATE SEQUENCE ticket START WITH 70;
CREATE TABLE store (id int unsigned PRIMARY KEY, manager int NOT NULL UNIQUE);
CREATE TABLE staff (id int PRIMARY KEY, store int unsigned NOT NULL, boss int, mentor int,
    CONSTRAINT staff_boss FOREIGN KEY (boss) REFERENCES staff (id),
    CONSTRAINT staff_mentor FOREIGN KEY (mentor) REFERENCES staff (id) ON DELETE SET NULL);
INSERT INTO store SELECT seq, seq FROM seq_1_to_40;
INSERT INTO staff SELECT seq, 1 + seq % 40, nullif(seq DIV 2, 0), nullif(seq DIV 3, 0) FROM seq_1_to_400;
ALTER TABLE store ADD CONSTRAINT store_manager FOREIGN KEY (manager) REFERENCES staff (id);
ALTER TABLE staff ADD CONSTRAINT staff_store FOREIGN KEY (store) REFERENCES store (id);
CREATE TABLE customer (id bigint AUTO_INCREMENT PRIMARY KEY, region decimal(6, 2) NOT NULL, number int NOT NULL,
    country varchar(8) CHARACTER SET latin1, mood enum('calm', 'busy', 'it''s'), tags set('a', 'b'), note text,
    twice int AS (number * 2) STORED, thrice int AS (number * 3) VIRTUAL, flags bit(64), picture varbinary(40),
    born date, seen datetime(6), at timestamp NULL, ratio float, exact double, shape point, extra json, tiny year,
    letter char(5), serial bigint unsigned, UNIQUE (region, number), CHECK (number > 0),
    CONSTRAINT customer_country FOREIGN KEY (country) REFERENCES country (code));
INSERT INTO customer (region, number, country, mood, tags, note, flags, picture, born, seen, at, ratio, exact, shape,
    extra, tiny, letter, serial)
    SELECT seq % 7, seq, if(seq % 2, concat('c', 1 + seq % 20), concat('C', 1 + seq % 20, ' ')), 'it''s', 'a,b',
    concat('tab\there\nbackslash \\ \\N quote '' " 😀 zero ', char(0), '\r', seq),
    18446744073709551615 - seq, unhex(concat('00FF5C0A090D1A', hex(seq))), if(seq % 3, '0000-00-00', '2024-02-29'),
    '2025-06-01 12:34:56.654321', from_unixtime(1750000000 + seq), seq / 7, seq / 7, point(seq, -seq),
    concat('{"n": ', seq, '}'), 1970 + seq % 100, concat('x', seq % 9), 18446744073709551615 - seq
    FROM seq_1_to_3000;
UPDATE customer SET note = NULL, picture = NULL, flags = NULL, shape = NULL WHERE id % 5 = 0;
UPDATE customer SET note = '', picture = '' WHERE id % 7 = 0;
CREATE TABLE orders (id binary(16) PRIMARY KEY, customer bigint NOT NULL, placed date NOT NULL,
    region decimal(6, 2), number int,
    CONSTRAINT orders_customer FOREIGN KEY (customer) REFERENCES customer (id),
    CONSTRAINT orders_region FOREIGN KEY (region, number) REFERENCES customer (region, number));
INSERT INTO orders SELECT unhex(md5(seq)), 1 + seq % 3000, '2025-01-01' + INTERVAL seq % 700 DAY,
    if(seq % 3, (1 + seq % 2999) % 7, NULL), if(seq % 5, 1 + seq % 2999, NULL) FROM seq_1_to_5000;
CREATE TABLE line (order_id binary(16) NOT NULL, place int NOT NULL, at date NOT NULL,
    PRIMARY KEY (order_id, place, at), CONSTRAINT line_order FOREIGN KEY (order_id) REFERENCES orders (id) ON DELETE CASCADE);
INSERT INTO line SELECT id, seq, placed FROM orders, seq_1_to_2;
CREATE TABLE gift (line_order binary(16), line_place int, line_at date, mood enum('calm', 'busy'),
    CONSTRAINT gift_line FOREIGN KEY (line_order, line_place, line_at) REFERENCES line (order_id, place, at));
INSERT INTO gift SELECT order_id, place, at, 'busy' FROM line WHERE place = 2;
CREATE TABLE `odd ``names``` (`LINES {child}` varchar(200), `a,b` int);
INSERT INTO `odd ``names``` SELECT concat('event ', seq DIV 2), 1 FROM seq_1_to_2000;
CREATE TABLE part (code varchar(20) PRIMARY KEY, parent varchar(20),
    CONSTRAINT part_parent FOREIGN KEY (parent) REFERENCES part (code)) COLLATE utf8mb4_unicode_ci;
INSERT INTO part SELECT concat('ä', seq), if(seq > 1, concat(if(seq % 2, 'Ä', 'a'), seq DIV 2), NULL) FROM seq_1_to_300;
CREATE TABLE measure (id int, at date, PRIMARY KEY (id, at)) PARTITION BY RANGE (to_days(at))
    (PARTITION a VALUES LESS THAN (to_days('2025-06-01')), PARTITION b VALUES LESS THAN MAXVALUE);
INSERT INTO measure SELECT seq, '2025-01-01' + INTERVAL seq % 300 DAY FROM seq_1_to_1500;
CREATE TABLE note (id int PRIMARY KEY DEFAULT nextval(ticket), text varchar(20)) ENGINE = Aria;
INSERT INTO note SELECT seq, 'a' FROM seq_0_to_500 WHERE seq <> 70;
CREATE TABLE visit (id int PRIMARY KEY, customer bigint);
INSERT INTO visit SELECT seq, 1 + seq % 3000 FROM seq_1_to_2000;
CREATE FUNCTION twice(n int) RETURNS int DETERMINISTIC RETURN n * 2;
CREATE VIEW z_view AS SELECT id, text FROM note;
CREATE OR REPLACE VIEW a_view AS SELECT v.*, twice(1) AS two FROM z_view v;
DELIMITER //
CREATE TRIGGER refuse BEFORE INSERT ON visit FOR EACH ROW
BEGIN
    -- It's refused; always.
    SIGNAL SQLSTATE '45000' SET MESSAGE_TEXT = 'no';
END//
DELIMITER ;
