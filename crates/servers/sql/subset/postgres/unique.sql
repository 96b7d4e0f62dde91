-- Primary and unique keys of whole tables, primary ones first.
SELECT i.indrelid, (i.indkey::int2[])[0:i.indnkeyatts - 1], i.indisprimary
FROM pg_index i JOIN pg_class c ON c.oid = i.indexrelid
WHERE i.indisunique AND i.indisvalid AND i.indpred IS NULL AND i.indexprs IS NULL
    AND i.indrelid = ANY($1::oid[])
ORDER BY i.indrelid, i.indisprimary DESC, c.relname COLLATE "C"
