SELECT IF(thread.TYPE = 'FOREGROUND', 'session', SUBSTRING_INDEX(thread.NAME, '/', -1)),
    wait.EVENT_NAME, COUNT(*)
FROM performance_schema.events_waits_current AS wait
    JOIN performance_schema.threads AS thread ON thread.THREAD_ID = wait.THREAD_ID
WHERE wait.END_EVENT_ID IS NULL
    AND (wait.EVENT_NAME LIKE 'wait/io/file/%' OR wait.EVENT_NAME LIKE 'wait/lock/%'
        OR wait.EVENT_NAME LIKE 'wait/synch/%')
    AND wait.EVENT_NAME NOT LIKE 'wait/synch/cond/%'
    AND (thread.TYPE <> 'FOREGROUND' OR thread.PROCESSLIST_DB = 'blockstone')
    AND NOT thread.PROCESSLIST_ID <=> CONNECTION_ID()
GROUP BY 1, 2
