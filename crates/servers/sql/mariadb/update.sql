UPDATE {table} FORCE INDEX (k) SET {assignments} WHERE k BETWEEN ? AND ?
