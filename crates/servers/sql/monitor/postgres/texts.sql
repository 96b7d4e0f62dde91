SELECT queryid, min(query) FROM {schema}.pg_stat_statements(true)
WHERE queryid = ANY ($1::bigint[]) GROUP BY queryid
