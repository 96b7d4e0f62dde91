//! Reports by databases: their kinds and containers, and times that are unknown.

use serde_json::json;

use super::*;

/// An AWR report as text, of an hour with 200 reads and 100 writes a second.
fn report(first_line: &str, container: &str, date: &str) -> String {
    let container = if container.is_empty() {
        String::new()
    } else {
        format!(
            "
Container DB Id  Container Name       Open Time
--------------- --------------- ---------------
            815 {container:<15} 01-May-24 08:01
"
        )
    };
    format!(
        "{first_line}

DB Name         DB Id    Instance     Inst Num Startup Time    Release     RAC
------------ ----------- ------------ -------- --------------- ----------- ---
SALES               4711 sales1              1 01-May-24 08:00 19.0.0.0.0  NO
{container}
              Snap Id      Snap Time      Sessions Curs/Sess
            --------- ------------------- -------- ---------
Begin Snap:       100 {date} 10:00:00       121       2.0
  End Snap:       101 {date} 11:00:00        58       2.0
   Elapsed:               60.01 (mins)

Instance Activity Stats    DB/Inst: SALES/sales1  Snaps: 100-101

Statistic                                     Total     per Second     per Trans
-------------------------------- ------------------ -------------- -------------
physical read total IO requests             720,072          200.0          20.0
physical write total IO requests            360,036          100.0          10.0
redo size                             3,600,360,000    1,000,000.0     100,000.0
          -------------------------------------------------------------

End of Report
"
    )
}

#[test]
fn sources_name_their_kind_and_container_and_a_part_is_not_added_to_its_whole() {
    let _turn = Turn::beside();
    let scratch = ScratchDir::on_disk().unwrap();
    let write = |name: &str, text: &str| {
        let path = scratch.path().join(name);
        std::fs::write(&path, text).unwrap();
        path.display().to_string()
    };
    let first =
        ["WORKLOAD REPOSITORY report for", "WORKLOAD REPOSITORY PDB report (PDB snapshots)"];
    let whole = write("cdb.txt", &report(first[0], "", "14-May-24"));
    let part = write("pdb.txt", &report(first[1], "PDB1", "14-May-24"));
    let undated = write("when.txt", &report(first[0], "", "14-???-24"));

    let nothing = json!({ "unmeasured": "nothing happened" });
    let source = |path: &str| document(&[path])["tables"]["sources"][0].clone();
    let of_whole = source(&whole);
    assert_eq!((&of_whole["kind"], &of_whole["container"]), (&json!("awr"), &nothing));
    assert_eq!(
        (&of_whole["begin"], &of_whole["name"]),
        (&json!("2024-05-14T10:00:00"), &json!("SALES/1"))
    );
    let of_part = source(&part);
    assert_eq!((&of_part["kind"], &of_part["container"]), (&json!("awr"), &json!("PDB1")));
    assert_eq!(of_part["name"], "SALES:PDB1/1");
    let of_undated = source(&undated);
    assert_eq!(of_undated["begin"], json!({ "unmeasured": "unknown" }));
    assert_eq!(of_undated["reads_per_s"], of_whole["reads_per_s"]);
    assert_eq!(of_whole["reads_per_s"], 200.0);

    let csv = write(
        "hr.csv",
        "begin,end,database,reads_per_s,writes_per_s\n2024-05-14T10:00,2024-05-14T11:00,HR,1,1\n",
    );
    assert_eq!(source(&csv)["kind"], "csv");
    for (paths, said) in [
        ([&whole, &part], "size SALES:PDB1 with the database that it is in"),
        ([&undated, &csv], "size SALES with others: when its load was is unknown"),
    ] {
        let refused = size(&[paths[0], paths[1], "--merge"]);
        assert_eq!(refused.code, Some(2), "{refused:#?}");
        assert!(refused.stderr.contains(said), "{refused:#?}");
    }
}

#[test]
fn a_report_without_its_tables_is_refused_for_that_reason() {
    let _turn = Turn::beside();
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("awr.txt");
    let whole = report("WORKLOAD REPOSITORY report for", "", "01-May-24");
    let (head, _) = whole.split_once("End Snap:").unwrap();
    let end = "End Snap:       101 01-May-24 11:00:00        58       2.0\n   \
               Elapsed:               60.00 (mins)\n";
    std::fs::write(&file, format!("{head}{end}")).unwrap();
    let ran = size(&[file.to_str().unwrap()]);
    assert_eq!(ran.code, Some(2), "{ran:#?}");
    assert!(ran.stderr.contains("its end is missing, and with it: "), "{ran:#?}");
    assert!(!ran.stderr.contains("two snapshots"), "{ran:#?}");
}
