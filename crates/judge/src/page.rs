//! docs/verdicts.md, generated from the registry.

use std::fmt::Write;

use blockstone_base::verdict::Weight;

use crate::rules::registry;
use crate::run::rules::registry as run_registry;

/// The page, ending in one newline. `cargo xtask` writes it and checks that it is current.
pub fn rules_page() -> String {
    let mut page = String::from(INTRODUCTION);
    let of_calibrations = registry::ALL.iter().map(|rule| Entry {
        heading: rule.id.to_owned(),
        id: rule.id,
        weight: weight(rule.weight),
        texts: [rule.doc, rule.threshold, rule.cause, rule.next],
    });
    append(&mut page, &of_calibrations.collect::<Vec<_>>());
    page.push_str(OF_RUNS);
    let of_runs = run_registry::ALL.iter().map(|rule| Entry {
        heading: format!("run: {}", rule.id),
        id: rule.id,
        weight: weight(rule.weight),
        texts: [rule.doc, rule.threshold, rule.cause, rule.next],
    });
    append(&mut page, &of_runs.collect::<Vec<_>>());
    page
}

/// A rule as the page shows it; its texts are what it looks for, threshold, cause and next.
struct Entry {
    heading: String,
    id: &'static str,
    weight: &'static str,
    texts: [&'static str; 4],
}

/// The rows of the table, then a chapter a rule.
fn append(page: &mut String, entries: &[Entry]) {
    for Entry { heading, id, weight, texts: [doc, ..] } in entries {
        // As renderers make an anchor of a heading.
        let anchor = heading.replace(": ", "-");
        let _ = writeln!(page, "| [{id}](#{anchor}) | {weight} | {doc} |");
    }
    for Entry { heading, weight, texts: [doc, threshold, cause, next], .. } in entries {
        let _ = write!(
            page,
            "\n## {heading}\n{doc}\n\n- **Weight**: {weight}.\n- **Threshold**: {threshold}\n\
             - **Likely cause**: {cause}\n- **Next**: {next}\n"
        );
    }
}

const OF_RUNS: &str = "
# Verdicts on workload runs
The recording of `blockstone run` is judged by these. A rule of the same name asks the same question
as of a calibration.

| rule | weight | what it looks for |
|---|---|---|
";

const INTRODUCTION: &str = "\
# Verdicts
<!-- Generated from the rules of crates/judge by `cargo xtask generate`; do not edit. -->

The recording of a calibration is judged by every rule of the first table, that of a workload run by
every rule of the second. A verdict is *pass* (the evidence was there and shows nothing wrong),
*fail* (it shows the fault) or *inconclusive* (the evidence was missing or does not decide; never
counted as a pass).

A rule that **condemns** strikes the figures it concerns through, and the command ends with exit
code 3: they do not describe the storage. A rule that **warns** lets them stand with the warning
beside them. Where a rule's evidence may be stronger or weaker than usual, its threshold says when
the weight changes.

| rule | weight | what it looks for |
|---|---|---|
";

const fn weight(weight: Weight) -> &'static str {
    match weight {
        Weight::Condemns => "condemns",
        Weight::Warns => "warns",
    }
}
