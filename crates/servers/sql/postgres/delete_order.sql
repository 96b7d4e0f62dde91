DELETE FROM {table} WHERE number = $1
