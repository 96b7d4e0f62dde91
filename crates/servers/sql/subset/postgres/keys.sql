-- Foreign keys, each of a partitioned table once; whether the last column is a period that the
-- referenced rows cover together, and whether the columns are all NULL or none is.
SELECT k.conname::text, k.conrelid, k.conkey, k.confrelid, k.confkey, k.convalidated,
    -- Not in all versions.
    coalesce((to_jsonb(k) ->> 'conperiod')::bool, false), k.confmatchtype = 'f'
FROM pg_constraint k
WHERE k.contype = 'f' AND k.conparentid = 0
ORDER BY k.conrelid::regclass::text COLLATE "C", k.conname COLLATE "C"
