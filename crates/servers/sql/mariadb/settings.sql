-- Settings that decide what a server does with its storage.
SHOW GLOBAL VARIABLES WHERE Variable_name IN (
    'innodb_buffer_pool_size', 'innodb_page_size', 'innodb_flush_log_at_trx_commit',
    'innodb_flush_method', 'innodb_doublewrite', 'innodb_log_file_size',
    'innodb_io_capacity', 'innodb_use_native_aio', 'innodb_checksum_algorithm',
    'innodb_adaptive_hash_index', 'innodb_read_io_threads', 'sync_binlog',
    'log_bin', 'performance_schema', 'innodb_data_file_buffering',
    'innodb_log_file_buffering'
)
