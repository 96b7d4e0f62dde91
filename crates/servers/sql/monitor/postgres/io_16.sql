SELECT backend_type, object, context, reads AS read_ios, reads * op_bytes AS read_bytes,
    (read_time * 1e6)::bigint AS read_ns, writes AS write_ios, writes * op_bytes AS write_bytes,
    (write_time * 1e6)::bigint AS write_ns, extends AS extend_ios,
    extends * op_bytes AS extend_bytes, (extend_time * 1e6)::bigint AS extend_ns,
    writebacks AS writeback_ios, (writeback_time * 1e6)::bigint AS writeback_ns,
    fsyncs AS flushes, (fsync_time * 1e6)::bigint AS flush_ns, hits, evictions, reuses
FROM pg_stat_io
