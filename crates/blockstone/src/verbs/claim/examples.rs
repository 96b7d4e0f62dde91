//! The worked examples in docs/claim-examples.md, recomputed.

use std::path::Path;

use blockstone_report::{Card, format};

use super::{grammar, report, rules};

/// Returns a row of the table.
fn row(claim: &str) -> String {
    let stated = grammar::parse(claim).unwrap();
    let (answer, verdicts) = rules::answer(&stated);
    let report = report::report(&stated, answer, verdicts);
    let told = |card: &Card| {
        format!("{} {}", card.title, format::quantity(card.estimate.value, &card.unit))
    };
    let told: Vec<String> = report.cards.iter().map(told).collect();
    format!("| `{claim}` | {} | {} |", answer.name(), told.join(", "))
}

#[test]
fn worked_examples_are_recomputed() {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/claim-examples.md");
    let page = std::fs::read_to_string(&file).unwrap();
    let recomputed = page.lines().map(|line| {
        let claim = line.strip_prefix("| `").and_then(|line| Some(line.split_once('`')?.0));
        claim.map_or_else(|| line.to_owned(), row) + "\n"
    });
    let recomputed: String = recomputed.collect();
    if std::env::var_os("UPDATE_EXPECTED").is_some() {
        std::fs::write(&file, &recomputed).unwrap();
    }
    let page = std::fs::read_to_string(&file).unwrap();
    for (written, recomputed) in page.lines().zip(recomputed.lines()) {
        assert_eq!(written, recomputed);
    }
    assert!(page.matches("| contradiction |").count() >= 3, "{page}");
}
