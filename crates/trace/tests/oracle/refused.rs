//! Files that are not SQL traces.

use super::support::try_read;
use blockstone_base::hint::Hint as _;

#[track_caller]
fn refuses(bytes: impl AsRef<[u8]>, what: &str) {
    let error = try_read(bytes).unwrap_err().told();
    assert!(error.contains(what), "{error}");
    assert!(error.contains("\nhint: "), "{error}");
    assert_eq!(error.lines().count(), 2, "{error}");
}

#[test]
fn other_files_are_refused_by_kind() {
    refuses("", "is empty");
    refuses("\n \n", "is empty");
    refuses([0x1f, 0x8b, 0, 0, 7], "is binary");
    refuses("hello\n", "not known");
    let head = "Oracle Database 19c Release 19.0.0.0.0\n*** SESSION ID:(1.2) 2026-03-01\n";
    refuses(head.to_owned() + "QUERY BLOCK SIGNATURE\n", "the optimizer");
    refuses(head.to_owned() + "DEADLOCK DETECTED ( ORA-00060 )\n", "a deadlock");
    refuses("Trace file x_lmd0_1.trc\nGlobal Wait-For-Graph(WFG)\n", "a deadlock");
    refuses("TNSLSNR for Linux: Version 19.0\n", "an Oracle listener");
    refuses(head, "no call and no wait");
}

#[test]
fn files_that_look_like_logs_are_refused_by_kind() {
    for (text, what) in [
        ("*** PG_10046 TRACE ***\nPARSING IN CURSOR #1 tim=1\nselect 1\nEND OF STMT\n", "pg_10046"),
        ("[\n  {\n    \"textPayload\": \"2026 LOG:  duration: 1 ms\"\n", "JSON over several lines"),
        ("{\n  \"MESSAGE\" : \"LOG:  duration: 1 ms\"\n", "JSON over several lines"),
        ("{\"events\":[{\"message\":\"LOG:  duration: 1 ms\"}]}", "JSON over several lines"),
        (
            "__CURSOR=s\n__REALTIME_TIMESTAMP=1\nMESSAGE=LOG:  duration: 1 ms\n",
            "an export of journald",
        ),
        (
            "Sun 2026-03-01 UTC [s=1;i=2]\n    _BOOT_ID=1\n    MESSAGE=LOG:  duration: 1 ms\n",
            "the verbose output of journalctl",
        ),
        (
            "CALL-NAME              DURATION       %   CALLS      MEAN       MIN       MAX\n\
             ---------------------  --------  ------  ------\nFETCH  1.0  50%  2\n",
            "a report of mrskew",
        ),
        ("<html><title>TVD$XTAT Output</title>WAIT #1: nam=", "another profiler"),
        (
            "# Overall: 3 total, 2 unique, 0 QPS\n# Rank Query ID\n# Query_time: \n",
            "pt-query-digest",
        ),
        ("<!DOCTYPE html><title>pgBadger :: 12</title>duration: ", "pgBadger"),
        ("Count: 3  Time=0.50s (1s)  Lock=0.00s (0s)  Rows=1.0 (3), u[u]@h\n", "mysqldumpslow"),
        (
            "2026-03-01 08:00:00.5,\"u[u] @ localhost []\",\"00:00:02.5\",\"00:00:00\",1,0,\"d\"\n",
            "mysql.slow_log",
        ),
        (
            "start_time\tuser_host\tquery_time\tlock_time\trows_sent\tsql_text\n2026\tu\n",
            "mysql.slow_log",
        ),
        (
            "mysqld, Version: 8.4.0. started with:\nTime                 Id Command    Argument\n\
             2026-03-01T08:00:00.5Z\t    8 Query\tselect 1\n",
            "a general query log",
        ),
        (
            "mysqld, Version: 8.4.0. started with:\nTime                 Id Command    Argument\n",
            "in which no statement was logged",
        ),
        (
            "2026-03-01T08:00:00.5Z 0 [System] [MY-010116] [Server] starting\n",
            "an error log of MySQL",
        ),
        ("2026-03-01 08:00:00.5 UTC [1] LOG stats: 0 xacts/s\n", "PgBouncer"),
        ("Thread 1 advanced to log sequence 7 (LGWR switch)\n", "an alert log"),
        (
            "*** SESSION ID:(1.2) 2026-03-01\nORA-07445: exception encountered: core dump []\n",
            "an internal error",
        ),
        ("WORKLOAD REPOSITORY report for\n", "AWR"),
    ] {
        refuses(text, what);
    }
    refuses(b"LPKSHHRH\0\0", "a journal of systemd");
    refuses(b"\xfebin\x00\x01", "a binary log");
}
