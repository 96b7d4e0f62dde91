SELECT w.wal_fpi AS full_page_images, i.redo_writes, i.redo_written_bytes, i.flushes
FROM pg_stat_wal w, (
    SELECT coalesce(sum(writes) FILTER (WHERE object = 'wal'), 0)::bigint AS redo_writes,
        coalesce(sum(write_bytes) FILTER (WHERE object = 'wal'), 0)::bigint AS redo_written_bytes,
        coalesce(sum(fsyncs), 0)::bigint AS flushes
    FROM pg_stat_io
) i
