//! docs/verdicts.md, generated from the registry.

use std::fmt::Write;

use blockstone_base::verdict::Weight;

use crate::rules::{Rule, Subject, registry};

/// The page, ending in one newline. `cargo xtask` writes it and checks that it is current.
pub fn rules_page() -> String {
    let mut page = String::from(INTRODUCTION);
    for rule in registry::ALL {
        let Rule { id, doc, .. } = rule;
        let weight = weight(rule.weight);
        let _ = writeln!(page, "| [{id}](#{id}) | {} | {weight} | {doc} |", subjects(rule));
    }
    for rule in registry::ALL {
        let Rule { id, doc, threshold, cause, next, .. } = rule;
        let weight = weight(rule.weight);
        let about = if registry::is_of_storage(id) { ", of the storage itself" } else { "" };
        let _ = write!(
            page,
            "\n## {id}\n{doc}\n\n- **Applies to**: {}.\n- **Weight**: {weight}{about}.\n\
             - **Threshold**: {threshold}\n- **Likely cause**: {cause}\n- **Next**: {next}\n",
            subjects(rule)
        );
    }
    page
}

/// The verbs whose recordings a rule judges: `calibrate, run`.
fn subjects(rule: &Rule) -> String {
    let verbs: Vec<&str> = rule.applies_to().map(Subject::name).collect();
    verbs.join(", ")
}

const INTRODUCTION: &str = "\
# Verdicts
<!-- Generated from the rules of crates/judge by `cargo xtask generate`; do not edit. -->

A recording is judged by every rule that applies to the verb that made it. A verdict is *pass* (the
evidence was there and shows nothing wrong), *fail* (it shows the fault) or *inconclusive* (the
evidence was missing or does not decide; never counted as a pass). On a terminal, several that are
inconclusive share one line; `--verbose`, `--json` and the page have the evidence of each.

A rule that **condemns** strikes through the figures it concerns, and the command ends with exit
code 3: they do not describe the storage. A rule that **warns** lets them stand with the warning
beside them. Where a rule's evidence may be stronger or weaker than usual, its threshold says when
the weight changes. Cause and advice are those of a calibration where a rule applies to several
verbs; a verdict names the ones that fit its recording.

`compare` calls a figure that differs faster or slower if the rules that warn of it warn *of the
storage itself*, such as of a cap. Where another rule warns of it, the difference may have a cause
outside the storage, and the figure is only higher or lower. The rule's name stands beside it.

| rule | applies to | weight | what it looks for |
|---|---|---|---|
";

const fn weight(weight: Weight) -> &'static str {
    match weight {
        Weight::Condemns => "condemns",
        Weight::Warns => "warns",
    }
}
