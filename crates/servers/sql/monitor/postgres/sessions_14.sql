WITH s AS MATERIALIZED (
    SELECT pid, datid, usesysid, application_name, backend_type, state, wait_event_type,
        wait_event, xact_start, query_start, query, query_id AS query_id,
        CASE WHEN backend_type IS NULL THEN false
            WHEN backend_type = 'client backend' THEN state NOT IN ('idle', 'disabled')
            ELSE wait_event_type IS DISTINCT FROM 'Activity' END AS works
    FROM pg_stat_get_activity(NULL) WHERE pid <> pg_backend_pid()
), totals AS (
    SELECT count(*) FILTER (WHERE backend_type IS NULL) AS hidden,
        count(*) FILTER (WHERE state = 'disabled') AS untracked,
        count(*) FILTER (WHERE client) AS connected,
        count(*) FILTER (WHERE client AND state IN ('active', 'fastpath function call')) AS active,
        count(*) FILTER (WHERE client AND state = 'idle') AS idle,
        count(*) FILTER (WHERE client AND state LIKE 'idle in transaction%') AS in_transaction,
        count(*) FILTER (WHERE client AND wait_event_type = 'Lock') AS waiting
    FROM (SELECT *, backend_type = 'client backend' AS client FROM s) AS all_of_them
)
SELECT totals.hidden, totals.untracked, totals.connected, totals.active, totals.idle,
    totals.in_transaction, totals.waiting, s.pid, s.datid, pg_get_userbyid(s.usesysid)::text,
    s.application_name, s.backend_type, s.state, s.wait_event_type, s.wait_event, s.query_id,
    CASE WHEN ($1::bool OR s.query_id IS NULL) AND s.backend_type = 'client backend'
        THEN s.query END,
    CASE WHEN s.wait_event_type = 'Lock'
        THEN array_to_string(pg_blocking_pids(s.pid), ',') END,
    (extract(epoch FROM clock_timestamp() - s.xact_start) * 1e9)::bigint,
    (extract(epoch FROM clock_timestamp() - s.query_start) * 1e9)::bigint
FROM totals LEFT JOIN s ON s.works
