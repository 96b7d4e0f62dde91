//! Two parts of watched time as one page: of each view what differs, and folded what does not.

use blockstone_base::Estimate;
use blockstone_view::{Difference, Outcome, Value, View, registry};

use super::fill;
use super::table::Table;
use super::watch::{Page, Section};
use crate::ReportError;
use crate::format::{self, optional};

/// Renders the differences between what is called `names`, found by this version of the tool.
///
/// # Errors
/// When the template cannot be filled in, which its tests exclude.
pub fn page(
    names: [&str; 2],
    tool_version: &str,
    found: &[Difference],
) -> Result<String, ReportError> {
    let number = |outcome: Outcome| found.iter().filter(|one| one.outcome == outcome).count();
    let facts = vec![
        ("A", names[0].to_owned()),
        ("B", names[1].to_owned()),
        ("higher in B", number(Outcome::Higher).to_string()),
        ("lower in B", number(Outcome::Lower).to_string()),
        ("difference not established", number(Outcome::NotEstablished).to_string()),
        ("in one only", number(Outcome::OnlyInOne).to_string()),
    ];
    let page = Page {
        verb: "compare",
        // Of which of the two, their names say.
        imported: None,
        host: "What changed from A to B".to_owned(),
        identity: vec![
            "each row stands at 95 %: of twenty without a difference one shows one by chance"
                .to_owned(),
        ],
        facts,
        sections: registry::ALL.iter().filter_map(|view| section(view, found)).collect(),
        tool_version: tool_version.to_owned(),
        recording: names.join(" and "),
    };
    fill("watch.html", &page)
}

/// What a view has to say; none where neither side has it.
fn section(view: &'static View, found: &[Difference]) -> Option<Section> {
    let own = found.iter().filter(|one| one.view.name == view.name);
    let (differing, others): (Vec<&Difference>, Vec<&Difference>) =
        own.partition(|one| matches!(one.outcome, Outcome::Higher | Outcome::Lower));
    let parts = [("Higher or lower", differing, false), ("Everything else", others, true)];
    let tables = parts.into_iter().filter(|(_, rows, _)| !rows.is_empty());
    let tables: Vec<Table> = tables
        .map(|(caption, rows, folded)| {
            let columns = ["what", "A", "B", "B ÷ A", "95 % of it", "outcome"];
            let mut table = Table::of_numbers(caption, &columns);
            for row in rows {
                table.row(format!("{} {}", row.row, row.column.heading).trim(), cells(row));
            }
            if folded { table.folded() } else { table }
        })
        .collect();
    let section = Section {
        id: view.name,
        title: view.title,
        intro: view.doc,
        charts: Vec::new(),
        tables,
        reasons: Vec::new(),
    };
    (!section.tables.is_empty()).then_some(section)
}

fn cells(found: &Difference) -> Vec<String> {
    let value = |estimate: Option<Estimate>| {
        optional(estimate, |e| format::value(&Value::Number(e.value), found.column.measure))
    };
    let outcome = match found.outcome {
        Outcome::OnlyInOne => "in one only",
        other => other.words(),
    };
    vec![
        value(found.a),
        value(found.b),
        optional(found.ratio, |ratio| format::number(ratio.value, "")),
        optional(found.ratio, |ratio| format::interval(&ratio, "")),
        outcome.to_owned(),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_differs_stands_open_and_the_rest_is_folded_and_no_name_is_markup() {
        let estimate = |value: f64| Estimate {
            value,
            low: value * 0.9,
            high: value * 1.1,
            samples: 9,
            duration_ns: 1,
        };
        let view = registry::find("disks").unwrap();
        let one = |row: &str, b: f64, outcome| Difference {
            view,
            row: row.to_owned(),
            column: &view.columns[3],
            a: Some(estimate(100.0)),
            b: Some(estimate(b)),
            ratio: Some(estimate(b / 100.0)),
            outcome,
        };
        let found =
            [one("vda", 300.0, Outcome::Higher), one("<i>", 101.0, Outcome::NotEstablished)];
        let page = page(["night@..2h", "night@2h.."], "1.2.3", &found).unwrap();
        for text in ["night@..2h", "vda read", "<td>3</td>", "2.7 – 3.3", "<details>", "1.2.3"] {
            assert!(page.contains(text), "{text} is not on the page");
        }
        assert!(page.contains("&lt;i&gt; read") && !page.contains("<i> read"));
        assert!(page.find("vda read").unwrap() < page.find("<details>").unwrap());
    }
}
