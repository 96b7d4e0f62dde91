SELECT c.num_timed + c.num_requested AS checkpoints,
    c.buffers_written + w.buffers_clean + (SELECT coalesce(sum(writes), 0)::bigint FROM pg_stat_io
        WHERE object = 'relation' AND backend_type NOT IN ('checkpointer', 'background writer')
    ) AS physical_writes
FROM pg_stat_checkpointer c, pg_stat_bgwriter w
