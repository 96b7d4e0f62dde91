SELECT count(content) FROM {table} WHERE number BETWEEN ? AND ?
