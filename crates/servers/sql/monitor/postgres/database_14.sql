SELECT sum(xact_commit)::bigint AS commits, sum(xact_rollback)::bigint AS rollbacks,
    sum(blks_hit + blks_read)::bigint AS logical_reads, sum(blks_read)::bigint AS physical_reads,
    sum(tup_returned)::bigint AS rows_read, sum(tup_fetched)::bigint AS rows_fetched,
    sum(tup_inserted)::bigint AS rows_inserted, sum(tup_updated)::bigint AS rows_updated,
    sum(tup_deleted)::bigint AS rows_deleted, sum(temp_files)::bigint AS temp_files,
    sum(temp_bytes)::bigint AS temp_bytes, sum(deadlocks)::bigint AS deadlocks,
    (sum(blk_read_time) * 1e6)::bigint AS read_ns, (sum(blk_write_time) * 1e6)::bigint AS write_ns,
    sum(sessions)::bigint AS logons, (sum(active_time) * 1e6)::bigint AS db_time_ns,
    (sum(idle_in_transaction_time) * 1e6)::bigint AS idle_in_transaction_ns,
    pg_size_bytes(current_setting('shared_buffers')) AS buffer_cache_bytes
FROM pg_stat_database
