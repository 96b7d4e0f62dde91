SELECT w.wal_records AS redo_records, w.wal_fpi AS full_page_images,
    w.wal_buffers_full AS redo_buffer_full, w.wal_write AS redo_writes,
    w.wal_sync AS redo_flushes, w.wal_sync + i.flushes AS flushes,
    (w.wal_write_time * 1e6)::bigint AS redo_write_ns,
    (w.wal_sync_time * 1e6)::bigint AS redo_flush_ns
FROM pg_stat_wal w, (SELECT coalesce(sum(fsyncs), 0)::bigint AS flushes FROM pg_stat_io) i
