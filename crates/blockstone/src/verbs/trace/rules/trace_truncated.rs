//! A trace whose beginning or end is missing.

use blockstone_base::rule::{About, Judgement, RuleOf};
use blockstone_base::verdict::Weight;

use super::TraceFindings;

/// Share of skipped lines that is normal: every log has lines of other kinds.
const SKIPPED_MAX: f64 = 0.01;

const ABOUT: About = About {
    id: "trace-truncated",
    weight: Weight::Warns,
    doc: "A file of the trace ends inside a line or was limited in size, or lines of it could not \
          be understood: what they said is missing in all sums.",
    threshold: "Any file that was cut, or more than 1 % of the lines skipped.",
    cause: "max_dump_file_size, a full disk, a copy taken while the server still wrote, or a log \
            that was edited.",
    next: "Trace again with max_dump_file_size = unlimited, and copy the file after the session \
           has ended.",
};

pub(super) const RULE: RuleOf<TraceFindings> = RuleOf::new(&ABOUT, check);

fn check(findings: &TraceFindings) -> Judgement {
    let skipped = findings.skipped_lines as f64 / findings.lines.max(1) as f64;
    let evidence = format!(
        "files that were cut: {}; lines that were skipped: {}",
        findings.cut_files, findings.skipped_lines
    );
    let failed = findings.cut_files > 0 || skipped > SKIPPED_MAX;
    Judgement::decide(failed, evidence, vec!["response_ns".to_owned()])
}
