CREATE TABLE {table} (
    number bigint unsigned NOT NULL PRIMARY KEY, content varbinary(1024) NOT NULL
) ENGINE = InnoDB ROW_FORMAT = DYNAMIC
