//! Bytes of connections that differ from those of the interface that they crossed.

use blockstone_base::rule::{About, Judgement, RuleOf};
use blockstone_base::units::three_digits;
use blockstone_base::verdict::Weight;

use super::OffloadFindings;

const APART_MAX: f64 = 0.005;
/// Room for a few headers, which are a large part of the traffic of a count.
const BYTES_MAX: f64 = 256.0;

const ABOUT: About = About {
    id: "wire-disagrees",
    weight: Weight::Condemns,
    doc: "Bytes on the wire are counted for each connection, payload and headers. Where nothing \
          else crosses the interface, its own counter must agree.",
    threshold: "More than 0.5 % and 256 bytes apart in a run. Inconclusive where the interface \
                carries other traffic, or is not known.",
    cause: "Something else crossed the interface, a connection was made and closed in between, or \
            segments were sent again that one of the two does not count.",
    next: "Run it again, as root: then the servers have a network namespace of their own.",
};

pub(super) const RULE: RuleOf<OffloadFindings> = RuleOf::new(&ABOUT, check);

fn check(findings: &OffloadFindings) -> Judgement {
    let known = findings.runs.iter().filter_map(|run| {
        let (wire, interface) = (run.wire_bytes? as f64, run.interface_bytes? as f64);
        let bytes = (wire - interface).abs();
        let apart = if bytes > BYTES_MAX { bytes / interface } else { 0.0 };
        (interface > 0.0).then(|| (run.name.clone(), apart))
    });
    let known: Vec<(String, f64)> = known.collect();
    let Some((name, most)) = known.iter().max_by(|a, b| a.1.total_cmp(&b.1)) else {
        return Judgement::inconclusive("no run has an interface of its own");
    };
    let evidence = format!("{} % apart at most, in {name}", three_digits(*most * 100.0));
    let failed = known.iter().filter(|(_, it)| *it > APART_MAX);
    let failed: Vec<String> = failed.map(|(name, _)| name.clone()).collect();
    Judgement::decide(!failed.is_empty(), evidence, failed)
}
