//! Generator of docs/verdicts.md from the rules of all verbs.

use std::fmt::Write;

use blockstone_base::rule::About;
use blockstone_base::verdict::Weight;
use blockstone_judge::rules::registry;

use crate::verbs;

/// Returns the page, ending in one newline. `cargo xtask` writes it and checks that it is current.
pub fn rules_page() -> String {
    let mut page = String::from(INTRODUCTION);
    let rules = rules();
    for (About { id, doc, weight: of, .. }, verbs) in &rules {
        let (weight, verbs) = (weight(*of), verbs.join(", "));
        let _ = writeln!(page, "| [{id}](#{id}) | {verbs} | {weight} | {doc} |");
    }
    for (About { id, doc, threshold, cause, next, weight: of }, verbs) in &rules {
        let (weight, verbs) = (weight(*of), verbs.join(", "));
        let about = if registry::is_of_storage(id) { ", of the storage itself" } else { "" };
        let _ = write!(
            page,
            "\n## {id}\n{doc}\n\n- **Applies to**: {verbs}.\n- **Weight**: {weight}{about}.\n\
             - **Threshold**: {threshold}\n- **Likely cause**: {cause}\n- **Next**: {next}\n"
        );
    }
    page
}

/// Returns each rule once, with the verbs whose findings it judges.
pub(crate) fn rules() -> Vec<(&'static About, Vec<&'static str>)> {
    let mut rules: Vec<(&About, Vec<&str>)> = Vec::new();
    for listed in verbs::ALL.iter().flat_map(|verb| (verb.rules)()) {
        match rules.iter_mut().find(|(about, _)| about.id == listed.about.id) {
            Some((_, verbs)) => verbs.push(listed.verb),
            None => rules.push((listed.about, vec![listed.verb])),
        }
    }
    rules
}

const INTRODUCTION: &str = "\
# Verdicts
<!-- Generated from the rules of all verbs by `cargo xtask generate`; do not edit. -->

A recording is judged by every rule that applies to the verb that made it. A verdict is *pass* (the
evidence was there and shows nothing wrong), *fail* (it shows the fault) or *inconclusive* (the
evidence was missing or does not decide; never counted as a pass). On a terminal the marks are `✓`
for a pass, `!` and `✗` for a fault that warns or condemns, and `?` for inconclusive. Several that
are inconclusive share one line; `--verbose`, `--json` and the page have the evidence of each.

Some are inconclusive in most runs: a virtual machine hides its disks from a few rules, and others
need a longer run. They condemn nothing and do not change the exit code of `run`, `calibrate` or
`watch`. In `check`, a question that stays without an answer ends with exit code 3.

A rule that **condemns** strikes through the figures it concerns: they do not describe the storage.
The command ends with exit code 3, unless limits were given ([exit codes](exit-codes.md)). A rule
that **warns** lets them stand with the warning beside them. Where a rule's evidence may be stronger
or weaker than usual, its threshold says when the weight changes. Cause and advice are those of a
calibration where a rule applies to several verbs; a verdict names the ones that fit its recording.

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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_rule_has_an_id_of_its_own_and_a_complete_section() {
        let page = rules_page();
        for listed in verbs::ALL.iter().flat_map(|verb| (verb.rules)()) {
            let About { id, doc, threshold, cause, next, .. } = listed.about;
            let kebab = |c: char| c.is_ascii_lowercase() || c == '-';
            assert!(id.chars().all(kebab) && !id.starts_with('-'), "{id}");
            for text in [doc, threshold, cause, next] {
                assert!(text.len() > 10 && text.ends_with('.'), "{id}: {text}");
                assert!(!text.contains("  "), "{id}: a gap in {text}");
            }
            assert_eq!(page.matches(&format!("\n## {id}\n")).count(), 1, "{id}");
            let (about, _) = rules().into_iter().find(|(about, _)| about.id == *id).unwrap();
            assert!(about == listed.about, "two rules are called {id}");
        }
    }
}
