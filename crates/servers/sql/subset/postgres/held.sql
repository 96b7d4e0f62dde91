-- Those of these tables and partitions that are not locked so that they stay what they are: against
-- changes, and where neither this user nor a superuser owns them against new indexes as well.
SELECT n.nspname::text, c.relname::text
FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
WHERE c.oid = ANY ($1::oid[]) AND NOT EXISTS (
    SELECT FROM pg_locks l
    WHERE l.pid = pg_backend_pid() AND l.locktype = 'relation' AND l.granted
        AND l.database = (SELECT oid FROM pg_database WHERE datname = current_database())
        AND l.relation = c.oid
        AND (l.mode = 'ShareUpdateExclusiveLock' OR NOT $2 OR c.relowner IN
            (SELECT oid FROM pg_roles WHERE rolsuper OR rolname = current_user)))
ORDER BY 1, 2
