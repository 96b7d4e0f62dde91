SELECT checkpoints_timed + checkpoints_req AS checkpoints,
    checkpoints_timed, checkpoints_req AS checkpoints_requested,
    (checkpoint_write_time * 1e6)::bigint AS checkpoint_write_ns,
    (checkpoint_sync_time * 1e6)::bigint AS checkpoint_sync_ns,
    buffers_checkpoint + buffers_clean + buffers_backend AS physical_writes,
    buffers_checkpoint AS checkpoint_written_blocks, buffers_clean AS writer_written_blocks,
    buffers_backend AS session_written_blocks
FROM pg_stat_bgwriter
