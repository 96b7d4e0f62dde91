-- Tables that hold rows of users, each partitioned one as a whole; whether row-level security may
-- hide rows from this user. Partitions are read by themselves, and have policies of their own.
SELECT c.oid, n.nspname::text, c.relname::text, c.relkind = 'p',
    CASE WHEN c.relkind = 'r' AND c.reltuples >= 0 THEN c.reltuples::float8 END,
    has_table_privilege(c.oid, 'SELECT'),
    c.relkind = 'r' AND row_security_active(c.oid),
    CASE c.relkind WHEN 'r' THEN pg_relation_size(c.oid) END,
    c.relam = (SELECT oid FROM pg_am WHERE amname = 'heap')
FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
WHERE c.relkind IN ('r', 'p') AND NOT c.relispartition AND c.relpersistence <> 't'
    AND n.nspname NOT IN ('pg_catalog', 'information_schema') AND n.nspname !~ '^pg_(toast|temp)'
    AND NOT EXISTS (SELECT FROM pg_depend d WHERE d.classid = 'pg_class'::regclass
        AND d.objid = c.oid AND d.deptype = 'e')
ORDER BY n.nspname COLLATE "C", c.relname COLLATE "C"
