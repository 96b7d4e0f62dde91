CREATE TABLE {table} (k bigint NOT NULL, {columns}) WITH (fillfactor = 10)
