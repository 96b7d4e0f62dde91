//! Operations on names and inodes that were served from memory.

use blockstone_base::rule::{About, Judgement, RuleOf};
use blockstone_base::verdict::Weight;
use blockstone_check::metadata::findings::{Cell, Class, MetadataFindings};

const ABOUT: About = About {
    id: "cached-metadata",
    weight: Weight::Warns,
    doc: "Operations on names and inodes that completed without reading: their rates and latencies \
          are those of memory, not of the storage.",
    threshold: "Any operation of class cached (docs/check.md): the kernel charged no bytes to this \
                process as fetched from storage, or, of operations that change something and are \
                not made durable, fewer than 16 for each; on NFS, that no request went to the \
                server for it. It condemns if caches were dropped \
                before and such an operation was answered from memory nevertheless. Inconclusive \
                where a server answers, or reads are not counted.",
    cause: "The kernel keeps entries of directories and inodes in memory, and writes what is \
            changed there later.",
    next: "Read these figures as those of the cache. As root, --drop-caches tries all operations \
           that read a second time, without what is cached.",
};

pub(super) const RULE: RuleOf<MetadataFindings> = RuleOf::new(&ABOUT, check);

const STILL_CACHED: &str = "What was dropped did not contain what is kept in memory: btrfs keeps \
                            metadata in the page cache.";
const STILL_NEXT: &str = "--drop-caches=all drops the page cache too; otherwise unmount the file \
                          system and mount it again.";

fn check(findings: &MetadataFindings) -> Judgement {
    let of = |wanted: Class| -> Vec<&Cell> {
        findings.cells.iter().filter(|cell| cell.class == wanted).collect()
    };
    let (cached, unknown) = (of(Class::Cached), of(Class::Unknown));
    let served = of(Class::Server).len();
    let total = findings.cells.len();
    if cached.is_empty() {
        return match (total, unknown.len()) {
            (0, _) => Judgement::inconclusive("nothing was tried"),
            (_, 0) if served > 0 => {
                Judgement::inconclusive(format!("a server answered {served} of {total}"))
            }
            (_, 0) => Judgement::pass(format!("all {total} came from storage")),
            (_, some) => Judgement::inconclusive(format!("cannot tell of {some} of {total}")),
        };
    }
    let cases = cached.iter().map(|cell| cell.case()).collect();
    let still = cached.iter().filter(|cell| cell.cold).count();
    if still > 0 {
        let evidence = format!("{still} completed without reads although caches were dropped");
        let judgement = Judgement::fail(evidence, cases).weighing(Weight::Condemns);
        return judgement.caused_by(STILL_CACHED).advising(STILL_NEXT);
    }
    Judgement::fail(format!("{} of {total} completed without reads", cached.len()), cases)
}
