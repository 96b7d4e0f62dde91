SELECT backend_type, sum(reads)::bigint, sum(reads * op_bytes)::bigint, sum(read_time),
    sum(coalesce(writes, 0) + coalesce(extends, 0))::bigint,
    sum((coalesce(writes, 0) + coalesce(extends, 0)) * op_bytes)::bigint,
    sum(coalesce(write_time, 0) + coalesce(extend_time, 0))
FROM pg_stat_io GROUP BY backend_type
