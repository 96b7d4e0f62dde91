SELECT count(c2) FROM {table} WHERE k BETWEEN $1 AND $2
