-- Columns, with the type that a domain is of in the end, and how its values become text: by a cast,
-- where the server itself or a superuser's extension has the type, or by a function of the server
-- that casts of users have no part in; by nothing otherwise. And whether a superuser or this user
-- owns the type, the collation unless it is the default, whether it takes different texts for
-- equal, and how equal values are known: by their `text`, by a hash function of the server or of a
-- superuser's extension, or by nothing.
WITH RECURSIVE based (declared, oid, is_whole) AS (
    SELECT DISTINCT atttypid, atttypid, false FROM pg_attribute WHERE attrelid = ANY ($1::oid[])
    UNION
    SELECT b.declared, t.typbasetype, b.is_whole OR t.typnotnull
    FROM based b JOIN pg_type t ON t.oid = b.oid
    WHERE t.typtype = 'd'
), base (declared, oid, is_whole) AS (
    SELECT b.declared, b.oid, b.is_whole FROM based b JOIN pg_type t ON t.oid = b.oid
    WHERE t.typtype <> 'd'
), made (top, oid, folds) AS (
    SELECT DISTINCT oid, oid, false FROM base
    UNION
    -- A type is made of what it is a domain, an array, a range or a row of.
    SELECT m.top, p.oid, p.folds
    FROM made m JOIN pg_type t ON t.oid = m.oid CROSS JOIN LATERAL (
        SELECT t.typbasetype, false WHERE t.typtype = 'd'
        UNION ALL
        SELECT t.typelem, false WHERE t.typelem <> 0 AND t.typlen = -1
        UNION ALL
        SELECT r.rngsubtype, NOT coalesce(c.collisdeterministic, true)
        FROM pg_range r LEFT JOIN pg_collation c ON c.oid = r.rngcollation
        WHERE r.rngtypid = t.oid
        UNION ALL
        -- Multiranges are not in all versions.
        SELECT r.rngtypid, false FROM pg_range r
        WHERE (to_jsonb(r) ->> 'rngmultitypid')::oid = t.oid
        UNION ALL
        SELECT a.atttypid, NOT coalesce(c.collisdeterministic, true)
        FROM pg_attribute a LEFT JOIN pg_collation c ON c.oid = a.attcollation
        WHERE a.attrelid = t.typrelid AND a.attnum > 0 AND NOT a.attisdropped
    ) p (oid, folds)
), parts (top, has_odd, has_foreign) AS (
    SELECT m.top,
        -- numeric, real, double precision, character, interval and jsonb: equal values may have
        -- different texts.
        bool_or(m.folds OR m.oid <> m.top
            AND m.oid IN (1700, 700, 701, 1042) OR m.oid IN (1186, 3802)),
        bool_or(m.oid >= 16384 AND t.typtype = 'b' AND NOT (t.typelem <> 0 AND t.typlen = -1))
    FROM made m JOIN pg_type t ON t.oid = m.oid
    GROUP BY m.top
), hashed (top, function) AS (
    SELECT DISTINCT ON (b.oid) b.oid, format('%I.%I', n.nspname, f.proname)
    FROM base b JOIN pg_type t ON t.oid = b.oid
        JOIN pg_opclass o ON o.opcdefault
            AND o.opcmethod = (SELECT oid FROM pg_am WHERE amname = 'hash')
            AND o.opcintype = CASE WHEN t.typelem <> 0 AND t.typlen = -1 THEN 'anyarray'::regtype
                WHEN t.typtype = 'r' THEN 'anyrange'::regtype
                WHEN t.typtype = 'm' THEN to_regtype('anymultirange')
                WHEN t.typtype = 'c' THEN 'record'::regtype ELSE t.oid END
        JOIN pg_amproc p ON p.amprocfamily = o.opcfamily AND p.amprocnum = 2
            AND p.amproclefttype = o.opcintype AND p.amprocrighttype = o.opcintype
        JOIN pg_proc f ON f.oid = p.amproc JOIN pg_namespace n ON n.oid = f.pronamespace
        JOIN pg_roles r ON r.oid = f.proowner AND (f.oid < 16384 OR r.rolsuper)
    -- Some hash another type with the same bytes, which SQL does not convert.
    WHERE f.proargtypes[0] = o.opcintype
    ORDER BY b.oid
)
SELECT a.attrelid, a.attnum, a.attname::text, format_type(a.atttypid, a.atttypmod),
    a.attnotnull OR b.is_whole, a.attgenerated::text <> '', format_type(t.oid, NULL), t.oid,
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
    END, r.rolsuper OR r.rolname = current_user,
    CASE WHEN k.collname <> 'default' THEN format('%I.%I', kn.nspname, k.collname) END,
    NOT coalesce(k.collisdeterministic, true),
    CASE
        -- Of the type itself, not of what it is made of: a superuser's extension hashes its own.
        WHEN t.typtype = 'b' AND t.oid >= 16384 AND NOT (t.typelem <> 0 AND t.typlen = -1)
            THEN coalesce(h.function, 'text')
        WHEN p.has_foreign THEN NULL
        WHEN p.has_odd OR NOT k.collisdeterministic AND t.oid NOT IN (25, 1043, 1042, 19)
            THEN h.function
        ELSE 'text'
    END
FROM pg_attribute a JOIN base b ON b.declared = a.atttypid
    JOIN pg_type t ON t.oid = b.oid
    JOIN parts p ON p.top = t.oid LEFT JOIN hashed h ON h.top = t.oid
    JOIN pg_proc o ON o.oid = t.typoutput JOIN pg_roles r ON r.oid = t.typowner
    LEFT JOIN pg_collation k ON k.oid = a.attcollation
    LEFT JOIN pg_namespace kn ON kn.oid = k.collnamespace
WHERE a.attnum > 0 AND NOT a.attisdropped AND a.attrelid = ANY ($1::oid[])
ORDER BY a.attrelid, a.attnum
