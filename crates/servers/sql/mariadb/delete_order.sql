DELETE FROM {table} WHERE number = ?
