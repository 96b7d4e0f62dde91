//! A comparison as a screen. `UPDATE_EXPECTED=1 cargo test -p blockstone-report` writes the
//! expected text; read the difference before committing it.

use std::path::Path;

use blockstone_judge::compare;
use blockstone_report::terminal::{self, Style};

use crate::fixture::Fixture;

const PLAIN: Style = Style { color: false, width: 100 };

fn expect(name: &str, text: &str) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/report/expected").join(name);
    if std::env::var_os("UPDATE_EXPECTED").is_some() {
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, text).unwrap();
    }
    let expected = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(text == expected, "{name} changed; it is now\n{text}\nand was\n{expected}");
}

#[test]
fn a_comparison_names_what_differs_and_counts_the_rest() {
    let (a, b) = two();
    let comparison =
        compare((&a.recording.manifest, &a.findings), (&b.recording.manifest, &b.findings));
    expect("compare.txt", &terminal::compare_terminal(&comparison, &PLAIN));
}

/// The fixture, and the same with commits half as fast and cached reads condemned.
pub fn two() -> (Fixture, Fixture) {
    let (a, mut b) = (Fixture::clean(), Fixture::clean());
    for (name, figure) in &mut b.findings.summary {
        if name.starts_with("commit_latency") {
            figure.estimate = figure.estimate.scaled(2.0);
        }
        if name == "cached_read_mbps" {
            figure.condemned_by = vec!["memory-test".to_owned()];
        }
    }
    for point in b.findings.points.iter_mut().filter(|p| p.label.starts_with("commit/fsync")) {
        point.iops = point.iops.scaled(0.5);
    }
    (a, b)
}
