//! Writes where nothing should have been written.

use blockstone_base::rule::{About, Judgement};
use blockstone_base::verdict::Weight;

use super::{RunCase, RunRule, megabytes, read_figures};
use crate::run::has_server;

const ABOUT: About = About {
    id: "silent-writes",
    weight: Weight::Warns,
    doc: "Writes of a database whose sessions only read: hint bits, full-page images, frozen rows \
          or statistics.",
    threshold: "More redo than 1 MB, or more pages written than 1 % of those read.",
    cause: "The first readers of loaded rows mark them as committed (hint bits), and the first \
            mark in a page can write the whole page to the redo.",
    next: "Take this size into account, or repeat the run on rows that were read or vacuumed \
           before.",
};

pub(super) const RUN: RunRule = RunRule::new(&ABOUT, check);

const REDO_BYTES_MAX: u64 = 1_000_000;
const PAGES_RATIO_MAX: f64 = 0.01;

fn check(case: &RunCase) -> Judgement {
    if !has_server(case.window) {
        return Judgement::pass("the miniature instance writes nothing for readers");
    }
    let commits = case.window.grown_of_all("operation", "commits");
    match commits {
        Ok(0) => {}
        Ok(_) => return Judgement::pass("the sessions also wrote"),
        Err(_) => return Judgement::inconclusive("commits were not counted"),
    }
    let statistic = |name| case.window.statistic(name);
    let (redo, written) = (statistic("redo_bytes"), statistic("physical_writes"));
    let (Ok(redo), Ok(read)) = (redo, statistic("physical_reads")) else {
        return Judgement::inconclusive("the database counts neither its redo nor its writes");
    };
    let uncounted = written.is_err();
    let written = written.unwrap_or(0);
    let evidence = format!("{} of redo and {written} pages written by readers", megabytes(redo));
    let pages = written as f64 / read.max(1) as f64;
    let wrote = redo > REDO_BYTES_MAX || pages > PAGES_RATIO_MAX;
    if uncounted && !wrote {
        let redo = megabytes(redo);
        return Judgement::inconclusive(format!("{redo} of redo; pages written were not counted"));
    }
    Judgement::decide(wrote, evidence, read_figures())
}
