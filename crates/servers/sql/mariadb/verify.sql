SELECT count(k), count(*) - count(k), coalesce(min(octet_length(ballast)), {ballast}),
    (SELECT data_length FROM information_schema.tables
        WHERE table_schema = 'blockstone' AND table_name = '{name}')
FROM {table}
