-- What waits, and as '' the sessions of the run that work without waiting. A session that waits for
-- its client does neither.
SELECT CASE WHEN application_name = 'blockstone' AND backend_type = 'client backend'
        THEN 'session' ELSE backend_type END,
    coalesce(wait_event_type || '/' || wait_event, ''), count(*)
FROM pg_stat_activity
WHERE (wait_event_type NOT IN ('Activity', 'Client', 'Extension')
        OR (wait_event_type IS NULL AND application_name = 'blockstone'
            AND backend_type = 'client backend'))
    AND (datname = current_database() OR datname IS NULL) AND pid <> pg_backend_pid()
GROUP BY 1, 2
