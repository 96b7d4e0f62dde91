-- What waits, and as '' the sessions of the run that execute a statement without waiting. How long a
-- commit waits for its log is instrumented nowhere: its stage says so, and after that stage its text,
-- for the answer to the client is held back until another thread has flushed the log.
SELECT IF(thread.TYPE = 'FOREGROUND', 'session', SUBSTRING_INDEX(thread.NAME, '/', -1)) AS role,
    COALESCE(wait.EVENT_NAME,
            IF(thread.PROCESSLIST_STATE = 'Commit' OR thread.PROCESSLIST_INFO = 'COMMIT',
                'stage/sql/Commit', ''))
        AS event,
    COUNT(*)
FROM performance_schema.threads AS thread
    LEFT JOIN performance_schema.events_waits_current AS wait
        ON wait.THREAD_ID = thread.THREAD_ID AND wait.END_EVENT_ID IS NULL
            AND (wait.EVENT_NAME LIKE 'wait/io/file/%' OR wait.EVENT_NAME LIKE 'wait/lock/%'
                OR wait.EVENT_NAME LIKE 'wait/synch/%')
            AND (wait.EVENT_NAME NOT LIKE 'wait/synch/cond/%' OR thread.TYPE = 'FOREGROUND')
WHERE IF(thread.TYPE = 'FOREGROUND',
        thread.PROCESSLIST_DB = 'blockstone' AND thread.PROCESSLIST_COMMAND <> 'Sleep'
            AND NOT thread.PROCESSLIST_ID <=> CONNECTION_ID(),
        wait.EVENT_NAME IS NOT NULL)
GROUP BY 1, 2
