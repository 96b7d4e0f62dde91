//! Traces and logs of single calls.

use blockstone_trace::{Component, Limits, Reader, array_size, memory_cost, round_trip};

const ORACLE: &str = "\
Trace file /u01/trace/orcl_ora_4711.trc
Oracle Database 19c Enterprise Edition Release 19.0.0.0.0 - Production
Unix process pid: 4711, image: oracle@db (TNS V1-V3)

*** 2026-03-01T08:00:00.000001+01:00 (PDB1(3))
*** SESSION ID:(35.7) 2026-03-01T08:00:00.000001+01:00
=====================
PARSING IN CURSOR #140 len=27 dep=0 uid=1 oct=3 lid=1 tim=1000100 hv=1 ad='0' sqlid='4y53369cbbaqf'
select a from t
where b=:1

END OF STMT
PARSE #140:c=10,e=12,p=0,cr=0,cu=0,mis=1,r=0,dep=0,og=1,plh=7,tim=1000100
BINDS #140:
 Bind#0
  oacdty=01 mxl=32(02) mxlc=00 mal=00 scl=00 pre=00
  kxsbbbfp=2a96b8b240  bln=32  avl=20  flg=05
  value=\"two
WAIT #140: lines\"
EXEC #140:c=20,e=25,p=0,cr=0,cu=0,mis=0,r=0,dep=0,og=1,plh=7,tim=1000200
WAIT #140: nam='db file sequential read' ela= 343 file#=4 block#=20 blocks=1 obj#=89 tim=1000600
WAIT #140: nam='db file scattered read' ela= 900 file#=4 block#=21 blocks=8 obj#=89 tim=1001500
FETCH #141:c=5,e=9,p=0,cr=3,cu=0,mis=0,r=1,dep=1,og=4,plh=9,tim=1001550
FETCH #140:c=444,e=1500,p=9,cr=12,cu=0,mis=0,r=10,dep=0,og=1,plh=7,tim=1001800
WAIT #140: nam='SQL*Net message from client' ela= 186 driver id=1 #bytes=1 p3=0 obj#=89 tim=1002000
STAT #140 id=1 cnt=10 pid=0 pos=1 obj=89 \
op='TABLE ACCESS BY INDEX ROWID T (cr=12 pr=9 pw=0 str=1 time=1490 us cost=4)'
STAT #140 id=2 cnt=10 pid=1 pos=1 obj=90 \
op='INDEX RANGE SCAN I (cr=5 pr=1 pw=0 str=1 time=439 us cost=4)'
LOBREAD: type=TEMPORARY LOB,bytes=5,c=169,e=169,p=0,cr=0,cu=7,tim=1002300
PARSE ERROR #142:len=8 dep=1 uid=1 oct=3 lid=1 tim=1002400 err=942
select 1
ERROR #140:err=1013 tim=1002450
CLOSE #140:c=3,e=3,dep=0,type=1,tim=1002500
XCTEND rlbk=0, rd_only=1, tim=1002600
";

pub fn oracle() -> Vec<Vec<u8>> {
    let of_two_sessions = ORACLE.replacen(
        "BINDS #140:\n",
        "BINDS #140:\n*** SESSION ID:(36.1) 2026-03-01\nWAIT #0: nam='x' ela= 5 p1=1 tim=7\n",
        1,
    );
    let of_dos = ORACLE.replace('\n', "\r\n");
    let before_9i = ORACLE.replace("Release 19.0", "Release 8.1");
    let adjusted = ORACLE
        .replace("tim=1000200", "tim=1.000200,delta=5,dslt=7,local='2026 Mar 01 08:00:00.5'")
        .replace("tim=1001800", "tim=1.001800,delta=5,dslt=7,local='2026 Mar 01 08:00:00.5'");
    [ORACLE, &of_two_sessions, &of_dos, &before_9i, &adjusted]
        .map(|text| text.as_bytes().to_vec())
        .into()
}

const SLOW: &str = "\
/usr/sbin/mysqld, Version: 8.0.36-28 (Percona Server). started with:
Tcp port: 3306  Unix socket: /run/mysqld/mysqld.sock
Time                 Id Command    Argument
# Time: 2026-03-01T08:00:00.500000Z
# User@Host: app[app] @ localhost []  Id:     8
# Query_time: 0.500000  Lock_time: 0.010000  Rows_sent: 3  Rows_examined: 9
# Log_slow_rate_type: query  Log_slow_rate_limit: 2
#   InnoDB_IO_r_ops: 4  InnoDB_IO_r_bytes: 65536  InnoDB_IO_r_wait: 0.200000
use shop;
SET timestamp=1795000000;
SELECT * FROM t -- all
WHERE a IN (1, 2) AND b = 'it''s';
# User@Host: app[app] @ localhost []
# Thread_id: 3  Schema:   QC_hit: No
# Query_time: 1.000000  Lock_time: 0.100000  Rows_sent: 0  Rows_examined: 0
# Pages_accessed: 184  Pages_read: 10
# Pages_read_time: 250.0000  Engine_time: 248.1297
#
# explain: id\tselect_type
#
INSERT INTO t VALUES (1,'a'),(2,'b');
# administrator command: Quit;
";

pub fn slow() -> Vec<Vec<u8>> {
    let old = SLOW.replace("2026-03-01T08:00:00.500000Z", "260301  8:00:00");
    let wrapped = SLOW.replace("Lock_time: 0.010000", "Lock_time: 18446744073709.550781");
    [SLOW, &old, &wrapped].map(|text| text.as_bytes().to_vec()).into()
}

const PLAN: &str = "\
2026-03-01 08:00:01.000 UTC [77] LOG:  duration: 60.000 ms  plan:
\tQuery Text: with c as (select 1) select count(*)
\tfrom t where k = 3;
\tAggregate  (cost=1.0..2.0 rows=1 width=8) (actual time=53.0..55.000 rows=1.00 loops=1)
\t  Buffers: shared hit=10 read=90
\t  I/O Timings: shared read=30.000 write=0.500
\t  CTE c
\t    ->  Result  (cost=0.0..1.0 rows=1 width=4) (actual time=0.1..0.2 rows=1.00 loops=1)
\t  ->  Gather  (cost=1.0..2.0 rows=2 width=8) (actual time=52.0..54.000 rows=3.00 loops=1)
\t        Workers Launched: 2
\t        ->  Seq Scan on t  (cost=0.0..7.0 rows=8 width=0) (actual time=3.0..45.0 rows=5 loops=3)
2026-03-01 08:00:01.000 UTC [77] LOG:  duration: 61.000 ms  statement: select 1
";
const JSON: &str = r#"duration: 10.5 ms  plan:
{"Query Text": "select 'a'", "Plan": {"Node Type": "Seq Scan", "Relation Name": "t",
"Actual Total Time": 7.0, "Actual Rows": 9, "Actual Loops": 1, "Shared Hit Blocks": 5,
"Shared Read Blocks": 4, "Shared I/O Read Time": 6.0, "Plans": [{"Node Type": "Result",
"Subplan Name": "CTE c", "Actual Rows": 1, "Actual Loops": 1}]}}"#;

pub fn postgres() -> Vec<Vec<u8>> {
    let lines = JSON.replace('\n', "\n\t");
    let stderr = format!("2026-03-01 08:00:01 UTC [7] LOG:  {lines}\n");
    let quoted = JSON.replace('"', "\"\"");
    let csv = format!(
        "2026-03-01 08:00:01 UTC,\"u\",\"d\",7,\"[local]\",1.7,3,\"SELECT\",2026-03-01 08:00:00 \
         UTC,3/5,0,LOG,00000,\"{quoted}\",,,,,,,,,\"psql\",\"client backend\",,0\n"
    );
    let json = serde_json::json!({
        "timestamp": "2026-03-01 08:00:01 UTC", "pid": 7, "error_severity": "LOG",
        "message": JSON,
    });
    let message = format!("LOG:  {lines}");
    let pieces = message.lines().enumerate();
    let pieces = pieces
        .map(|(at, line)| format!("Mar  1 08:00:01 host postgres[7]: [4-{}] {line}\n", at + 1));
    let syslog = pieces.collect::<Vec<_>>().concat();
    let lines = |wrap: &dyn Fn(&str) -> String| -> String {
        stderr.lines().map(|line| wrap(line) + "\n").collect()
    };
    let journal = lines(&|line| format!("Mar  1 08:00:01 host postgres[7]: {line}"));
    let container = lines(&|line| {
        serde_json::json!({ "log": format!("{line}\n"), "time": "2026-03-01T08:00:01Z" })
            .to_string()
    });
    let new_syslog = format!(
        "<134>1 2026-03-01T08:00:01Z host postgres 7 - [x y=\"z\"] [4-1] {}\n",
        message.replace('\n', "#012").replace('\t', "#011")
    );
    let xml = "2026-03-01 08:00:01 UTC 7 LOG:  duration: 9.0 ms  plan:\n\t<explain>\n\
               \t  <Query-Text>select 1</Query-Text>\n\t</explain>\n";
    let json = format!("{json}\n");
    [PLAN, &stderr, &csv, &json, &syslog, &journal, &container, &new_syslog, xml]
        .map(|text| text.as_bytes().to_vec())
        .into()
}

const TKPROF: &str = "\
TKPROF: Release 19.0.0.0.0 - Development on Sun Mar 1 08:00:00 2026
********************************************************************************

SQL ID: 4y53369cbbaqf Plan Hash: 7

select a from t where b=1

call     count       cpu    elapsed       disk      query    current        rows
------- ------  -------- ---------- ---------- ---------- ----------  ----------
Parse        1      0.00       0.01          0          0          0           0
Execute      2      0.00       0.00          0          0          0           0
Fetch        4      0.10       1.00       1000       2000          1         400
------- ------  -------- ---------- ---------- ---------- ----------  ----------
total        7      0.11       1.01       1000       2000          1         400

Misses in library cache during parse: 1
Parsing user id: SYS   (recursive depth: 1)

Elapsed times include waiting on following events:
  Event waited on                             Times   Max. Wait  Total Waited
  ----------------------------------------   Waited  ----------  ------------
  db file scattered read                        100        0.05          0.80
  SQL*Net message from client                     4        1.50          2.00
********************************************************************************
";

pub fn tkprof() -> Vec<Vec<u8>> {
    let overall = |of: &str| {
        TKPROF
            .replace("SQL ID: 4y53369cbbaqf Plan Hash: 7", &format!("OVERALL TOTALS FOR ALL {of}"))
    };
    let whole = [TKPROF, &overall("NON-RECURSIVE"), &overall("RECURSIVE")].concat();
    let end = "       4  unique SQL statements in trace file.\n     123  lines in trace file.\n";
    [TKPROF.to_owned(), whole + end].map(String::into_bytes).into()
}

/// Reads the input in one piece and in small ones, which must give the same result.
pub fn trace(input: &[u8]) -> bool {
    let limits = Limits { statements: 8, keys: 4, events: 4, sessions: 4, ..Limits::default() };
    let read = |piece: usize| {
        let mut reader = Reader::new(limits);
        for bytes in input.chunks(piece) {
            reader.feed(bytes)?;
        }
        reader.finish()
    };
    let (Ok(whole), Ok(pieces)) = (read(input.len().max(1)), read(7)) else { return false };
    assert_eq!(whole.components, pieces.components, "the pieces make a difference");
    assert_eq!(whole.statements.len(), pieces.statements.len());
    for (component, spent) in &whole.components {
        assert!(spent.ns.is_finite(), "{component:?}");
        let waits = matches!(component, Component::Wait(_));
        assert!(!waits || spent.ns >= 0.0, "{component:?} took {}", spent.ns);
    }
    assert!(whole.lines <= input.len() as u64 + 1);
    for statement in &whole.statements {
        let _ = array_size(&whole, statement, 100);
    }
    let _ = (memory_cost(&whole), round_trip(&whole, 1e6));
    true
}
