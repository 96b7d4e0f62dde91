SELECT EVENT_NAME AS blockstone_watch, COUNT_STAR, SUM_TIMER_WAIT DIV 1000
FROM performance_schema.events_waits_summary_global_by_event_name
WHERE COUNT_STAR > 0 AND EVENT_NAME <> 'idle' AND EVENT_NAME NOT LIKE 'wait/io/table/%'
