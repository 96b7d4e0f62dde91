//! I/O that went through the page cache.

use blockstone_base::capability::Capability;
use blockstone_base::load::Op;
use blockstone_base::verdict::Weight;
use blockstone_record::manifest::Manifest;
use blockstone_record::parameters::CalibrateParameters;

use super::{
    Case, Check, Judgement, Rule, RunCase, all_figures, direct_elsewhere, file_system,
    keeps_in_memory, labels, megabytes,
};
use crate::findings::Point;
use crate::run::has_server;

pub(super) const RULE: Rule = Rule {
    id: "not-direct",
    weight: Weight::Condemns,
    doc: "I/O that went through the page cache: by choice (--buffered), because the path does not \
          support direct I/O, or because the file system accepts O_DIRECT but buffers anyway.",
    threshold: "Any point without O_DIRECT; direct I/O on tmpfs, ramfs, ecryptfs, ext4 with \
                data=journal (open(2), ext4(5)) and on btrfs extents that are stored compressed or \
                inline (btrfs(5)). Success of a misaligned request proves nothing: tmpfs and btrfs \
                accept it. Inconclusive where a server may cache what is asked of it directly \
                (NFS, SMB, virtiofs, 9p, FUSE, CephFS and the like), on ZFS, and for writes on \
                btrfs without nodatasum or nodatacow. In a run: a path without direct I/O, as the \
                target found it when it opened its disks, and the same file systems.",
    cause: "The page cache was between the load and the storage.",
    next: "Omit --buffered, or measure on a file system that supports direct I/O (ext4, XFS) or \
           on the device.",
    checks: &[Check::Calibration(check), Check::Run(check_run)],
};

const RUN_CAUSE: &str = "The page cache stood between the database and the storage.";
const RUN_NEXT: &str =
    "Run on a file system that supports direct I/O (ext4, XFS) or on the device.";

fn check(case: &Case) -> Judgement {
    let points: Vec<&Point> = case.storage_points().collect();
    if points.is_empty() {
        return Judgement::inconclusive("no I/O was measured");
    }
    let buffered = || points.iter().copied().filter(|point| !point.load.direct);
    if case.manifest.parameters::<CalibrateParameters>().buffered == Some(true) {
        let evidence =
            format!("--buffered was chosen: {} points without O_DIRECT", buffered().count());
        return Judgement::fail(evidence, labels(buffered()));
    }
    if let Capability::Degraded { why } = &case.manifest.target.direct_io.capability {
        return Judgement::fail(format!("no direct I/O on this path: {why}"), labels(points));
    }
    if let Some(why) = emulated(case.manifest) {
        return Judgement::fail(why, labels(points));
    }
    if buffered().next().is_some() {
        let count = buffered().count();
        return Judgement::fail(format!("{count} points without O_DIRECT"), labels(buffered()));
    }
    if let Some(why) = direct_elsewhere(file_system(case.manifest)) {
        return Judgement::inconclusive(why);
    }
    let writes = points.iter().any(|point| point.load.op != Op::Read);
    if let Some(why) = checksummed(case.manifest).filter(|_| writes) {
        return Judgement::inconclusive(why);
    }
    Judgement::pass(format!(
        "{} points with O_DIRECT, aligned to {} bytes ({})",
        points.len(),
        case.manifest.target.direct_io.offset_align_bytes,
        case.manifest.target.direct_io.source
    ))
}

/// Why it stays open whether direct writes were direct: `btrfs_direct_write` in the kernel's
/// fs/btrfs/direct-io.c buffers those of files with checksums.
fn checksummed(manifest: &Manifest) -> Option<String> {
    let fs = manifest.target.file_system.as_ref().filter(|fs| fs.kind == "btrfs")?;
    let off = |option: &str| ["nodatasum", "nodatacow"].contains(&option);
    (!fs.options.split(',').any(off)).then(|| {
        "btrfs buffers direct writes to files with checksums from Linux 6.14 on; whether these \
         have any (chattr +C) was not recorded"
            .to_owned()
    })
}

/// Why O_DIRECT succeeds here without being direct.
fn emulated(manifest: &Manifest) -> Option<String> {
    let fs = manifest.target.file_system.as_ref()?;
    if keeps_in_memory(&fs.kind) || fs.kind == "ecryptfs" {
        return Some(format!("{} accepts O_DIRECT and uses the page cache", fs.kind));
    }
    if fs.kind == "ext4" && fs.options.split(',').any(|option| option == "data=journal") {
        return Some("ext4 with data=journal buffers direct I/O".to_owned());
    }
    let encoded = manifest.file.as_ref().map_or(0, |file| file.map.encoded_bytes);
    (fs.kind == "btrfs" && encoded > 0).then(|| {
        format!(
            "btrfs buffers direct reads of the {} stored compressed or inline",
            megabytes(encoded)
        )
    })
}

fn check_run(case: &RunCase) -> Judgement {
    if let Some(why) = emulated(case.manifest) {
        return Judgement::fail(why, all_figures()).caused_by(RUN_CAUSE).advising(RUN_NEXT);
    }
    if has_server(case.window) {
        return Judgement::inconclusive(
            "how the database opens its files is unknown; the ledger shows what came from memory",
        );
    }
    let found = case.manifest.capabilities.iter().find(|known| known.name == "direct-io");
    match found.map(|found| &found.capability) {
        Some(Capability::Full) => {
            let open = direct_elsewhere(file_system(case.manifest));
            open.or_else(|| checksummed(case.manifest)).map_or_else(
                || Judgement::pass("the disks were opened with O_DIRECT"),
                Judgement::inconclusive,
            )
        }
        Some(Capability::Degraded { why }) => {
            let evidence = format!("no direct I/O: {why}");
            Judgement::fail(evidence, all_figures()).caused_by(RUN_CAUSE).advising(RUN_NEXT)
        }
        None => Judgement::inconclusive("the target does not report how it opens its files"),
    }
}

#[cfg(test)]
mod tests {
    use blockstone_base::verdict::Outcome;

    use crate::testing::Fixture;

    #[test]
    fn file_systems_that_buffer_direct_io_are_known() {
        for (kind, options, encoded_bytes, expected) in [
            ("ext4", "rw,data=ordered", 0, Outcome::Pass),
            ("ext4", "rw,data=journal", 0, Outcome::Fail),
            ("xfs", "rw", 0, Outcome::Pass),
            ("btrfs", "rw", 0, Outcome::Inconclusive),
            ("btrfs", "rw,nodatasum", 0, Outcome::Pass),
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
