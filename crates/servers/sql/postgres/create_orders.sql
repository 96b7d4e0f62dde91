CREATE TABLE {table} (number bigint PRIMARY KEY, content bytea NOT NULL)
