//! Claims as they are published, and the tables of the documentation, recomputed.

use std::path::Path;

use blockstone_base::link::{
    Carried, ETHERNET_SOURCE, FAMILIES, Family, Generation, PROTOCOLS, Protocol,
};
use blockstone_base::units::three_digits;
use blockstone_report::{Card, format};

use super::{grammar, report, rules};

/// Outcome and text of claims as people write them.
const PUBLISHED: &str = include_str!("published.txt");

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

/// Compares a page with what its lines are when they are recomputed, or updates it.
fn is_up_to_date(page: &str, recompute: impl Fn(&str) -> String) {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs").join(page);
    let recomputed = recompute(&std::fs::read_to_string(&file).unwrap());
    if std::env::var_os("UPDATE_EXPECTED").is_some() {
        std::fs::write(&file, &recomputed).unwrap();
    }
    let written = std::fs::read_to_string(&file).unwrap();
    for (written, recomputed) in written.lines().zip(recomputed.lines()) {
        assert_eq!(written, recomputed);
    }
    assert_eq!(written.lines().count(), recomputed.lines().count());
}

#[test]
fn worked_examples_are_recomputed() {
    is_up_to_date("claim-examples.md", |page| {
        let lines = page.lines().map(|line| {
            let claim = line.strip_prefix("| `").and_then(|line| Some(line.split_once('`')?.0));
            claim.map_or_else(|| line.to_owned(), row) + "\n"
        });
        lines.collect()
    });
}

#[test]
fn published_claims_are_judged_or_refused() {
    let mut seen = Vec::new();
    for line in PUBLISHED.lines() {
        let (expected, claim) = line.split_once('|').unwrap();
        let outcome = match grammar::parse(claim) {
            Ok(stated) => rules::answer(&stated).0.name(),
            Err(_) => "refused",
        };
        assert_eq!(outcome, expected, "{claim}");
        seen.push(outcome);
    }
    for outcome in ["possible", "unknown", "memory", "above-link", "wrong-unit", "contradiction"] {
        assert!(seen.contains(&outcome), "{outcome}");
    }
}

fn of_family(family: &'static Family) -> impl Iterator<Item = String> {
    let [payload, frame] = [family.payload, family.frame].map(three_digits);
    family.generations.iter().map(move |generation: &Generation| {
        let carries = generation.bytes_per_s() * family.frame_share() / 1e6;
        let carries = match carries {
            ..1e3 => format!("{carries:.1}"),
            _ => three_digits(carries),
        };
        format!(
            "| {} | {} Gb/s | {} | {payload} of {frame} | {carries} MB/s | {}; {} |\n",
            generation.name,
            generation.signalled,
            generation.code.name,
            generation.source,
            family.source
        )
    })
}

fn links() -> String {
    let head = "\
| link | on the wire | line code | data in a full frame | carries | source |
|---|---|---|---|---|---|
";
    head.to_owned() + &FAMILIES.into_iter().flat_map(of_family).collect::<String>()
}

fn ethernet() -> String {
    let carries = |protocol: Option<Protocol>, mtu| {
        let share = Carried { protocol, mtu: Some(mtu) }.share();
        format!("{:.2} MB/s", share * 125.0)
    };
    let row = |name: &str, protocol, source: &str| {
        let [small, jumbo] = [1_500, 9_000].map(|mtu| carries(protocol, mtu));
        format!("| {name} | {small} | {jumbo} | {source} |\n")
    };
    let head = "| over Ethernet | MTU 1,500 | MTU 9,000 | source |\n|---|---|---|---|\n";
    let bare = row("frames", None, ETHERNET_SOURCE);
    let protocols = PROTOCOLS.into_iter();
    let protocols = protocols.map(|(it, source)| row(it.name(), Some(it), source));
    head.to_owned() + &bare + &protocols.collect::<String>()
}

#[test]
fn tables_of_links_are_those_of_their_declaration() {
    is_up_to_date("claim.md", |page| {
        let mut page = page.to_owned();
        for (name, table) in [("links", links()), ("ethernet", ethernet())] {
            let (open, close) = (format!("<!-- {name} -->\n"), format!("<!-- end of {name} -->"));
            let (before, rest) = page.split_once(&open).unwrap();
            let (_, after) = rest.split_once(&close).unwrap();
            page = format!("{before}{open}{table}{close}{after}");
        }
        page
    });
}
