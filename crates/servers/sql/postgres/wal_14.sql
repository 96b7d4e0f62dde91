SELECT wal_records AS redo_records, wal_fpi AS full_page_images,
    wal_buffers_full AS redo_buffer_full, wal_write AS redo_writes,
    wal_sync AS redo_flushes, wal_sync AS flushes,
    (wal_write_time * 1e6)::bigint AS redo_write_ns, (wal_sync_time * 1e6)::bigint AS redo_flush_ns
FROM pg_stat_wal
