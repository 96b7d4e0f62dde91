SELECT wal_fpi AS full_page_images, wal_write AS redo_writes, wal_sync AS flushes
FROM pg_stat_wal
