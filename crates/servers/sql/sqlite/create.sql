CREATE TABLE {table} (
    place INTEGER PRIMARY KEY, k INTEGER NOT NULL, {columns}, ballast BLOB NOT NULL
)
