SELECT p.ID, p.USER, p.DB, p.COMMAND, p.STATE, LEFT(p.INFO, 1024), CAST(p.TIME_MS AS DOUBLE),
    p.TID, t.trx_state, TIMESTAMPDIFF(MICROSECOND, t.trx_started, NOW(6)),
    IF(t.trx_state = 'LOCK WAIT', (
        SELECT GROUP_CONCAT(DISTINCT b.trx_mysql_thread_id)
        FROM information_schema.INNODB_LOCK_WAITS AS w
            JOIN information_schema.INNODB_TRX AS b ON b.trx_id = w.blocking_trx_id
        WHERE w.requesting_trx_id = t.trx_id
    ), NULL), {event}, {digest}
FROM information_schema.PROCESSLIST AS p
    LEFT JOIN information_schema.INNODB_TRX AS t ON t.trx_mysql_thread_id = p.ID{joins}
WHERE p.ID <> CONNECTION_ID() AND p.COMMAND <> 'Daemon'
    AND (p.COMMAND <> 'Sleep' OR t.trx_id IS NOT NULL)
UNION ALL
SELECT NULL, NULL, NULL, NULL, NULL, NULL, NULL, COUNT(*), NULL, NULL, NULL, NULL, NULL
FROM information_schema.PROCESSLIST AS blockstone_watch
WHERE ID <> CONNECTION_ID() AND COMMAND <> 'Daemon' AND USER <> 'system user'
