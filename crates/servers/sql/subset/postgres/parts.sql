-- The partitions of tables that hold rows themselves.
SELECT root, c.oid, n.nspname::text, c.relname::text, c.relkind = 'r',
    CASE WHEN c.reltuples >= 0 THEN c.reltuples::float8 END,
    CASE WHEN c.relkind = 'r' THEN pg_relation_size(c.oid) ELSE 0 END,
    c.relkind = 'r' OR c.relkind = 'f', c.relkind = 'r' AND row_security_active(c.oid),
    c.relam = (SELECT oid FROM pg_am WHERE amname = 'heap')
FROM unnest($1::oid[]) root, pg_partition_tree(root) p
    JOIN pg_class c ON c.oid = p.relid JOIN pg_namespace n ON n.oid = c.relnamespace
ORDER BY root, n.nspname COLLATE "C", c.relname COLLATE "C"
