-- Large objects in pieces of 1 MiB; the last piece of each is shorter.
WITH RECURSIVE pieces (oid, at, data) AS (
    SELECT m.oid, 0::bigint, lo_get(m.oid, 0, 1048576)
    FROM pg_largeobject_metadata m WHERE m.oid = ANY ('{oids}'::oid[])
    UNION ALL
    SELECT oid, at + 1048576, lo_get(oid, at + 1048576, 1048576)
    FROM pieces WHERE length(data) = 1048576)
SELECT oid, at, data FROM pieces
