SELECT blks_hit + blks_read AS logical_reads, blks_read AS physical_reads,
    tup_updated AS block_changes,
    (pg_current_wal_insert_lsn() - '0/0')::bigint AS redo_bytes,
    (SELECT coalesce(sum(autovacuum_count + autoanalyze_count), 0)::bigint
        FROM pg_stat_user_tables WHERE schemaname = 'blockstone') AS maintenance_runs
FROM pg_stat_database WHERE datname = current_database()
