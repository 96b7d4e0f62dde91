-- Columns, with the type that a domain is of.
SELECT a.attrelid, a.attnum, a.attname::text, format_type(a.atttypid, a.atttypmod),
    a.attnotnull, a.attgenerated::text <> '',
    format_type(CASE t.typtype WHEN 'd' THEN t.typbasetype ELSE t.oid END, NULL)
FROM pg_attribute a JOIN pg_type t ON t.oid = a.atttypid
WHERE a.attnum > 0 AND NOT a.attisdropped AND a.attrelid = ANY($1::oid[])
ORDER BY a.attrelid, a.attnum
