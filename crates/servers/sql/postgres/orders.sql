SELECT count(content) FROM {table} WHERE number BETWEEN $1 AND $2
