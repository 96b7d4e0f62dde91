SELECT p.ID, p.USER, p.DB, p.COMMAND, p.STATE, LEFT(p.INFO, 1024), CAST(p.TIME_MS AS DOUBLE),
    p.TID, NULL, NULL, NULL, {event}, {digest}
FROM information_schema.PROCESSLIST AS p{joins}
WHERE p.ID <> CONNECTION_ID() AND p.COMMAND NOT IN ('Daemon', 'Sleep')
UNION ALL
SELECT NULL, NULL, NULL, NULL, NULL, NULL, NULL, COUNT(*), NULL, NULL, NULL, NULL, NULL
FROM information_schema.PROCESSLIST AS blockstone_watch
WHERE ID <> CONNECTION_ID() AND COMMAND <> 'Daemon' AND USER <> 'system user'
