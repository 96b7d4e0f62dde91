CREATE UNIQUE INDEX {table}_k ON {table} (k)
