-- Tables and partitions that hold rows of users, as they are now; whether their owner, and that of
-- their schema, has no code of others run: a superuser, or this user.
WITH trusted AS (SELECT oid FROM pg_roles WHERE rolsuper OR rolname = current_user)
SELECT n.nspname::text, c.relname::text, c.relispartition,
    c.relowner IN (SELECT oid FROM trusted),
    CASE WHEN n.nspowner = (SELECT oid FROM pg_roles WHERE rolname = 'pg_database_owner')
        THEN d.datdba ELSE n.nspowner END IN (SELECT oid FROM trusted),
    has_table_privilege(c.oid, 'SELECT')
FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
    JOIN pg_database d ON d.datname = current_database()
WHERE c.relkind IN ('r', 'p') AND c.relpersistence <> 't'
    AND n.nspname NOT IN ('pg_catalog', 'information_schema') AND n.nspname !~ '^pg_(toast|temp)'
    AND NOT EXISTS (SELECT FROM pg_depend d WHERE d.classid = 'pg_class'::regclass
        AND d.objid = c.oid AND d.deptype = 'e')
ORDER BY n.nspname COLLATE "C", c.relname COLLATE "C"
