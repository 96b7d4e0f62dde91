-- Tables that hold rows of users, each partitioned one as a whole.
SELECT c.oid, n.nspname::text, c.relname::text, c.relkind = 'p',
    CASE WHEN c.reltuples >= 0 THEN c.reltuples::float8 END,
    has_table_privilege(c.oid, 'SELECT')
FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
WHERE c.relkind IN ('r', 'p') AND NOT c.relispartition AND c.relpersistence <> 't'
    AND n.nspname NOT IN ('pg_catalog', 'information_schema') AND n.nspname !~ '^pg_(toast|temp)'
    AND NOT EXISTS (SELECT FROM pg_depend d WHERE d.classid = 'pg_class'::regclass
        AND d.objid = c.oid AND d.deptype = 'e')
ORDER BY n.nspname COLLATE "C", c.relname COLLATE "C"
