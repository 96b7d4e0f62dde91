//! Appends of several writers that overwrite each other.

use blockstone_base::rule::{About, Judgement, RuleOf};
use blockstone_base::verdict::Weight;
use blockstone_check::order::findings::{Mode, OrderFindings};

const ABOUT: About = About {
    id: "appends-lost",
    weight: Weight::Warns,
    doc: "Several writers append to one file, each append is acknowledged, and some are missing: \
          another was written in the same place.",
    threshold: "After writers have appended to one file (RWF_APPEND), it is shorter than all that \
                was acknowledged. Inconclusive where nobody or only one writer could append.",
    cause: "The file system lets direct writers share the lock of the file while each looks for \
            its end, so that two find the same one, as XFS does.",
    next: "Have the writers agree on the places, in room that is allocated ahead; or let one \
           writer append for all; or append through the page cache.",
};

pub(super) const RULE: RuleOf<OrderFindings> = RuleOf::new(&ABOUT, check);

fn check(findings: &OrderFindings) -> Judgement {
    if findings.is_device {
        return Judgement::pass("nobody appends to a device");
    }
    let mut cells = findings.largest().filter(|cell| cell.writers > 1);
    let found = cells.find(|cell| cell.mode == Mode::Append).map(|cell| cell.one_file);
    let Some(side) = found.filter(|side| side.requests > 0) else {
        return Judgement::inconclusive("several writers did not append to a file");
    };
    let (lost, requests) = (side.lost, side.requests);
    if lost == 0 {
        return Judgement::pass(format!("the file has all of {requests} appends"));
    }
    let share = lost as f64 / requests as f64 * 100.0;
    let evidence = format!("{lost} of {requests} appends ({share:.0} %) are missing from the file");
    Judgement::fail(evidence, vec![Mode::Append.name().to_owned()])
}
