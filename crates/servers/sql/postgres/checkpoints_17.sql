SELECT c.num_timed + c.num_requested AS checkpoints,
    c.num_timed AS checkpoints_timed, c.num_requested AS checkpoints_requested,
    (c.write_time * 1e6)::bigint AS checkpoint_write_ns,
    (c.sync_time * 1e6)::bigint AS checkpoint_sync_ns,
    c.buffers_written + w.buffers_clean + i.writes AS physical_writes,
    c.buffers_written AS checkpoint_written_blocks, w.buffers_clean AS writer_written_blocks,
    i.writes AS session_written_blocks
FROM pg_stat_checkpointer c, pg_stat_bgwriter w, (
    SELECT coalesce(sum(writes), 0)::bigint AS writes FROM pg_stat_io
    WHERE object = 'relation' AND backend_type NOT IN ('checkpointer', 'background writer')
) i
