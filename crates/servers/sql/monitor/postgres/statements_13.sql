SELECT queryid, sum(calls)::bigint AS calls, (sum(total_exec_time) * 1e6)::bigint AS total_ns,
    sum(rows)::bigint AS rows, sum(shared_blks_hit + local_blks_hit)::bigint AS blocks_hit,
    sum(shared_blks_read + local_blks_read)::bigint AS blocks_read,
    sum(shared_blks_dirtied + local_blks_dirtied)::bigint AS blocks_dirtied,
    sum(shared_blks_written + local_blks_written)::bigint AS blocks_written,
    sum(temp_blks_written)::bigint AS temp_blocks_written,
    (sum(blk_read_time) * 1e6)::bigint AS read_ns,
    (sum(blk_write_time) * 1e6)::bigint AS write_ns,
    sum(wal_bytes)::bigint AS redo_bytes
FROM {schema}.pg_stat_statements(false) WHERE queryid <> ALL ($1::bigint[])
GROUP BY queryid ORDER BY queryid = ANY ($2::bigint[]) DESC, total_ns DESC LIMIT 200
