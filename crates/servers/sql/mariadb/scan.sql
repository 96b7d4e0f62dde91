SELECT count(k) FROM {table}
