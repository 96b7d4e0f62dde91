//! `blockstone trace` as a user runs it: logs of every kind, compressed or not, and input that is
//! refused.

use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use blockstone_testkit::{Ran, ScratchDir, blockstone_binary, run};
use serde_json::Value;

use super::{Turn, keeps_to_its_schema, made};

const SLOW: &str = "\
# User@Host: a[a] @ h []
# Query_time: 1.5  Lock_time: 0.5  Rows_sent: 1  Rows_examined: 0
select 'secret' from t;
# User@Host: a[a] @ h []
# Query_time: 2.5  Lock_time: 0.0  Rows_sent: 1  Rows_examined: 0
select 'other' from t;
";

/// `# User@Host: a[a] @ h []`, `# Query_time: 1.5 …` and `select 1;`, as xz compresses it.
const XZ: &[u8] = b"\xfd7zXZ\0\0\x01i\"\xde6\x02\0!\x01\x16\0\0\0t/\xe5\xa3\xe0\0d\0Z]\0\x11\x88\
\x07(\x89v`X\xe3\xbe-\x0c\xf2\xfed\xf4\xa9\xbf\xc5\x90]\x8c0X\x95\xdc9\x19'vs\xeaX\xd0;]\xd3\xf1\
C\x85\x01@\xec\x98\xfc\xa0\xda\x19M\x98\x91;\xf9W\t\x16o\xb1cX\xfc\xf0>i\x90\xba\xa30\xf9\x9a\
\xf9Z.\x94Cf\xb9\t\xfa\xfc15R\xd9\x82\xbb\xe7+\x9f\xc0\0\0\0a\xf8e\xa7\0\x01re\x88;W\0\x90B\x99\
\r\x01\0\0\0\0\x01YZ";

const ORACLE: &str = "\
Oracle Database 19c Enterprise Edition Release 19.0.0.0.0 - Production
*** SESSION ID:(35.7) 2026-03-01T08:00:00.000001+01:00
=====================
PARSING IN CURSOR #140 len=26 dep=0 uid=1 oct=3 lid=1 tim=1000000 hv=1 ad='0' sqlid='4y53369cbbaqf'
select a from t where b=17
END OF STMT
PARSE #140:c=0,e=100,p=0,cr=0,cu=0,mis=1,r=0,dep=0,og=1,plh=7,tim=1000100
EXEC #140:c=0,e=100,p=0,cr=0,cu=0,mis=0,r=0,dep=0,og=1,plh=7,tim=1000200
WAIT #140: nam='SQL*Net message from client' ela= 1000 driver id=1 #bytes=1 p3=0 obj#=89 tim=1001200
WAIT #140: nam='db file sequential read' ela= 8000 file#=4 block#=20 blocks=1 obj#=89 tim=1009300
FETCH #140:c=100,e=8200,p=1,cr=12,cu=0,mis=0,r=10,dep=0,og=1,plh=7,tim=1009400
WAIT #140: nam='SQL*Net message from client' ela= 1000 driver id=1 #bytes=1 p3=0 obj#=89 tim=1010400
FETCH #140:c=100,e=200,p=0,cr=12,cu=0,mis=0,r=10,dep=0,og=1,plh=7,tim=1010600
WAIT #140: nam='SQL*Net message from client' ela= 1000 driver id=1 #bytes=1 p3=0 obj#=89 tim=1011600
FETCH #140:c=100,e=200,p=0,cr=12,cu=0,mis=0,r=5,dep=0,og=1,plh=7,tim=1011800
STAT #140 id=1 cnt=25 pid=0 pos=1 obj=89 \
op='TABLE ACCESS BY INDEX ROWID T (cr=36 pr=1 pw=0 str=1 time=8500 us cost=4)'
STAT #140 id=2 cnt=25 pid=1 pos=1 obj=90 \
op='INDEX RANGE SCAN I (cr=30 pr=0 pw=0 str=1 time=300 us cost=4)'
CLOSE #140:c=0,e=3,dep=0,type=1,tim=1011900
";

fn trace(arguments: &[&str], files: &[&Path]) -> Ran {
    run(Command::new(blockstone_binary()).arg("trace").args(arguments).args(files))
}

#[track_caller]
fn document(arguments: &[&str], files: &[&Path]) -> Value {
    let ran = trace(&[arguments, &["--json"]].concat(), files);
    assert_eq!(ran.code, Some(0), "{ran:#?}");
    let document = ran.json();
    keeps_to_its_schema(&document);
    document
}

struct Files(ScratchDir);

impl Files {
    fn new() -> Self {
        Self(ScratchDir::on_disk().unwrap())
    }

    fn file(&self, name: &str, bytes: impl AsRef<[u8]>) -> PathBuf {
        let path = self.0.path().join(name);
        fs::write(&path, bytes).unwrap();
        path
    }
}

#[test]
fn text_document_table_and_page_say_the_same() {
    let _turn = Turn::beside();
    let files = Files::new();
    let log = files.file("slow.log", SLOW);
    let said = document(&[], &[&log]);
    let ns = |seconds: f64| Value::from((seconds * 1e9) as u64);
    assert_eq!((&said["response_ns"], &said["unaccounted_ns"]), (&ns(4.0), &ns(3.5)));
    let tables = &said["tables"];
    let statement = &tables["statements"][0];
    assert_eq!(statement["text"], "select ? from t");
    assert_eq!((&statement["executions"], &statement["time_ns"]), (&2.into(), &ns(4.0)));
    assert_eq!(statement["logical_reads"]["unmeasured"], "not in this log");
    let component = &tables["components"][0];
    assert_eq!(component["statement"], statement["id"]);
    assert_eq!(component["component"], "lock");
    assert_eq!(tables["texts"][0]["text"], "select ? from t");
    let absent: Vec<&str> = tables["not-in-log"]
        .as_array()
        .unwrap()
        .iter()
        .filter_map(|it| it["component"].as_str())
        .collect();
    assert_eq!(absent, ["CPU", "storage write", "storage read"]);
    let page = files.0.path().join("trace.html");
    let text = trace(&["--html", page.to_str().unwrap()], &[&log]);
    assert!(text.stdout.contains("select ? from t") && text.stdout.contains("not in this log"));
    assert!(fs::read_to_string(page).unwrap().contains("Executions by response time"));
    let csv = trace(&["--csv=profile", "--quiet"], &[&log]).stdout;
    assert!(csv.contains("lock,500000000,0.125,1,"), "{csv}");
    let kept = trace(&["--keep-text"], &[&log]).stdout;
    assert!(kept.contains("'secret'") && !text.stdout.contains("secret"), "{kept}");
    let sampled = document(&["--sample-rate", "0.5"], &[&log, &log]);
    assert_eq!(sampled["response_ns"], ns(16.0));
}

#[test]
fn the_earlier_document_has_its_keys() {
    let _turn = Turn::beside();
    let files = Files::new();
    let earlier = |arguments: &[&str], files: &[&Path]| {
        let ran = trace(&[arguments, &["--json=1"]].concat(), files);
        assert_eq!(ran.code, Some(0), "{ran:#?}");
        ran.json()
    };
    let slow = earlier(&[], &[&files.file("slow.log", SLOW)]);
    assert_eq!((&slow["schema"], &slow["version"]), (&"blockstone.trace/1".into(), &1.into()));
    assert_eq!((&slow["span_seconds"], &slow["response_seconds"]), (&Value::Null, &4.0.into()));
    let statement = &slow["statements"][0];
    assert_eq!((&statement["seconds"], &statement["logical_reads"]), (&4.0.into(), &Value::Null));
    let lock = &statement["components"][0];
    assert_eq!((&lock["component"], &lock["seconds"]), (&"lock".into(), &0.5.into()));
    let oracle = earlier(&[], &[&files.file("ora.trc", ORACLE)]);
    let below = &oracle["row_sources"][1];
    assert_eq!(below["operation"], "INDEX RANGE SCAN I");
    assert_eq!((&below["parent"], &below["own_seconds"]), (&1.into(), &0.0003.into()));
    let wait = &oracle["sessions"][0]["profile"][0];
    assert_eq!((&wait["blocks"], &wait["histogram"][0]["calls"]), (&1.into(), &1.into()));
    assert_eq!(oracle["by_file"][0]["key"], 4);
    assert_eq!(oracle["statements"][0]["calls"][2]["calls"], 3);
}

/// Output of `auto_explain` for a join in memory.
const JOINED: &str = "\
2026-11-26 02:00:01.000 UTC [77] LOG:  duration: 6140.000 ms  plan:
\tQuery Text: select count(*) from a join b using (k)
\tAggregate  (cost=1.0..2.0 rows=1 width=8) (actual time=6139.0..6140.000 rows=1 loops=1)
\t  Buffers: shared hit=100
\t  ->  Hash Join  (cost=1.0..2.0 rows=2 width=8) \
(actual time=9.0..4250.000 rows=20000000 loops=1)
\t        Buffers: shared hit=100
\t        ->  Seq Scan on a  (cost=0.0..7.0 rows=8 width=0) \
(actual time=3.0..1360.000 rows=5 loops=1)
\t              Buffers: shared hit=100
";

#[test]
fn a_plan_leads_with_the_node_that_took_the_time() {
    let _turn = Turn::beside();
    let files = Files::new();
    let log = files.file("postgresql.log", JOINED);
    let ran = trace(&[], &[&log]);
    let words = ran.stdout.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(words.contains(": 47 % of 6.14 s is the Hash Join, 20,000,000 rows "), "{ran:#?}");
    assert!(ran.stdout.contains("no plan read a block"), "{ran:#?}");
    let estimated: String = JOINED
        .lines()
        .filter(|line| !line.contains("Buffers"))
        .flat_map(|line| [line.split(" (actual").next().unwrap_or(line), "\n"])
        .collect();
    let log = files.file("estimated.log", estimated);
    let words = trace(&[], &[&log]).stdout;
    let words = words.split_whitespace().collect::<Vec<_>>().join(" ");
    let expected = "100 % of 6.14 s is not broken down: auto_explain.log_analyze is off ";
    assert!(words.contains(expected), "{words}");
}

#[test]
fn compressed_files_and_standard_input_are_read_as_they_are() {
    let _turn = Turn::beside();
    let files = Files::new();
    let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    gzip.write_all(SLOW.as_bytes()).unwrap();
    let gzip = gzip.finish().unwrap();
    let mut bzip2 = bzip2::write::BzEncoder::new(Vec::new(), bzip2::Compression::fast());
    bzip2.write_all(SLOW.as_bytes()).unwrap();
    let packed = [
        files.file("gz", [gzip.clone(), gzip.clone()].concat()),
        files.file("bz2", bzip2.finish().unwrap()),
        files.file("zst", zstd::encode_all(SLOW.as_bytes(), 1).unwrap()),
    ];
    let paths: Vec<&Path> = packed.iter().map(PathBuf::as_path).collect();
    assert_eq!(document(&[], &paths)["response_ns"], 16_000_000_000_u64);
    assert_eq!(document(&[], &[&files.file("xz", XZ)])["response_ns"], 1_500_000_000);
    let mut command = Command::new(blockstone_binary());
    let mut child = command
        .args(["trace", "--json", "-"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    child.stdin.take().unwrap().write_all(&gzip).unwrap();
    let read: Value = serde_json::from_slice(&child.wait_with_output().unwrap().stdout).unwrap();
    assert_eq!(read["response_ns"], 4_000_000_000_u64);
    let long = SLOW.repeat(10_000);
    let cut = zstd::encode_all(long.as_bytes(), 1).unwrap();
    let cut = trace(&[], &[&files.file("cut.zst", &cut[..cut.len() - 40])]);
    assert_eq!(cut.code, Some(3), "{cut:#?}");
    assert!(cut.stdout.contains("only its beginning could be read"), "{cut:#?}");
}

#[test]
fn a_sql_trace_has_waits_plans_and_predictions() {
    let _turn = Turn::beside();
    let files = Files::new();
    let file = files.file("ora.trc", ORACLE);
    let said = document(&[], &[&file]);
    assert_eq!(said["span_ns"], 11_900_000, "{said:#}");
    let waits = &said["tables"]["profile"][0];
    assert_eq!(
        (&waits["component"], &waits["time_ns"]),
        (&"db file sequential read".into(), &8_000_000.into())
    );
    assert_eq!(said["tables"]["row-sources"][0]["own_time_ns"], 8_200_000);
    let table = |name: &str| {
        let asked = ["--what-if=array=100", "--what-if=read=0.5", "--memory-cost=30us", "-q", name];
        trace(&asked, &[&file]).stdout
    };
    let what_if = table("--csv=what-if");
    assert!(what_if.contains("100 rows a fetch") && what_if.contains(",7900000,"), "{what_if}");
    // 8.5 ms less 36 × 30 µs; for the table alone 8.2 ms less 6 × 30 µs.
    let disk = table("--csv=disk-time");
    assert!(disk.contains(",8020000,8020000,") && disk.contains(",7420000"), "{disk}");
    let tkprof = trace(&["--style", "tkprof"], &[&file]).stdout;
    let order = ["SQL ID: 4y53369cbbaqf", "parse", "execute", "fetch", "TABLE ACCESS BY INDEX"];
    let places: Vec<usize> = order.iter().map(|word| tkprof.find(word).expect(word)).collect();
    assert!(places.is_sorted(), "{tkprof}");
    assert!(!tkprof.contains("b=17") && tkprof.contains("b=?"), "{tkprof}");
}

/// Tables of a report of tkprof: a statement and the totals.
const TKPROF: &str = "\
call     count       cpu    elapsed       disk      query    current        rows
------- ------  -------- ---------- ---------- ---------- ----------  ----------
Parse        1      0.00       0.00          0          0          0           0
Execute      1      0.00       0.00          0          0          0           0
Fetch        2      0.20       1.00        100        120          0          10
------- ------  -------- ---------- ---------- ---------- ----------  ----------
total        4      0.20       1.00        100        120          0          10

Elapsed times include waiting on following events:
  Event waited on                             Times   Max. Wait  Total Waited
  ----------------------------------------   Waited  ----------  ------------
  db file sequential read                       100        0.05          0.60
";

#[test]
fn a_report_of_tkprof_is_a_source_of_figures() {
    let _turn = Turn::beside();
    let rule = "*".repeat(80);
    let report = format!(
        "TKPROF: Release 19.0.0.0.0 - Development on Sun Mar 1 08:00:00 2026\n{rule}\n\
         SQL ID: 4y53369cbbaqf Plan Hash: 7\n\nselect a from t where b=17\n\n{TKPROF}{rule}\n\
         OVERALL TOTALS FOR ALL NON-RECURSIVE STATEMENTS\n\n{TKPROF}\n\
         OVERALL TOTALS FOR ALL RECURSIVE STATEMENTS\n\n{TKPROF}\n{rule}\n\
         5  unique SQL statements in trace file.\n99  lines in trace file.\n"
    );
    let files = Files::new();
    let said = document(&["--what-if=array=100"], &[&files.file("t.txt", report)]);
    assert_eq!(
        (&said["kind"], &said["response_ns"]),
        (&"tkprof".into(), &2_000_000_000_u64.into())
    );
    let read = &said["tables"]["profile"][0];
    assert_eq!(
        (&read["component"], &read["time_ns"], &read["calls"], &read["time_ns_max"]),
        (
            &"db file sequential read".into(),
            &1_200_000_000_u64.into(),
            &200.into(),
            &50_000_000.into()
        )
    );
    let statement = &said["tables"]["statements"][0];
    assert_eq!((&statement["id"], &statement["executions"]), (&"4y53369cbbaqf".into(), &1.into()));
}

#[test]
fn two_traces_are_compared_by_component_and_statement() {
    let _turn = Turn::beside();
    let files = Files::new();
    let a = files.file("a.log", SLOW);
    let b = files.file("b.log", SLOW.replace("2.5", "5.0"));
    let said = run(Command::new(blockstone_binary())
        .args(["trace", "--json"])
        .arg(&a)
        .arg("--against")
        .arg(&b));
    let said = said.json();
    keeps_to_its_schema(&said);
    let sides = &said["tables"]["sides"];
    assert_eq!((&sides[0]["side"], &sides[1]["side"]), (&"A".into(), &"B".into()));
    assert_eq!(sides[1]["response_ns"], 6_500_000_000_u64);
    let row = &said["tables"]["statements"][0];
    assert_eq!((&row["difference_ns"], &row["ratio"]), (&2_500_000_000_u64.into(), &1.625.into()));
    let c = files.file("c.trc", ORACLE);
    let mixed =
        run(Command::new(blockstone_binary()).arg("trace").arg(&a).arg("--against").arg(&c));
    assert!(mixed.code == Some(2) && mixed.stderr.contains("different kinds"), "{mixed:#?}");
}

#[test]
fn other_files_are_refused_by_kind() {
    let _turn = Turn::beside();
    let files = Files::new();
    let refused: [(&str, &[u8], &str); 6] = [
        ("empty", b"", "empty"),
        ("binary", b"\0\x01\x02rest", "binary"),
        ("unknown", b"hello\n", "not known"),
        ("10053", b"*** 2026\nQUERY BLOCK SIGNATURE\n", "10053"),
        ("deadlock", b"DEADLOCK DETECTED ( ORA-00060 )\n", "deadlock"),
        ("listener", b"TNSLSNR for Linux: Version 19\n", "listener"),
    ];
    for (name, bytes, what) in refused {
        let ran = trace(&[], &[&files.file(name, bytes)]);
        assert_eq!(ran.code, Some(2), "{ran:#?}");
        let first = ran.stderr.lines().next().unwrap();
        assert!(first.contains(what) && first.contains(name), "{ran:#?}");
        assert!(ran.stderr.contains("hint:") && ran.stdout.is_empty(), "{ran:#?}");
    }
    let (slow, oracle) = (files.file("slow.log", SLOW), files.file("ora.trc", ORACLE));
    for (arguments, files) in [
        (&[][..], &[slow.as_path(), &oracle][..]),
        (&[], &[Path::new("/nowhere")]),
        (&["--what-if", "array=0"], &[&slow]),
        (&["--sample-rate", "2"], &[&slow]),
        (&["--style", "tkprof", "--json"], &[&slow]),
        (&["--calibration", "nowhere"], &[&slow]),
    ] {
        let ran = trace(arguments, files);
        assert_eq!(ran.code, Some(2), "{arguments:?} {ran:#?}");
    }
}

#[test]
fn reads_stand_beside_those_of_the_device_and_not_of_memory() {
    let _turn = Turn::beside();
    let scratch = ScratchDir::on_disk().unwrap();
    let (file, device) = (scratch.path().join("orcl.trc"), scratch.path().join("calibration"));
    fs::write(&file, ORACLE).unwrap();
    // Two points to ignore: same size and depth as reads of the device, but listed before them.
    let points = [
        ("overhead/null", 1_000_000, 300),
        ("cache-map/4M", 500_000, 1_500),
        ("random-read/psync/x1", 500, 2_000_000),
    ];
    made::calibration(&device, &points);
    let found = document(&["--calibration", device.to_str().unwrap()], &[&file]);
    let table = &found["tables"]["device"];
    let row = &table[0];
    let median = row["device_ns_p50"].as_f64().unwrap_or_else(|| panic!("{table:#}"));
    assert!((median / 2e6 - 1.0).abs() < 0.01, "{table:#}");
    assert!((row["of_device"].as_f64().unwrap() - 4.0).abs() < 0.05, "8 ms in the trace: {row}");
}
