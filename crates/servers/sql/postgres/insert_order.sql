INSERT INTO {table} (number, content) VALUES ($1, $2)
