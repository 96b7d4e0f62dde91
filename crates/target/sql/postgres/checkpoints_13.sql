SELECT checkpoints_timed + checkpoints_req AS checkpoints,
    buffers_checkpoint + buffers_clean + buffers_backend AS physical_writes,
    buffers_checkpoint AS checkpointer, buffers_clean AS writer, buffers_backend AS backend
FROM pg_stat_bgwriter
