SELECT count(c2) FROM {table} INDEXED BY {table}_k WHERE k BETWEEN ?1 AND ?2
