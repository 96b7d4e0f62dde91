//! A subset whose foreign keys do not hold.

use blockstone_base::rule::{About, Judgement, RuleOf};
use blockstone_base::units::thousands;
use blockstone_base::verdict::Weight;

use super::SubsetFindings;

/// Maximum number of keys that the evidence names.
const NAMED: usize = 5;

const ABOUT: About = About {
    id: "orphans",
    weight: Weight::Condemns,
    doc: "Rows of a subset reference rows that are not in it: its foreign keys cannot be created, \
          and joins lose rows. After `subset load` orphans are counted in the destination with an \
          anti-join for each key; before, each value that a row references must have been found.",
    threshold: "One row whose key references no row, of any foreign key. A sample of --naive is \
                warned of only. Inconclusive where a referenced row was not found in the source.",
    cause: "Each table was sampled by itself (--naive); or the source has rows whose key does not \
            hold: the key is NOT VALID there, or declared by the user.",
    next: "Use blockstone subset without --naive. For a key that does not hold in the source, \
           delete its orphans there or leave the key out.",
};

pub(super) const RULE: RuleOf<SubsetFindings> = RuleOf::new(&ABOUT, check);

fn check(findings: &SubsetFindings) -> Judgement {
    let broken =
        findings.keys.iter().filter_map(|key| Some((key, key.orphans.filter(|&it| it > 0)?)));
    let broken: Vec<_> = broken.collect();
    let unknown = findings.keys.iter().filter(|key| key.orphans.is_none());
    let unknown: Vec<&str> = unknown.map(|key| key.name.as_str()).collect();
    if broken.is_empty() && !unknown.is_empty() {
        return Judgement::inconclusive(format!(
            "rows that are referenced by {} were not found in the source",
            unknown[..unknown.len().min(NAMED)].join(", ")
        ));
    }
    let sum: u64 = broken.iter().map(|(_, orphans)| orphans).sum();
    let evidence = if broken.is_empty() {
        format!("0 orphans of {} keys", findings.keys.len())
    } else {
        let named = broken.iter().take(NAMED);
        let named =
            named.map(|(key, orphans)| format!("{} {}", key.name, thousands(*orphans as i64)));
        format!(
            "{} orphans of {} keys: {}",
            thousands(sum as i64),
            broken.len(),
            named.collect::<Vec<_>>().join(", ")
        )
    };
    let concerns = broken.iter().map(|(key, _)| key.name.clone()).collect();
    let judged = Judgement::decide(!broken.is_empty(), evidence, concerns);
    Judgement { weight: findings.naive.then_some(Weight::Warns), ..judged }
}
