-- Settings that decide what a server does with its storage.
SELECT name, current_setting(name) FROM pg_settings WHERE name IN (
    'shared_buffers', 'block_size', 'fsync', 'synchronous_commit',
    'full_page_writes', 'wal_level', 'wal_compression', 'data_checksums',
    'max_wal_size', 'checkpoint_timeout', 'autovacuum', 'track_io_timing',
    'huge_pages', 'max_connections', 'io_method', 'debug_io_direct', 'wal_sync_method',
    'io_combine_limit', 'io_max_combine_limit', 'effective_io_concurrency'
)
