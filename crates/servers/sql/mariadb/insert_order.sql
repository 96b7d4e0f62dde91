INSERT INTO {table} (number, content) VALUES (?, ?)
