CREATE TABLE {table} (
    place bigint unsigned NOT NULL PRIMARY KEY, k bigint unsigned, {columns},
    ballast varbinary({ballast}) NOT NULL
) ENGINE = InnoDB ROW_FORMAT = DYNAMIC STATS_AUTO_RECALC = 0
