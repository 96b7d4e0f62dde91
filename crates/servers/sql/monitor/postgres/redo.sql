SELECT (redo.lsn - '0/0')::bigint AS redo_bytes,
    greatest(redo.lsn - checkpoint.redo_lsn, 0)::bigint AS checkpoint_age_bytes,
    current_setting('track_counts') = 'on' AS counts,
    current_setting('track_io_timing') = 'on' AS io_times,
    current_setting('track_wal_io_timing', true) IS NOT DISTINCT FROM 'on' AS redo_times,
    current_setting('wal_sync_method') NOT LIKE 'open%' AS redo_flushes_apart
FROM pg_control_checkpoint() AS checkpoint, (
    SELECT CASE WHEN pg_is_in_recovery() THEN pg_last_wal_replay_lsn()
        ELSE pg_current_wal_insert_lsn() END AS lsn
) AS redo
