UPDATE {table} INDEXED BY {table}_k SET {assignments} WHERE k BETWEEN ?1 AND ?2
