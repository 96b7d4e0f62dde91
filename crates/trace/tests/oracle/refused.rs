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
