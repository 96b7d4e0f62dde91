//! Derives the class of a cell from the observations. Success alone is never taken for direct.

use crate::direct::findings::{Class, Operation};
use blockstone_base::units::{Bytes, counted};
use blockstone_sys::bpf::effect::Effect;

use crate::evidence::{and_then, of_too_few};

pub const PAGE_BYTES: u64 = 4096;

/// Way in which a file system caches files, as far as it determines the possible evidence.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Caching {
    /// In the page cache; direct requests take the kernel's common direct path (iomap).
    PageCache,
    /// In the page cache; direct requests take the file system's own path.
    OwnPath,
    /// Like `OwnPath`, and a server or another program may cache them too.
    Served,
    /// Elsewhere, or in files of another file system.
    Elsewhere,
}

impl Caching {
    pub fn of(file_system: &str, is_device: bool) -> Self {
        let is_fuse = file_system.starts_with("fuse");
        match file_system {
            "ext4" | "xfs" | "btrfs" | "f2fs" | "gfs2" => Self::PageCache,
            "ext2" | "ext3" | "vfat" | "exfat" | "ntfs3" | "bcachefs" | "ocfs2" => Self::OwnPath,
            "nfs" | "nfs4" | "cifs" | "smb3" | "ceph" | "9p" | "virtiofs" => Self::Served,
            _ if is_fuse => Self::Served,
            _ if is_device => Self::OwnPath,
            _ => Self::Elsewhere,
        }
    }
}

/// Counts of the kernel between two samples.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counted {
    pub calls: u64,
    pub cached_calls: u64,
    pub added_pages: u64,
    pub direct_ios: Option<u64>,
}

impl Counted {
    pub fn of(operation: Operation, now: &Effect, then: &Effect) -> Self {
        let index = usize::from(!operation.reads());
        let (after, before) = (now.direct[index], then.direct[index]);
        Self {
            calls: after.calls - before.calls,
            cached_calls: after.cached_calls - before.cached_calls,
            added_pages: after.added_pages - before.added_pages + now.other_pages
                - then.other_pages,
            direct_ios: now.direct_ios.zip(then.direct_ios).map(|(now, then)| now - then),
        }
    }
}

/// Observations of one cell.
#[derive(Clone, Debug)]
pub struct CellEvidence {
    /// Requests that succeeded.
    pub requests: u64,
    pub error: Option<i32>,
    pub in_memory: bool,
    pub caching: Caching,
    /// Whether statx(2) says that no request to this file can be direct.
    pub says_refused: bool,
    /// Bytes of the file in the page cache before, at most while it was observed, and after.
    pub before_cached_bytes: Option<u64>,
    pub most_cached_bytes: Option<u64>,
    pub after_cached_bytes: Option<u64>,
    pub counted: Option<Counted>,
    /// Why nothing was counted.
    pub unseen: String,
    /// Number of calls that were not counted.
    pub dropped: u64,
}

/// Returns the class and its evidence.
pub fn classify(seen: &CellEvidence) -> (Class, String) {
    if seen.requests == 0 {
        let classes = [Class::Refused, Class::Unknown];
        return of_too_few(0, seen.error, classes, "nothing was requested");
    }
    and_then(of_served(seen), seen.error)
}

/// Classifies requests that succeeded.
fn of_served(seen: &CellEvidence) -> (Class, String) {
    if seen.in_memory {
        return (Class::Memory, "the file system keeps files in memory".to_owned());
    }
    match &seen.counted {
        Some(counted) if counted.calls < seen.requests => {
            let evidence = format!(
                "the kernel counted {} of {} requests ({} dropped)",
                counted.calls, seen.requests, seen.dropped
            );
            (Class::Unknown, evidence)
        }
        Some(counted) => by_counts(seen, counted),
        None => by_looks(seen),
    }
}

/// Classifies by what the kernel counted for these very requests.
fn by_counts(seen: &CellEvidence, counted: &Counted) -> (Class, String) {
    let Counted { calls, cached_calls, added_pages, direct_ios } = *counted;
    if added_pages > 0 {
        // With an overlay, pages are added to a file that the requests do not name.
        let requests = match cached_calls {
            0 => format!("{calls} requests"),
            some => format!("{some} of {calls} requests"),
        };
        let evidence = format!("{requests} added {} to the page cache", pages(added_pages));
        return left(seen, evidence);
    }
    match (seen.caching, direct_ios) {
        (Caching::Elsewhere, _) => {
            let evidence = "its file system caches files where the kernel's page cache does not \
                            show it";
            (Class::Unknown, evidence.to_owned())
        }
        (Caching::PageCache, Some(ios)) if ios >= calls => {
            let evidence = format!("{calls} of {calls} took the direct path, no page added");
            (Class::Direct, evidence + &of_others(seen))
        }
        (Caching::PageCache, Some(0)) => {
            let evidence = format!("none of {calls} took the direct path, no page added");
            match seen.after_cached_bytes {
                Some(bytes) if bytes > 0 => {
                    (Class::Buffered, format!("{evidence}: {} were cached", Bytes(bytes)))
                }
                _ => (Class::Unknown, evidence),
            }
        }
        (Caching::PageCache, Some(ios)) => {
            (Class::Unknown, format!("{ios} of {calls} took the direct path, no page added"))
        }
        _ => without_path(seen, calls),
    }
}

/// Classifies if the kernel does not show its direct path: requests to a file that is not cached at
/// all cannot have been answered from pages, if they add none.
fn without_path(seen: &CellEvidence, calls: u64) -> (Class, String) {
    match (seen.before_cached_bytes, seen.after_cached_bytes) {
        (Some(0), Some(0)) => {
            let mut evidence = format!("{calls} requests added no page, and none was there");
            if seen.caching == Caching::Served {
                evidence += "; what the server caches is not seen here";
            }
            (Class::Direct, evidence)
        }
        (Some(before), Some(_)) => {
            let evidence =
                format!("{calls} requests added no page, but {} were there before", Bytes(before));
            (Class::Unknown, evidence)
        }
        _ => (Class::Unknown, format!("{calls} requests added no page; no cachestat(2)")),
    }
}

/// Classifies by what the page cache holds before, meanwhile and after, which any user may query.
fn by_looks(seen: &CellEvidence) -> (Class, String) {
    if seen.says_refused {
        let evidence = "statx(2) says that no request to this file can be direct, and it succeeded";
        return left(seen, evidence.to_owned());
    }
    let (Some(before), Some(after)) = (seen.before_cached_bytes, seen.after_cached_bytes) else {
        let why = format!("no cachestat(2) (Linux 6.5), and in the kernel: {}", seen.unseen);
        return (Class::Unknown, why);
    };
    if after > before {
        return left(seen, "it succeeded".to_owned());
    }
    match seen.most_cached_bytes {
        Some(most) if most > before => {
            let evidence =
                format!("{} were cached meanwhile, {} before", Bytes(most), Bytes(before));
            left(seen, evidence)
        }
        _ => {
            let why = format!(
                "no page was seen, but pages that are dropped at once look the same; in the \
                 kernel: {}",
                seen.unseen
            );
            (Class::Unknown, why)
        }
    }
}

/// Classifies as buffered or dropped, by what is left cached.
fn left(seen: &CellEvidence, evidence: String) -> (Class, String) {
    match (seen.before_cached_bytes, seen.after_cached_bytes) {
        (Some(before), Some(after)) if after > before => {
            let added_bytes =
                seen.counted.map_or(0, |it| it.added_pages.saturating_mul(PAGE_BYTES));
            // A page that is just being written back cannot be dropped.
            let most_dropped = (after - before).saturating_mul(2) <= added_bytes;
            let class = if most_dropped { Class::Dropped } else { Class::Buffered };
            (class, format!("{evidence}; {} stay cached", Bytes(after)))
        }
        (Some(_), Some(after)) => {
            let kept =
                if after == 0 { "nothing stays".to_owned() } else { Bytes(after).to_string() };
            let class = if after == 0 { Class::Dropped } else { Class::Buffered };
            (class, format!("{evidence}; {kept} cached"))
        }
        _ => (Class::Buffered, evidence),
    }
}

fn of_others(seen: &CellEvidence) -> String {
    match seen.before_cached_bytes {
        Some(bytes) if bytes > 0 => {
            format!("; {} were cached by another reader", Bytes(bytes))
        }
        _ => String::new(),
    }
}

pub fn pages(count: u64) -> String {
    counted(count, "page")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns 32 requests that succeeded on ext4, of which the kernel showed nothing else.
    fn seen() -> CellEvidence {
        CellEvidence {
            requests: 32,
            error: None,
            in_memory: false,
            caching: Caching::PageCache,
            says_refused: false,
            before_cached_bytes: Some(0),
            most_cached_bytes: None,
            after_cached_bytes: Some(0),
            counted: None,
            unseen: "CAP_BPF is missing".to_owned(),
            dropped: 0,
        }
    }

    fn counted(added_pages: u64, direct_ios: Option<u64>) -> Counted {
        let cached_calls = added_pages.min(32);
        Counted { calls: 32, cached_calls, added_pages, direct_ios }
    }

    #[track_caller]
    fn is(seen: &CellEvidence, class: Class, said: &str) {
        let (found, evidence) = classify(seen);
        assert_eq!(found, class, "{evidence}");
        assert!(evidence.contains(said), "{evidence}");
    }

    #[test]
    fn success_alone_is_never_direct() {
        is(&seen(), Class::Unknown, "CAP_BPF is missing");
        let no_cachestat =
            CellEvidence { before_cached_bytes: None, after_cached_bytes: None, ..seen() };
        is(&no_cachestat, Class::Unknown, "no cachestat(2)");
        let zfs = CellEvidence {
            caching: Caching::Elsewhere,
            counted: Some(counted(0, Some(0))),
            ..seen()
        };
        is(&zfs, Class::Unknown, "does not show it");
        let overlooked =
            CellEvidence { requests: 33, counted: Some(counted(0, Some(32))), ..seen() };
        is(&overlooked, Class::Unknown, "32 of 33");
        let half = CellEvidence { counted: Some(counted(0, Some(16))), ..seen() };
        is(&half, Class::Unknown, "16 of 32");
        let none = CellEvidence { counted: Some(counted(0, Some(0))), ..seen() };
        is(&none, Class::Unknown, "none of 32");
        let old = CellEvidence {
            counted: Some(counted(0, None)),
            before_cached_bytes: Some(8192),
            ..seen()
        };
        is(&old, Class::Unknown, "8 KiB were there");
    }

    #[test]
    fn what_the_kernel_counted_decides() {
        is(
            &CellEvidence { counted: Some(counted(0, Some(32))), ..seen() },
            Class::Direct,
            "32 of 32",
        );
        is(
            &CellEvidence { counted: Some(counted(0, None)), ..seen() },
            Class::Direct,
            "none was there",
        );
        // btrfs enters the direct path for compressed extents, and falls back.
        let fallen = CellEvidence { counted: Some(counted(160, Some(32))), ..seen() };
        is(&fallen, Class::Dropped, "32 of 32 requests added 160 pages");
        let stays = CellEvidence { after_cached_bytes: Some(655_360), ..fallen.clone() };
        is(&stays, Class::Buffered, "640 KiB stay cached");
        let written_back = CellEvidence { after_cached_bytes: Some(131_072), ..fallen };
        is(&written_back, Class::Dropped, "128 KiB stay cached");
        let journal = CellEvidence {
            counted: Some(counted(0, Some(0))),
            before_cached_bytes: Some(131_072),
            after_cached_bytes: Some(131_072),
            ..seen()
        };
        is(&journal, Class::Buffered, "128 KiB were cached");
        let others = CellEvidence { counted: Some(counted(0, Some(32))), ..journal };
        is(&others, Class::Direct, "cached by another reader");
        let nfs = CellEvidence {
            caching: Caching::of("nfs4", false),
            counted: Some(counted(0, Some(0))),
            ..seen()
        };
        is(&nfs, Class::Direct, "what the server caches");
    }

    #[test]
    fn without_the_kernel_only_pages_that_are_seen_decide() {
        is(
            &CellEvidence { after_cached_bytes: Some(4096), ..seen() },
            Class::Buffered,
            "4 KiB stay",
        );
        is(&CellEvidence { most_cached_bytes: Some(4096), ..seen() }, Class::Dropped, "meanwhile");
        is(&CellEvidence { says_refused: true, ..seen() }, Class::Dropped, "statx(2)");
    }

    #[test]
    fn refusals_failures_and_memory_have_classes_of_their_own() {
        let refused = CellEvidence { requests: 0, error: Some(22), ..seen() };
        is(&refused, Class::Refused, "EINVAL");
        is(&CellEvidence { error: Some(5), ..refused }, Class::Unknown, "EIO");
        is(&CellEvidence { in_memory: true, ..seen() }, Class::Memory, "in memory");
        let ended = CellEvidence { error: Some(28), counted: Some(counted(0, Some(32))), ..seen() };
        is(&ended, Class::Direct, "then ENOSPC");
    }

    #[test]
    fn each_kind_of_storage_has_its_evidence() {
        assert_eq!(Caching::of("xfs", false), Caching::PageCache);
        assert_eq!(Caching::of("", true), Caching::OwnPath);
        assert_eq!(Caching::of("fuse.sshfs", false), Caching::Served);
        assert_eq!(Caching::of("zfs", false), Caching::Elsewhere);
        assert_eq!(Caching::of("overlay", false), Caching::Elsewhere);
    }
}
