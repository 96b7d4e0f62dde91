SELECT count(c2) FROM {table} NOT INDEXED
