//! Verdict on the classes of the cells and files of `check direct`.

use blockstone_check::direct::findings::{Class, DirectFindings, OpenFile};

use blockstone_base::rule::{Judgement, RuleOf};
use blockstone_judge::rules::{memory_backed, not_direct};

const CAUSE: &str = "The file system accepts O_DIRECT and serves the requests through the page \
                     cache.";
const NEXT: &str = "Measure, and keep databases, where these requests are direct: on ext4 without \
                    data=journal, on XFS, on the device, or on btrfs in a directory with chattr \
                    +C DIR before its files are created.";

const MEMORY_CAUSE: &str = "The file system keeps its files in main memory, so O_DIRECT has no \
                            storage to reach.";

pub(super) const RULE: RuleOf<DirectFindings> = RuleOf::new(&not_direct::ABOUT, check);

fn check(findings: &DirectFindings) -> Judgement {
    let classes: Vec<(String, Class)> = findings.expected().collect();
    let of = |wanted: fn(Class) -> bool| -> Vec<String> {
        let found = classes.iter().filter(|(_, class)| wanted(*class));
        found.map(|(name, _)| name.clone()).collect()
    };
    let cached = of(Class::is_cached);
    if !cached.is_empty() {
        let mut evidence = format!(
            "{} of {} that ask to bypass the page cache go through it: {}",
            cached.len(),
            classes.len(),
            some_of(&cached)
        );
        if let Some(share) = highest_share(&findings.files) {
            let percent = share * 100.0;
            evidence = format!("{evidence}; up to {percent:.0} % of their requests");
        }
        return Judgement::fail(evidence, cached).caused_by(CAUSE).advising(NEXT);
    }
    let memory = of(|class| class == Class::Memory);
    if !memory.is_empty() {
        let evidence = format!(
            "{} of {} are kept in main memory: {}",
            memory.len(),
            classes.len(),
            some_of(&memory)
        );
        return Judgement::fail(evidence, memory)
            .caused_by(MEMORY_CAUSE)
            .advising(memory_backed::ABOUT.next);
    }
    let unknown = of(|class| class == Class::Unknown);
    let direct = of(|class| class == Class::Direct);
    match (direct.len(), unknown.len()) {
        (0, 0) if !findings.is_of_path() => {
            Judgement::inconclusive("no I/O to a file opened with O_DIRECT was seen")
        }
        (0, 0) => Judgement::inconclusive("no request was accepted"),
        (_, 0) => Judgement::pass(format!("{} of {} are direct", direct.len(), classes.len())),
        _ => Judgement::inconclusive(format!("cannot tell: {}", some_of(&unknown))),
    }
}

fn highest_share(files: &[OpenFile]) -> Option<f64> {
    let through = |file: &&OpenFile| file.is_expected() && file.class.is_cached();
    files.iter().filter(through).filter_map(|file| file.cached_share).max_by(f64::total_cmp)
}

/// Returns the first few names, and how many more there are.
fn some_of(names: &[String]) -> String {
    const FEW: usize = 4;
    let shown: Vec<&str> = names.iter().take(FEW).map(String::as_str).collect();
    match names.len().saturating_sub(FEW) {
        0 => shown.join(", "),
        more => format!("{} and {more} more", shown.join(", ")),
    }
}
