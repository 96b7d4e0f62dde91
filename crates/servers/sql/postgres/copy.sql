-- Full pages, as PostgreSQL makes them by itself, and no values moved out of line.
CREATE TABLE {copy} WITH (toast_tuple_target = 8160) AS SELECT * FROM {table}
