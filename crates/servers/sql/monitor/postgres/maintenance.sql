SELECT sum(pg_stat_get_autovacuum_count(oid) + pg_stat_get_autoanalyze_count(oid))::bigint
    AS maintenance_runs
FROM pg_class WHERE relkind IN ('r', 'm', 't')
