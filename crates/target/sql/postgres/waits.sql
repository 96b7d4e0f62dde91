SELECT CASE WHEN application_name = 'blockstone' AND backend_type = 'client backend'
        THEN 'session' ELSE backend_type END, wait_event_type || '/' || wait_event, count(*)
FROM pg_stat_activity
WHERE wait_event_type IS NOT NULL AND wait_event_type NOT IN ('Activity', 'Client', 'Extension')
    AND (datname = current_database() OR datname IS NULL) AND pid <> pg_backend_pid()
GROUP BY 1, 2
