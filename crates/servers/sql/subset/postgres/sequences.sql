-- Sequences, those of extensions left out.
SELECT n.nspname::text, c.relname::text, has_sequence_privilege(c.oid, 'SELECT'), c.oid
FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
WHERE c.relkind = 'S' AND c.relpersistence <> 't'
    AND n.nspname NOT IN ('pg_catalog', 'information_schema')
    AND NOT EXISTS (SELECT FROM pg_depend d WHERE d.classid = 'pg_class'::regclass
        AND d.objid = c.oid AND d.deptype = 'e')
ORDER BY n.nspname COLLATE "C", c.relname COLLATE "C"
