-- Rows whose key references no row.
SELECT count(*) FROM {child} c
WHERE {present} AND NOT EXISTS (SELECT 1 FROM {parent} p WHERE {equal})
