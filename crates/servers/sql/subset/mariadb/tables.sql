-- Tables of the database, not views and sequences.
SELECT TABLE_NAME, coalesce(ENGINE, ''), TABLE_ROWS, DATA_LENGTH,
    coalesce(CREATE_OPTIONS, '') LIKE '%partitioned%', TABLE_TYPE = 'SYSTEM VERSIONED'
FROM information_schema.TABLES
WHERE TABLE_SCHEMA = DATABASE() AND TABLE_TYPE IN ('BASE TABLE', 'SYSTEM VERSIONED')
ORDER BY TABLE_NAME
