//! I/O that went through the page cache.

use blockstone_base::capability::Capability;
use blockstone_base::verdict::Weight;

use super::{Judgement, RunCase, RunRule, all_figures};
use crate::rules::keeps_in_memory;
use crate::run::ledger::has_server;

pub(super) const RULE: RunRule = RunRule {
    id: "not-direct",
    weight: Weight::Condemns,
    doc: "A database that read and wrote through the page cache: a second cache beside its own.",
    threshold: "A path without direct I/O, as the target found it when it opened its disks; tmpfs \
                and ecryptfs, which accept O_DIRECT and buffer all the same.",
    cause: "The page cache stood between the database and the storage.",
    next: "Run on a file system that supports direct I/O (ext4, XFS) or on the device.",
    check,
};

fn check(case: &RunCase) -> Judgement {
    if keeps_in_memory(case.file_system()) || case.file_system() == "ecryptfs" {
        let evidence = format!("{} accepts O_DIRECT and uses the page cache", case.file_system());
        return Judgement::fail(evidence, all_figures());
    }
    if has_server(case.window) {
        return Judgement::inconclusive(
            "a database opens its files as it likes; the ledger says what came from memory",
        );
    }
    let found = case.manifest.capabilities.iter().find(|known| known.name == "direct-io");
    match found.map(|found| &found.capability) {
        Some(Capability::Full) => Judgement::pass("the disks were opened with O_DIRECT"),
        Some(Capability::Degraded { why }) => {
            Judgement::fail(format!("no direct I/O: {why}"), all_figures())
        }
        None => Judgement::inconclusive("the target does not say how it opens its files"),
    }
}
