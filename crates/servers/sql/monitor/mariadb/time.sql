SELECT (
    SELECT SUM(SUM_TIMER_WAIT) DIV 1000
    FROM performance_schema.events_statements_summary_global_by_event_name
    WHERE EVENT_NAME LIKE 'statement/sql/%' OR EVENT_NAME LIKE 'statement/com/%'
) AS blockstone_watch, (
    SELECT SUM(SUM_TIMER_WAIT) DIV 1000
    FROM performance_schema.events_statements_summary_by_thread_by_event_name
    WHERE THREAD_ID = (SELECT THREAD_ID FROM performance_schema.threads
        WHERE PROCESSLIST_ID = CONNECTION_ID())
        AND (EVENT_NAME LIKE 'statement/sql/%' OR EVENT_NAME LIKE 'statement/com/%')
)
