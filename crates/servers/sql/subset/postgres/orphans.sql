-- Rows whose key references no row.
SELECT count(*) FROM {child} c
WHERE {present} AND NOT EXISTS (SELECT FROM {parent} p WHERE {equal})
