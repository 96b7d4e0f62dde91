-- What the server may evaluate when it only plans how to read these tables: the functions in
-- expressions of their indexes and statistics, also those of operators, and the domains in them;
-- of others than superusers and this user.
WITH expression (relation, name, class, oid) AS (
    SELECT i.indrelid, 'index ' || quote_ident(c.relname), 'pg_class'::regclass, i.indexrelid
    FROM pg_index i JOIN pg_class c ON c.oid = i.indexrelid
    WHERE i.indrelid = ANY ($1::oid[]) AND (i.indexprs IS NOT NULL OR i.indpred IS NOT NULL)
    UNION ALL
    SELECT s.stxrelid, 'statistics ' || quote_ident(s.stxname), 'pg_statistic_ext'::regclass, s.oid
    FROM pg_statistic_ext s WHERE s.stxrelid = ANY ($1::oid[])
), code (relation, name, words, owner) AS (
    SELECT e.relation, e.name, f.oid::regprocedure::text, f.proowner
    FROM expression e
        JOIN pg_depend d ON d.classid = e.class AND d.objid = e.oid
        LEFT JOIN pg_operator o ON d.refclassid = 'pg_operator'::regclass AND o.oid = d.refobjid
        JOIN pg_proc f ON f.oid = o.oprcode
            OR d.refclassid = 'pg_proc'::regclass AND f.oid = d.refobjid
    UNION ALL
    SELECT e.relation, e.name, t.oid::regtype::text, t.typowner
    FROM expression e JOIN pg_depend d ON d.classid = e.class AND d.objid = e.oid
        JOIN pg_type t ON d.refclassid = 'pg_type'::regclass AND t.oid = d.refobjid
    WHERE t.typtype = 'd'
)
SELECT c.relation::regclass::text, c.name, c.words, r.rolname::text
FROM code c JOIN pg_roles r ON r.oid = c.owner
WHERE NOT r.rolsuper AND r.rolname <> current_user
ORDER BY 1, 2, 3
LIMIT 1
