SELECT s.pid, io.*, wal.wal_records AS redo_records, wal.wal_bytes::bigint AS redo_bytes,
    wal.wal_fpi AS full_page_images
FROM unnest($1::int[]) AS s (pid) CROSS JOIN LATERAL (
    SELECT sum(reads)::bigint AS read_ios, sum(read_bytes)::bigint AS read_bytes,
        (sum(read_time) * 1e6)::bigint AS read_ns,
        sum(coalesce(writes, 0) + coalesce(extends, 0))::bigint AS write_ios,
        sum(coalesce(write_bytes, 0) + coalesce(extend_bytes, 0))::bigint AS write_bytes,
        (sum(coalesce(write_time, 0) + coalesce(extend_time, 0)) * 1e6)::bigint AS write_ns,
        sum(hits)::bigint AS hits
    FROM pg_stat_get_backend_io(s.pid)
) AS io LEFT JOIN LATERAL pg_stat_get_backend_wal(s.pid) AS wal ON true
