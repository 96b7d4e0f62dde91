//! I/O that went through the page cache.

use blockstone_base::units::counted;
use std::fmt::Write as _;

use blockstone_base::capability::Capability;
use blockstone_base::database::DIRECT_DATA;
use blockstone_base::load::Op;
use blockstone_base::rule::{About, Judgement};
use blockstone_base::verdict::Weight;
use blockstone_record::manifest::{FileEvidence, Group, Manifest};
use blockstone_record::parameters::CalibrateParameters;

use super::{
    CalibrationRule, Case, FIGURES, RunCase, RunRule, all_figures, direct_elsewhere, file_system,
    kernel_version, labels, megabytes,
};
use crate::findings::Point;
use crate::run::{Transfers, has_server};

pub const ABOUT: About = About {
    id: "not-direct",
    weight: Weight::Condemns,
    doc: "I/O that went through the page cache: by choice (--buffered), because the path does not \
          support direct I/O, or because the file system accepts O_DIRECT but buffers anyway.",
    threshold: "Any point without O_DIRECT. Where BPF is available (docs/bpf.md), the kernel \
                counts the pages that direct I/O added to the page cache of the files under load. \
                A point fails if these are at least 32 and at least 5 % of the pages that its \
                operations moved; in a run, of the pages read or of those written, whichever is \
                less. Pages that another process added do not count, nor do pages of a file that \
                it has read before. Without a count, or if a count of zero proves nothing, the \
                file system decides. These buffer direct I/O: tmpfs, ramfs, ecryptfs, ext4 with \
                data=journal (open(2), ext4(5)), btrfs for compressed or inline extents \
                (btrfs(5)), and ext4 for files that are journalled, stored inline or protected by \
                fs-verity. Without a count, so does btrfs from kernel 6.14 on when it writes to a \
                file with checksums (btrfs documentation, Checksumming), unless it is mounted with \
                nodatacow or nodatasum or the file has the attribute C (chattr +C). That a \
                misaligned request succeeds proves nothing: tmpfs and btrfs accept it. The verdict \
                is inconclusive on file systems whose server may cache (NFS, SMB, virtiofs, 9p, \
                FUSE, CephFS and the like), on ZFS, and for writes on btrfs if neither pages nor \
                attributes of the file were recorded. A run fails on the same file systems and on \
                a path for which its target could not use direct I/O; this covers the data file of \
                SQLite with --io direct, which this program opens, and is inconclusive for other \
                databases. With --io buffered a run passes, and memory-test judges its reads. A \
                check (docs/check.md) fails if the class is buffered, dropped or memory for any \
                operation on whole blocks, for any shape that statx(2) allows, or for any file \
                opened with O_DIRECT.",
    cause: "The page cache was between the load and the storage.",
    next: "Omit --buffered, or measure on a file system that supports direct I/O (ext4, XFS) or on \
           the device.",
};

pub(super) const CALIBRATION: CalibrationRule =
    CalibrationRule::new(&ABOUT, |case| case.of_each_target(check));
pub(super) const RUN: RunRule = RunRule::new(&ABOUT, check_run);

/// Share of the pages moved that may be added to the page cache before I/O counts as buffered:
/// direct I/O adds none, except occasionally at the edge of a file.
const ADDED_SHARE: f64 = 0.05;
const ADDED_LEAST: u64 = 32;
const PAGE_BYTES: u64 = 4096;

const RUN_CAUSE: &str = "The page cache stood between the database and the storage.";
const RUN_NEXT: &str =
    "Run on a file system that supports direct I/O (ext4, XFS) or on the device.";

/// First kernel in which btrfs buffers direct writes to files with checksums.
const BUFFERED_SINCE: (u32, u32) = (6, 14);
const CHECKSUMS_NEXT: &str = "\
    Measure on ext4, XFS or the device, or in a directory without checksums, as databases on btrfs \
    should be: chattr +C DIR before the files are created.";
/// Attributes of a file that make ext4 buffer direct I/O to it.
const BUFFERING_ATTRIBUTES: [&str; 3] = ["journal-data", "verity", "inline-data"];
/// Parts of the names of those figures of a run that depend on writes.
const WRITES: [&str; 3] = ["write", "commit", "redo"];

fn check(case: &Case) -> Judgement {
    // A store that writes its log through the page cache flushes each write: the time of the flush
    // is that of the storage.
    let is_flushed = |point: &Point| point.group == Group::Store && point.load.op == Op::Commit;
    let points: Vec<&Point> = case.storage_points().filter(|point| !is_flushed(point)).collect();
    if points.is_empty() {
        return Judgement::inconclusive("no I/O was measured");
    }
    let buffered = || points.iter().copied().filter(|point| !point.load.direct);
    if case.manifest.parameters::<CalibrateParameters>().buffered == Some(true) {
        let evidence = format!(
            "--buffered was chosen: {} without O_DIRECT",
            counted(buffered().count() as u64, "point")
        );
        return Judgement::fail(evidence, labels(buffered()));
    }
    if let Capability::Degraded { why } = &case.manifest.target.direct_io.capability {
        return Judgement::fail(format!("no direct I/O on this path: {why}"), labels(points));
    }
    if let Some(why) = emulated(case.manifest) {
        return Judgement::fail(why, labels(points));
    }
    let through: Vec<&Point> = points.iter().copied().filter(|point| added(point)).collect();
    if !through.is_empty() {
        let evidence = through_cache(&through, file_system(case.manifest));
        let next = if through.iter().all(|point| point.load.op != Op::Read) {
            next_for_writes(case.manifest)
        } else {
            ABOUT.next
        };
        return Judgement::fail(evidence, labels(through)).advising(next);
    }
    let pages_counted = points.iter().all(|point| point.evidence.added_pages.is_some());
    let writes = || points.iter().copied().filter(|point| point.load.op != Op::Read);
    let checksums = match writes().next() {
        Some(_) if !pages_counted => checksummed(case.manifest, case.manifest.file.iter()),
        _ => Checksums::None,
    };
    if let Checksums::Buffer(why) = checksums {
        return Judgement::fail(why, labels(writes())).advising(CHECKSUMS_NEXT);
    }
    if buffered().next().is_some() {
        let points = counted(buffered().count() as u64, "point");
        return Judgement::fail(format!("{points} without O_DIRECT"), labels(buffered()));
    }
    if let Some(why) = direct_elsewhere(file_system(case.manifest)) {
        return Judgement::inconclusive(why);
    }
    if let Checksums::Unknown(why) = checksums {
        return Judgement::inconclusive(why);
    }
    let mut evidence = format!(
        "{} with O_DIRECT, aligned to {} bytes ({})",
        counted(points.len() as u64, "point"),
        case.manifest.target.direct_io.offset_align_bytes,
        case.manifest.target.direct_io.source
    );
    if pages_counted {
        let pages: u64 = points.iter().filter_map(|point| point.evidence.added_pages).sum();
        let _ = write!(evidence, "; the kernel counted {pages} pages that they added to its cache");
    }
    Judgement::pass(evidence)
}

/// Returns whether this point added enough pages to the page cache to show that its I/O was
/// buffered.
fn added(point: &Point) -> bool {
    point.load.direct
        && point.evidence.added_pages.is_some_and(|pages| is_much(pages, moved(point)))
}

fn is_much(added_pages: u64, moved_pages: u64) -> bool {
    added_pages >= ADDED_LEAST && added_pages as f64 >= ADDED_SHARE * moved_pages as f64
}

/// Returns the number of pages that the operations of a point touched.
fn moved(point: &Point) -> u64 {
    let block_bytes = point.load.block_bytes.max(1);
    point.evidence.completed_bytes / block_bytes * block_bytes.div_ceil(PAGE_BYTES)
}

fn through_cache(points: &[&Point], file_system: &str) -> String {
    let added_pages: u64 = points.iter().filter_map(|point| point.evidence.added_pages).sum();
    let moved_pages: u64 = points.iter().map(|point| moved(point)).sum();
    format!(
        "{file_system} accepted O_DIRECT and used the page cache: at {} direct I/O moved {}, and \
         the kernel counted {added_pages} added to its cache",
        counted(points.len() as u64, "point"),
        counted(moved_pages, "page")
    )
}

fn next_for_writes(manifest: &Manifest) -> &'static str {
    if file_system(manifest) == "btrfs" { CHECKSUMS_NEXT } else { ABOUT.next }
}

/// Returns why O_DIRECT succeeds here without being direct.
fn emulated(manifest: &Manifest) -> Option<String> {
    let fs = manifest.target.file_system.as_ref()?;
    let ecryptfs = || (fs.kind == "ecryptfs").then(|| fs.kind.clone());
    if let Some(cached) = fs.in_memory().or_else(ecryptfs) {
        return Some(format!("{cached} accepts O_DIRECT and uses the page cache"));
    }
    if fs.kind == "ext4" && fs.options.split(',').any(|option| option == "data=journal") {
        return Some("ext4 with data=journal buffers direct I/O".to_owned());
    }
    let files = manifest.file.iter().chain(&manifest.disk_files);
    let mut attributes = files.filter_map(|file| file.map.attributes.as_ref()).flatten();
    let buffering = attributes.find(|name| BUFFERING_ATTRIBUTES.contains(&name.as_str()));
    if let Some(attribute) = buffering.filter(|_| fs.kind == "ext4") {
        return Some(format!("ext4 buffers direct I/O to a file with the attribute {attribute}"));
    }
    let encoded = manifest.file.as_ref().map_or(0, |file| file.map.encoded_bytes);
    (fs.kind == "btrfs" && encoded > 0).then(|| {
        format!(
            "btrfs buffers direct reads of the {} stored compressed or inline",
            megabytes(encoded)
        )
    })
}

/// Effect of btrfs checksums on direct writes.
enum Checksums {
    /// None: it is another file system, an older kernel, or the files have no checksums.
    None,
    Buffer(String),
    Unknown(String),
}

/// Returns the effect on direct writes to these files, or to files about which nothing is known.
fn checksummed<'a>(
    manifest: &Manifest,
    files: impl Iterator<Item = &'a FileEvidence>,
) -> Checksums {
    let Some(fs) = manifest.target.file_system.as_ref().filter(|fs| fs.kind == "btrfs") else {
        return Checksums::None;
    };
    let mounted_with = |wanted: &str| fs.options.split(',').any(|option| option == wanted);
    if mounted_with("nodatacow") || mounted_with("nodatasum") {
        return Checksums::None;
    }
    let kernel = &manifest.host.kernel;
    match kernel_version(manifest) {
        Some(version) if version < BUFFERED_SINCE => return Checksums::None,
        Some(_) => {}
        None => return Checksums::Unknown(format!("{kernel:?} is not a version of a kernel")),
    }
    let mut known = 0;
    for file in files {
        let Some(attributes) = &file.map.attributes else {
            let path = &file.path;
            return Checksums::Unknown(format!(
                "whether {path} on btrfs has checksums was not recorded; kernel {kernel} buffers \
                 direct writes if it has"
            ));
        };
        if !attributes.iter().any(|name| name == "no-copy-on-write") {
            return Checksums::Buffer(format!(
                "btrfs keeps checksums of {}, and kernel {kernel} buffers direct writes to such \
                 files (since 6.14)",
                file.path
            ));
        }
        known += 1;
    }
    if known > 0 { Checksums::None } else { Checksums::Unknown("no file was examined".to_owned()) }
}

fn check_run(case: &RunCase) -> Judgement {
    if let Some(why) = emulated(case.manifest) {
        return Judgement::fail(why, all_figures()).caused_by(RUN_CAUSE).advising(RUN_NEXT);
    }
    if case.window.parameters().io.as_deref() == Some("buffered") {
        return Judgement::pass(
            "buffered I/O was asked for; the ledger shows what of the reads came from memory",
        );
    }
    let reported = |name| {
        let known = case.manifest.capabilities.iter().find(|known| known.name == name);
        known.map(|known| &known.capability)
    };
    let of_database = reported(DIRECT_DATA);
    if has_server(case.window) && of_database.is_none() {
        return Judgement::inconclusive(
            "how the database opens its files is unknown; the ledger shows what came from memory",
        );
    }
    let counted = case.window.grown("page_cache", "", "added_pages").ok();
    let checksums = checksummed(case.manifest, case.manifest.disk_files.iter());
    let wrote = |name: &&str| WRITES.iter().any(|part| name.contains(part));
    let of_writes = || FIGURES.iter().filter(|name| wrote(name)).map(|name| (*name).to_owned());
    match (checksums, counted) {
        (checksums, Some(pages)) if is_much(pages, least_moved(case)) => {
            let evidence = format!(
                "{} accepted O_DIRECT and used the page cache: the kernel counted {pages} pages \
                 that this process added to its cache",
                file_system(case.manifest)
            );
            let (figures, next) = match checksums {
                Checksums::Buffer(_) => (of_writes().collect(), CHECKSUMS_NEXT),
                Checksums::None | Checksums::Unknown(_) => (all_figures(), RUN_NEXT),
            };
            return Judgement::fail(evidence, figures).caused_by(RUN_CAUSE).advising(next);
        }
        (Checksums::Buffer(why), None) => {
            let judgement = Judgement::fail(why, of_writes().collect());
            return judgement.caused_by(RUN_CAUSE).advising(CHECKSUMS_NEXT);
        }
        (Checksums::Unknown(why), None) => return Judgement::inconclusive(why),
        _ => {}
    }
    let opened = if of_database.is_some() {
        "the database opened its data file with O_DIRECT; its log goes through the page cache"
    } else {
        "the disks were opened with O_DIRECT"
    };
    match of_database.or_else(|| reported("direct-io")) {
        Some(Capability::Full) => direct_elsewhere(file_system(case.manifest)).map_or_else(
            || {
                let counted = counted.map(|pages| {
                    format!("; the kernel counted {pages} pages that were added to its cache")
                });
                let counted = counted.unwrap_or_default();
                Judgement::pass(format!("{opened}{counted}"))
            },
            Judgement::inconclusive,
        ),
        Some(Capability::Degraded { why }) => {
            let evidence = format!("no direct I/O: {why}");
            Judgement::fail(evidence, all_figures()).caused_by(RUN_CAUSE).advising(RUN_NEXT)
        }
        None => Judgement::inconclusive("the target does not report how it opens its files"),
    }
}

/// Returns the pages that the disks read or wrote in the window, whichever are fewer: a file system
/// may buffer only one of the two.
fn least_moved(case: &RunCase) -> u64 {
    let moved = |of: fn(&Transfers) -> u64| case.findings.disks.iter().map(of).sum::<u64>();
    let both = [moved(|disk| disk.reads.bytes), moved(|disk| disk.writes.bytes)];
    let least = both.into_iter().filter(|&bytes| bytes > 0).min();
    least.unwrap_or(0).div_ceil(PAGE_BYTES)
}

#[cfg(test)]
mod tests {
    use blockstone_base::load::Op;
    use blockstone_base::verdict::Outcome;

    use crate::testing::Fixture;

    #[test]
    fn file_systems_that_buffer_direct_io_are_known() {
        for (kind, options, encoded_bytes, expected) in [
            ("ext4", "rw,data=ordered", 0, Outcome::Pass),
            ("ext4", "rw,data=journal", 0, Outcome::Fail),
            ("xfs", "rw", 0, Outcome::Pass),
            // Whether the file has checksums is not known.
            ("btrfs", "rw", 0, Outcome::Inconclusive),
            ("btrfs", "rw,nodatasum", 0, Outcome::Pass),
            ("btrfs", "rw,nodatacow", 0, Outcome::Pass),
            ("btrfs", "rw,compress=zstd", 1 << 20, Outcome::Fail),
            ("tmpfs", "rw", 0, Outcome::Fail),
            ("zfs", "rw", 0, Outcome::Inconclusive),
            ("nfs4", "rw,vers=4.2", 0, Outcome::Inconclusive),
            ("cifs", "rw", 0, Outcome::Inconclusive),
            ("virtiofs", "rw", 0, Outcome::Inconclusive),
            ("fuse.glusterfs", "rw", 0, Outcome::Inconclusive),
        ] {
            let mut fixture = Fixture::healthy();
            let fs = fixture.manifest.target.file_system.as_mut().unwrap();
            (fs.kind, fs.options) = (kind.into(), options.into());
            fixture.manifest.file.as_mut().unwrap().map.encoded_bytes = encoded_bytes;
            let verdict = fixture.verdict("not-direct");
            assert_eq!(verdict.outcome, expected, "{kind} {options}: {}", verdict.evidence);
        }
    }

    #[test]
    fn checksums_of_btrfs_buffer_direct_writes_but_no_reads() {
        let judged = |kernel: &str, attributes: &[&str]| {
            let mut fixture = Fixture::healthy();
            kernel.clone_into(&mut fixture.manifest.host.kernel);
            fixture.manifest.target.file_system.as_mut().unwrap().kind = "btrfs".into();
            let set = attributes.iter().map(|&name| name.to_owned()).collect();
            fixture.manifest.file.as_mut().unwrap().map.attributes = Some(set);
            fixture.verdict("not-direct")
        };
        let verdict = judged("6.18.5", &[]);
        assert!(verdict.condemns(), "{}", verdict.evidence);
        assert!(verdict.concerns.iter().any(|name| name == "max_write_iops"), "{verdict:?}");
        assert!(!verdict.concerns.iter().any(|name| name == "max_iops"), "{verdict:?}");
        assert!(judged("6.14.0-rc3", &["compressed"]).condemns());
        // A directory prepared for a database, and a kernel that still bypassed the page cache for
        // writes.
        assert_eq!(judged("6.18.5", &["no-copy-on-write"]).outcome, Outcome::Pass);
        assert_eq!(judged("6.12.57-cloud", &[]).outcome, Outcome::Pass);
        assert_eq!(judged("unknown", &[]).outcome, Outcome::Inconclusive);
    }

    /// A fixture on this file system whose kernel counted these pages at each point of a direction.
    fn counted(kind: &str, reads: u64, writes: u64) -> Fixture {
        let mut fixture = Fixture::healthy();
        fixture.manifest.target.file_system.as_mut().unwrap().kind = kind.into();
        "6.18.5".clone_into(&mut fixture.manifest.host.kernel);
        fixture.windows.iter_mut().for_each(|window| window.added_pages = Ok(0));
        for (op, pages) in [(Op::Read, reads), (Op::Write, writes), (Op::Commit, writes)] {
            fixture.windows_mut(op).for_each(|window| window.added_pages = Ok(pages));
        }
        fixture
    }

    #[test]
    fn pages_added_by_direct_io_decide_whatever_the_file_system() {
        let verdict = counted("btrfs", 0, 10_000).verdict("not-direct");
        assert!(verdict.condemns(), "{}", verdict.evidence);
        assert!(verdict.evidence.contains("btrfs accepted O_DIRECT"), "{}", verdict.evidence);
        assert!(verdict.next.contains("chattr +C"), "{}", verdict.next);
        assert!(verdict.concerns.iter().any(|name| name == "max_write_iops"), "{verdict:?}");
        assert!(!verdict.concerns.iter().any(|name| name == "max_iops"), "{verdict:?}");
        let verdict = counted("a new file system", 100_000, 0).verdict("not-direct");
        assert!(verdict.condemns(), "{}", verdict.evidence);
        assert!(verdict.concerns.iter().any(|name| name == "max_iops"), "{verdict:?}");
        assert!(!verdict.concerns.iter().any(|name| name == "max_write_iops"), "{verdict:?}");
    }

    #[test]
    fn without_added_pages_direct_io_was_direct() {
        // The kernel would buffer these writes if the file had checksums, which was not recorded.
        let verdict = counted("btrfs", 0, 0).verdict("not-direct");
        assert_eq!(verdict.outcome, Outcome::Pass, "{}", verdict.evidence);
        assert!(verdict.evidence.contains("the kernel counted 0 pages"), "{}", verdict.evidence);
        // The edge of a file, occasionally.
        assert_eq!(counted("xfs", 8, 8).verdict("not-direct").outcome, Outcome::Pass);
        // A server caches beyond this machine, which adds no pages here.
        assert_eq!(counted("nfs4", 0, 0).verdict("not-direct").outcome, Outcome::Inconclusive);
        // Pages of tmpfs are not the cache of anything, and those of this ext4 stay in it.
        assert!(counted("tmpfs", 0, 0).verdict("not-direct").condemns());
        let mut journal = counted("ext4", 0, 0);
        journal.manifest.target.file_system.as_mut().unwrap().options = "rw,data=journal".into();
        assert!(journal.verdict("not-direct").condemns());
    }

    #[test]
    fn attributes_of_ext4_buffer_reads_and_writes() {
        for (attribute, expected) in [
            ("journal-data", Outcome::Fail),
            ("verity", Outcome::Fail),
            ("inline-data", Outcome::Fail),
            ("compressed", Outcome::Pass),
        ] {
            let mut fixture = Fixture::healthy();
            let map = &mut fixture.manifest.file.as_mut().unwrap().map;
            map.attributes = Some(vec![attribute.to_owned()]);
            assert_eq!(fixture.verdict("not-direct").outcome, expected, "{attribute}");
        }
    }

    #[test]
    fn a_choice_is_called_a_choice_and_strikes_what_it_concerns() {
        let mut fixture = Fixture::healthy();
        fixture.manifest.settings.insert("buffered".into(), true.into());
        for phase in &mut fixture.manifest.phases {
            phase.load.as_mut().unwrap().direct = false;
        }
        let findings = fixture.find();
        let verdict = findings.verdicts.iter().find(|v| v.rule == "not-direct").unwrap();
        assert!(verdict.evidence.contains("--buffered was chosen"), "{}", verdict.evidence);
        assert_eq!(verdict.concerns.len(), findings.summary.len() - 2, "all but the cached reads");
    }
}
