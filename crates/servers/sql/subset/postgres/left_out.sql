-- What belongs to the database and does not come with its rows.
WITH extended AS (SELECT classid, objid FROM pg_depend WHERE deptype = 'e')
SELECT 'foreign' AS kind, format('%I.%I', n.nspname, c.relname) AS name
FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
WHERE c.relkind = 'f'
    AND NOT EXISTS (SELECT FROM extended WHERE classid = 'pg_class'::regclass AND objid = c.oid)
UNION ALL
-- Only those whose rows users may write: pg_dump writes them too.
SELECT 'extension', format('%I.%I', n.nspname, c.relname)
FROM pg_extension e JOIN pg_class c ON c.oid = ANY (e.extconfig)
    JOIN pg_namespace n ON n.oid = c.relnamespace
WHERE c.relkind IN ('r', 'p')
UNION ALL
SELECT 'key', k.conname::text
FROM pg_constraint k
WHERE k.contype = 'f' AND k.conparentid = 0
    AND EXISTS (SELECT FROM extended WHERE classid = 'pg_class'::regclass AND objid = k.confrelid)
    AND NOT EXISTS (SELECT FROM extended WHERE classid = 'pg_class'::regclass AND objid = k.conrelid)
UNION ALL
SELECT 'view', format('%I.%I', n.nspname, c.relname)
FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
WHERE c.relkind = 'm' AND c.relispopulated
    AND NOT EXISTS (SELECT FROM extended WHERE classid = 'pg_class'::regclass AND objid = c.oid)
UNION ALL
SELECT 'trigger', evtname::text
FROM pg_event_trigger t
WHERE NOT EXISTS (SELECT FROM extended
    WHERE classid = 'pg_event_trigger'::regclass AND objid = t.oid)
UNION ALL
SELECT 'mapping', format('%s for %s', srvname, usename)
FROM pg_user_mappings
ORDER BY kind, name
