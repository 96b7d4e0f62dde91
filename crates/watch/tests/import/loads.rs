//! Imports of load statistics kept by databases.

use blockstone_base::database::OF_LOAD;
use blockstone_base::hint::Hint as _;

use super::*;

/// Two instances; the first has a gap, and its writes are unknown once.
const LOADS: &str = "\
begin,end,database,instance,reads_per_s,writes_per_s,cpu_s,cores
2024-05-14T10:00:00,2024-05-14T11:00:00,SALES,1,100,50,360,4
2024-05-14T11:00:00,2024-05-14T12:00:00,SALES,1,200,,360,4
2024-05-14T12:00:00,2024-05-14T13:00:00,SALES,1,300,70,360,4
2024-05-14T15:00:00,2024-05-14T16:00:00,SALES,1,400,80,360,4
2024-05-14T10:30:00,2024-05-14T11:30:00,SALES,2,10,5,36,4
";

/// From the rows of a load: the hour of the day in which an interval begins, and requests per
/// second.
fn loads(history: &History, object: &str) -> Vec<(f64, f64, Option<f64>)> {
    let rows: Vec<_> = history.rows("database_load").filter(|row| row.object == object).collect();
    let interval = |pair: &[blockstone_view::Sample<'_>]| {
        let grown = |column| Some(pair[1].number(column)? - pair[0].number(column)?);
        let seconds = grown("elapsed_ns").filter(|elapsed_ns| *elapsed_ns > 0.0)? / 1e9;
        let begin_s = history.local_s(pair[0].t_ns)?;
        let rate = |column| Some(grown(column)? / seconds);
        let hour = (begin_s % 86_400.0 / 3_600.0).round();
        Some((hour, rate("read_ios")?, rate("write_ios")))
    };
    rows.windows(2).filter_map(interval).collect()
}

#[test]
fn a_load_is_read_with_its_gap_and_what_is_unknown_and_needs_no_recording() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("sales.csv");
    fs::write(&path, LOADS).unwrap();
    assert!(is_load(&path) && is_load(dir.path()));
    let (recording, history, _) = imported(&path);
    let manifest = &recording.manifest;
    assert_eq!(manifest.imported.as_ref().unwrap().tool, "csv");
    assert_eq!(manifest.started_at, "2024-05-14T10:00:00Z");
    let expected = [
        (10.0, 100.0, Some(50.0)),
        (11.0, 200.0, None),
        (12.0, 300.0, Some(70.0)),
        (15.0, 400.0, Some(80.0)),
    ];
    assert_eq!(loads(&history, "SALES/1"), expected);
    assert_eq!(loads(&history, "SALES/2").len(), 1);
    let whole = history.whole().unwrap();
    assert_eq!(
        whole.moved("database_load", "SALES/1", "read_ios"),
        Err(Missing::Unknown),
        "over the gap"
    );
    assert_eq!(whole.moved("database_load", "SALES/1", "redo_bytes"), Err(Missing::NotInVersion));

    let direct = Import::read(&[path]).unwrap().history().unwrap();
    assert!(direct.ticks().eq(history.ticks()));
    assert_eq!(direct.imported(), history.imported());
    for schema in OF_LOAD {
        let probe = schema.probe;
        let rows = |history: &History| format!("{:?}", history.rows(probe).collect::<Vec<_>>());
        assert_eq!(rows(&direct), rows(&history), "{probe}");
    }
    for (at_ns, file) in direct.ticks().zip(history.ticks()) {
        assert_eq!(direct.time(at_ns), history.time(file));
    }
}

#[test]
fn files_of_a_directory_that_are_no_loads_are_named_and_several_databases_refused() {
    let dir = tempfile::tempdir().unwrap();
    let write = |name: &str, bytes: &[u8]| fs::write(dir.path().join(name), bytes).unwrap();
    write("sales.csv", LOADS.as_bytes());
    write("empty.txt", b" \n");
    write("binary", b"BZh\0\0");
    write("notes.txt", b"hello\n");
    let monitor = "Linux 6.1.0 (h) \t2026-11-20 \t_x86_64_\t(8 CPU)\n\nDevice             tps\n";
    write("iostat.txt", monitor.as_bytes());
    write("diff.html", b"<html><title>AWR Compare Period Report for (1) DB: A</title>\n");
    let import = Import::read(&[dir.path().to_owned()]).unwrap();
    let notes = import.notes().join("\n");
    for part in [
        "empty.txt is not read: it is empty",
        "binary is not read: it is binary",
        "notes.txt is not read: its format is unknown",
        "iostat.txt is not read: reports of a database are read, and this is of iostat; give it",
        "diff.html is not read: a comparison of two periods has no load over time; give the two",
        "SALES: 1 gaps between intervals, the longest of 2.0 h",
    ] {
        assert!(notes.contains(part), "{part}: {notes}");
    }
    assert!(import.summary().starts_with("csv of SALES: "), "{}", import.summary());
    write("other.csv", LOADS.replace("SALES", "STOCK").as_bytes());
    let error = Import::read(&[dir.path().to_owned()]).err().unwrap().told();
    assert!(error.contains("SALES, STOCK") && error.contains("hint: import each"), "{error}");
    let both = Import::read_loads(&[dir.path().to_owned()], false, Databases::Any).unwrap();
    let both = both.history().unwrap();
    assert_eq!(loads(&both, "STOCK/1"), loads(&both, "SALES/1"));
    let diff = Import::read(&[dir.path().join("diff.html")]).err().unwrap().told();
    assert!(diff.contains("diff.html: a comparison of two periods"), "{diff}");
    assert!(diff.contains("\nhint: give the two reports"), "{diff}");
}
