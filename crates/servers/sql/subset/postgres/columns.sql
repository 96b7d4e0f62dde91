-- Columns, with the type that a domain is of in the end, and how its values become text: by a cast,
-- where the server itself or a superuser's extension has the type, or by a function of the server
-- that casts of users have no part in; by nothing otherwise. And whether a superuser or this user
-- owns the type.
WITH RECURSIVE based (declared, oid) AS (
    SELECT DISTINCT atttypid, atttypid FROM pg_attribute WHERE attrelid = ANY ($1::oid[])
    UNION
    SELECT b.declared, t.typbasetype FROM based b JOIN pg_type t ON t.oid = b.oid
    WHERE t.typtype = 'd'
)
SELECT a.attrelid, a.attnum, a.attname::text, format_type(a.atttypid, a.atttypmod),
    a.attnotnull, a.attgenerated::text <> '', format_type(t.oid, NULL), t.oid,
    CASE
        WHEN t.oid < 16384 THEN 'cast'
        WHEN o.oid < 16384 AND o.proname IN
            ('enum_out', 'array_out', 'record_out', 'range_out', 'multirange_out')
            THEN 'pg_catalog.' || o.proname
        WHEN r.rolsuper AND EXISTS (SELECT FROM pg_depend d
                WHERE d.classid = 'pg_type'::regclass AND d.objid = t.oid AND d.deptype = 'e')
            AND NOT EXISTS (SELECT FROM pg_cast c JOIN pg_proc f ON f.oid = c.castfunc
                JOIN pg_roles w ON w.oid = f.proowner
                WHERE c.castsource = t.oid AND NOT w.rolsuper)
            THEN 'cast'
    END, r.rolsuper OR r.rolname = current_user
FROM pg_attribute a JOIN based b ON b.declared = a.atttypid
    JOIN pg_type t ON t.oid = b.oid AND t.typtype <> 'd'
    JOIN pg_proc o ON o.oid = t.typoutput JOIN pg_roles r ON r.oid = t.typowner
WHERE a.attnum > 0 AND NOT a.attisdropped AND a.attrelid = ANY ($1::oid[])
ORDER BY a.attrelid, a.attnum
