-- Foreign keys, each of a partitioned table once.
SELECT k.conname::text, k.conrelid, k.conkey, k.confrelid, k.confkey, k.convalidated
FROM pg_constraint k
WHERE k.contype = 'f' AND k.conparentid = 0
ORDER BY k.conrelid::regclass::text COLLATE "C", k.conname COLLATE "C"
