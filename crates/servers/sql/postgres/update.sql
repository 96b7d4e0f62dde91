UPDATE {table} SET {assignments} WHERE k BETWEEN $1 AND $2
