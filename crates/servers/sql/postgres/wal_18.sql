SELECT w.wal_records AS redo_records, w.wal_fpi AS full_page_images,
    w.wal_buffers_full AS redo_buffer_full, i.redo_writes, i.redo_written_bytes, i.redo_flushes,
    i.flushes, (i.redo_write_ms * 1e6)::bigint AS redo_write_ns,
    (i.redo_flush_ms * 1e6)::bigint AS redo_flush_ns
FROM pg_stat_wal w, (
    SELECT coalesce(sum(writes) FILTER (WHERE object = 'wal'), 0)::bigint AS redo_writes,
        coalesce(sum(write_bytes) FILTER (WHERE object = 'wal'), 0)::bigint AS redo_written_bytes,
        coalesce(sum(fsyncs) FILTER (WHERE object = 'wal'), 0)::bigint AS redo_flushes,
        coalesce(sum(fsyncs), 0)::bigint AS flushes,
        coalesce(sum(write_time) FILTER (WHERE object = 'wal'), 0) AS redo_write_ms,
        coalesce(sum(fsync_time) FILTER (WHERE object = 'wal'), 0) AS redo_flush_ms
    FROM pg_stat_io
) i
