//! Evidence that rules examine: one kind for each kind of subject that is judged.

use blockstone_base::identity::{
    BlockDevice, DeviceKind, FileSystem, Link, StorageTarget, keeps_in_memory,
};
use blockstone_base::load::Op;
use blockstone_base::rule::{Judged, Judgement, Rule};
use blockstone_base::verdict::{Outcome, Weight};
use blockstone_figures::Interval;
use blockstone_record::manifest::{
    DataSample, Figure, FileEvidence, Group, Manifest, Measured, Phase,
};
use blockstone_record::parameters::RunParameters;

use super::{all_figures, labels};
use crate::findings::Point;
use crate::flushes::FlushSlope;
use crate::precondition::Precondition;
use crate::run::{RunFindings, RunWindow};
use crate::window::Window;

pub struct Case<'a> {
    pub manifest: &'a Manifest,
    /// Windows in order of time.
    pub windows: &'a [Window],
    pub points: &'a [Point],
    pub summary: &'a [(String, Figure)],
    /// Movement of the reference point over the run.
    pub drift_ratio: Option<f64>,
    /// Time of flushes as a function of the bytes written before them.
    pub flush_slope: Option<&'a FlushSlope>,
    pub precondition: Option<&'a Precondition>,
}

pub struct RunCase<'a> {
    pub(crate) manifest: &'a Manifest,
    pub(crate) window: &'a RunWindow<'a>,
    pub(crate) findings: &'a RunFindings,
}

/// Observations of a machine and its databases: in an interval of a watch, or in the window of a
/// run.
pub struct Observed<'a> {
    pub interval: Interval<'a>,
    /// For a run: its parameters, including the settings of its database.
    pub run: Option<Box<RunParameters>>,
}

pub type CalibrationRule = Rule<fn(&Case) -> Judgement>;
pub type RunRule = Rule<fn(&RunCase) -> Judgement>;
pub type WatchRule = Rule<fn(&Observed) -> Judgement>;

impl Judged for Case<'_> {
    const VERB: &'static str = "calibrate";

    /// Places are labels of points; a figure is concerned if it was read from one.
    fn figures_at(&self, places: &[String]) -> Vec<String> {
        let concerned = self.summary.iter().filter(|f| places.contains(&f.1.phase));
        concerned.map(|(name, _)| name.clone()).collect()
    }
}

impl Judged for RunCase<'_> {
    const VERB: &'static str = "run";

    fn figures_at(&self, places: &[String]) -> Vec<String> {
        let known = |name: &&String| self.findings.figure(name).is_some();
        places.iter().filter(known).cloned().collect()
    }
}

impl Judged for Observed<'_> {
    const VERB: &'static str = "watch";
}

/// Points that read through the page cache on purpose, for contrast.
const CACHED_BY_INTENTION: [&str; 2] = ["cached-read/cached", "cached-read/buffered"];

impl<'a> Case<'a> {
    /// Returns the points that claim to describe the storage: not the tool's own cost, and not the
    /// reads that are cached on purpose.
    pub fn storage_points(&self) -> impl Iterator<Item = &'a Point> + use<'a> {
        self.points.iter().filter(|point| about_storage(point.group, &point.label))
    }

    pub fn reads(&self) -> impl Iterator<Item = &'a Point> + use<'a> {
        self.storage_points().filter(|point| point.load.op == Op::Read)
    }

    /// Returns whether the reference point moved by more than `ratio` over the run. In that case
    /// two points that were measured at different times cannot be told apart by less.
    pub fn moved(&self, ratio: f64) -> bool {
        self.drift_ratio.is_some_and(|drift| drift > ratio)
    }

    pub fn group(&self, group: Group) -> impl Iterator<Item = &'a Point> + use<'a> {
        self.points.iter().filter(move |point| point.group == group)
    }

    pub fn point(&self, label: &str) -> Option<&'a Point> {
        self.points.iter().find(|point| point.label == label)
    }

    /// Returns the storage points from which a headline figure was read.
    pub fn headlines(&self) -> impl Iterator<Item = &'a Point> {
        let summary = self.summary;
        self.storage_points()
            .filter(move |point| summary.iter().any(|(_, figure)| figure.phase == point.label))
    }

    /// Returns the windows of one label, in order of time.
    pub fn windows_of(&self, label: &str) -> Vec<&'a Window> {
        let manifest = self.manifest;
        self.windows.iter().filter(|w| manifest.phases[w.phase].label == label).collect()
    }

    pub fn phase(&self, window: &Window) -> &'a Phase {
        &self.manifest.phases[window.phase]
    }

    /// Returns the windows whose load claims to describe the storage, in order of time.
    pub fn storage_windows(&self) -> impl Iterator<Item = &'a Window> {
        let manifest = self.manifest;
        self.windows.iter().filter(move |window| {
            let phase = &manifest.phases[window.phase];
            about_storage(phase.group, &phase.label)
        })
    }

    /// Judges each of several targets with `check` as if it were the only one. Returns the
    /// judgement on the first of those with the gravest outcome: condemned, warned of,
    /// inconclusive, passed.
    pub(super) fn of_each_target(&self, check: impl Fn(&Case) -> Judgement) -> Judgement {
        let targets = &self.manifest.targets;
        if targets.is_empty() {
            return check(self);
        }
        let alone = |measured: &Measured| {
            let Measured { target, file, .. } = measured.clone();
            let manifest = Manifest { target, file, targets: Vec::new(), ..self.manifest.clone() };
            check(&Case { manifest: &manifest, ..*self })
        };
        let judged: Vec<_> = targets.iter().map(|measured| (measured, alone(measured))).collect();
        let rank = |(_, judgement): &&(&Measured, Judgement)| match judgement.outcome {
            Outcome::Fail if judgement.weight != Some(Weight::Warns) => 0,
            Outcome::Fail => 1,
            Outcome::Inconclusive => 2,
            Outcome::Pass => 3,
        };
        let Some((measured, judgement)) = judged.iter().min_by_key(rank) else {
            return check(self);
        };
        let (path, n) = (&measured.target.path, targets.len());
        let evidence = match judgement.outcome {
            Outcome::Pass => format!("{}, and so on of {n} targets", judgement.evidence),
            _ => format!("{path}: {} (one of {n} targets)", judgement.evidence),
        };
        Judgement { evidence, ..judgement.clone() }
    }

    /// Judges the storage, for each target. The judgement concerns all numbers of the storage.
    pub(super) fn of_storage(&self, check: impl Fn(&Manifest) -> Judgement) -> Judgement {
        let judgement = self.of_each_target(|case| check(case.manifest));
        judgement.at(labels(self.storage_points()))
    }

    /// Returns the devices from the top of the chain to its bottom.
    pub fn devices(&self) -> &'a [BlockDevice] {
        &self.manifest.target.devices
    }
}

/// Returns the target's file system type; empty for a device.
pub(super) fn file_system(manifest: &Manifest) -> &str {
    manifest.target.file_system.as_ref().map_or("", |fs| fs.kind.as_str())
}

/// Returns the version of the kernel that the measurement ran on: `(6, 18)` for `6.18.5`.
pub(super) fn kernel_version(manifest: &Manifest) -> Option<(u32, u32)> {
    let mut parts = manifest.host.kernel.split(|c: char| !c.is_ascii_digit());
    Some((parts.next()?.parse().ok()?, parts.next()?.parse().ok()?))
}

/// Returns the file system under test, or that of a loop device's backing file, if it keeps its
/// files in main memory: `tmpfs`, `loop0 on tmpfs`.
pub(crate) fn in_memory(target: &StorageTarget) -> Option<String> {
    let file_system = target.file_system.as_ref();
    file_system.and_then(FileSystem::in_memory).or_else(|| {
        target.devices.iter().find_map(|device| {
            let kind =
                device.backing_file_system.as_deref().filter(|kind| keeps_in_memory(kind))?;
            Some(format!("{} on {kind}", device.name))
        })
    })
}

/// Returns what stands between a virtual machine and its disks, links and processors. Reports count
/// the rules whose evidence has this clause instead of naming each.
pub(super) fn virtualised(manifest: &Manifest) -> Option<String> {
    let hypervisor = manifest.host.hypervisor.as_ref()?;
    Some(format!("{hypervisor} is between this machine and its hardware"))
}

/// Returns what may be between this machine and the medium that cannot be seen from here: caches,
/// limits and dropped flushes of a hypervisor, a server, a controller or an array. `None` if every
/// disk at the bottom of the chain is attached directly.
pub(super) fn beyond_sight(manifest: &Manifest) -> Option<String> {
    if let Some(between) = virtualised(manifest) {
        return Some(between);
    }
    let devices = &manifest.target.devices;
    if !devices.iter().any(|device| device.kind == DeviceKind::Disk) {
        return Some("no disk beneath the data is known".to_owned());
    }
    let mut disks = devices.iter().filter(|device| device.kind == DeviceKind::Disk);
    let elsewhere = disks.find(|disk| !is_attached(disk))?;
    Some(format!("a controller or an array may stand behind {}", elsewhere.name))
}

/// Returns whether the disk itself is attached by a PCI Express or SATA link.
fn is_attached(disk: &BlockDevice) -> bool {
    let sata = |link: &Link| link.description.starts_with("SATA");
    disk.link.as_ref().is_some_and(|link| sata(link) || disk.name.starts_with("nvme"))
}

/// File systems whose files are stored by a server, which may cache reads and writes that were
/// requested to be direct. Sources: nfs(5), mount.cifs(8), the kernel's filesystems/9p.rst and
/// virtiofs.rst, mount.ceph(8).
const SERVED: [&str; 12] = [
    "nfs", "nfs4", "cifs", "smb3", "smbfs", "virtiofs", "9p", "ceph", "afs", "lustre", "gpfs",
    "vboxsf",
];

/// Returns whether a server, or a program of this machine (FUSE), stores the files of such a file
/// system.
pub(super) fn is_served(kind: &str) -> bool {
    SERVED.contains(&kind) || kind.starts_with("fuse")
}

/// Returns why it is unknown on this file system whether a direct request reached the storage;
/// `None` if it is known.
pub(super) fn direct_elsewhere(kind: &str) -> Option<String> {
    if kind == "zfs" {
        return Some("zfs honours O_DIRECT from OpenZFS 2.3 on and caches before that".to_owned());
    }
    is_served(kind).then(|| {
        format!("{kind} passes O_DIRECT on; whether its server caches cannot be seen from here")
    })
}

fn about_storage(group: Group, label: &str) -> bool {
    group != Group::Overhead && !CACHED_BY_INTENTION.contains(&label)
}

/// This program as a watched one: files that it has open do not belong to a database.
const OWN: &str = "blockstone";

impl<'a> Observed<'a> {
    /// Returns whether a series has anything of a server or group in the interval.
    pub(super) fn saw(&self, probe: &str) -> bool {
        self.interval.objects(probe).into_iter().any(|object| server_of(object) != OWN)
    }

    /// Returns the servers of a series whose objects are servers and their parts.
    pub(super) fn servers(&self, probe: &str) -> Vec<&'a str> {
        let objects = self.interval.objects(probe).into_iter();
        let is_meant = |name: &&str| self.run.is_some() || *name != OWN;
        objects.filter(|object| server_of(object) == *object).filter(is_meant).collect()
    }
}

/// Returns the server of `postgres@5432/checkpointer` or `postgres@5432 | /data/base/1`.
fn server_of(object: &str) -> &str {
    let server = object.split_once(" | ").map_or(object, |(server, _)| server);
    server.split('/').next().unwrap_or(server)
}

impl<'a> RunCase<'a> {
    /// Returns what was observed in the window.
    pub(super) fn observed(&self) -> Observed<'a> {
        let run = Some(Box::new(self.window.parameters()));
        Observed { interval: **self.window, run }
    }

    /// Judges the storage. The judgement concerns all figures.
    pub(super) fn of_storage(&self, check: impl Fn(&Manifest) -> Judgement) -> Judgement {
        check(self.manifest).at(all_figures())
    }

    /// Judges the files of the disks with `look`. Returns the judgement on the first file that does
    /// not pass, or else on the first file.
    pub(super) fn disk_files(&self, look: impl Fn(&FileEvidence) -> Judgement) -> Judgement {
        Self::files(&self.manifest.disk_files, look)
    }

    /// As [`RunCase::disk_files`], or for the database's own files: their layout is up to the
    /// database. Pages that were never used, such as the rest of an empty device, are not counted.
    pub(super) fn content(&self, look: impl Fn(&FileEvidence) -> Judgement) -> Judgement {
        let Manifest { disk_files, data_files, .. } = self.manifest;
        let files = if disk_files.is_empty() { data_files } else { disk_files };
        let used: Vec<_> = files.iter().map(without_unused_pages).collect();
        Self::files(&used, look)
    }

    fn files(files: &[FileEvidence], look: impl Fn(&FileEvidence) -> Judgement) -> Judgement {
        let judged: Vec<_> = files.iter().map(|file| (file, look(file))).collect();
        let passed = |judgement: &Judgement| judgement.outcome == Outcome::Pass;
        let Some((file, judgement)) =
            judged.iter().find(|(_, judgement)| !passed(judgement)).or(judged.first())
        else {
            return Judgement::inconclusive("no file of a disk was examined");
        };
        let evidence = match files.len() {
            1 => judgement.evidence.clone(),
            n if passed(judgement) => format!("{}, and so on of {n} files", judgement.evidence),
            n => format!("{}: {} (one of {n} files)", file.path, judgement.evidence),
        };
        Judgement { evidence, ..judgement.clone() }
    }
}

/// Returns the sample of a file without its pages of zeros.
fn without_unused_pages(file: &FileEvidence) -> FileEvidence {
    let used = file.sample.as_ref().map(|sample| DataSample {
        sampled_bytes: sample.sampled_bytes.saturating_sub(sample.zero_bytes),
        zero_bytes: 0,
        lz4_bytes: sample.lz4_bytes,
        // All pages of zeros except the first are counted as duplicates.
        duplicate_bytes: sample.duplicate_bytes.saturating_sub(sample.zero_bytes),
    });
    FileEvidence { sample: used, ..file.clone() }
}

#[cfg(test)]
mod tests {
    use blockstone_base::Capability;
    use blockstone_base::identity::FileMap;

    use super::*;

    #[test]
    fn pages_that_were_never_used_do_not_make_a_database_compressible() {
        let sample = DataSample {
            sampled_bytes: 512 * 4096,
            zero_bytes: 128 * 4096,
            lz4_bytes: 380 * 4096,
            duplicate_bytes: 127 * 4096,
        };
        let file = FileEvidence {
            path: "/data/rows.ibd".to_owned(),
            ours: false,
            map: FileMap {
                size_bytes: 64 << 20,
                allocated_bytes: 64 << 20,
                extents: 1,
                mapped_bytes: 64 << 20,
                hole_bytes: 0,
                unwritten_bytes: 0,
                encoded_bytes: 0,
                shared_bytes: 0,
                attributes: None,
                fiemap: Capability::Full,
            },
            sample: Some(sample),
        };
        let look = crate::rules::compressible::of;
        assert_eq!(look(&file).outcome, Outcome::Fail);
        assert_eq!(look(&without_unused_pages(&file)).outcome, Outcome::Pass);
    }

    #[test]
    fn only_a_disk_on_a_link_of_its_own_hides_nothing() {
        use crate::testing::{Fixture, device};
        let judged = |name: &str, link: Option<&str>, hypervisor: Option<&str>| {
            let mut manifest = Fixture::empty().manifest;
            manifest.host.hypervisor = hypervisor.map(str::to_owned);
            let mut disk = device(name, DeviceKind::Disk);
            disk.link = link.map(|description| Link {
                description: description.to_owned(),
                ..disk.link.clone().unwrap()
            });
            manifest.target.devices = vec![device("dm-0", DeviceKind::DeviceMapper), disk];
            beyond_sight(&manifest)
        };
        assert_eq!(judged("nvme0n1", Some("PCIe 16.0 GT/s x4"), None), None);
        assert_eq!(judged("sda", Some("SATA 6.0 Gb/s"), None), None);
        for (name, link, hypervisor) in [
            ("nvme0n1", Some("PCIe 16.0 GT/s x4"), Some("KVM")),
            ("sda", Some("PCIe 8.0 GT/s x8"), None),
            ("sda", Some("Fibre Channel 32 Gb/s"), None),
            ("nvme0n1", None, None),
        ] {
            assert!(judged(name, link, hypervisor).is_some(), "{name} {link:?} {hypervisor:?}");
        }
        let mut far = Fixture::empty().manifest;
        far.target.devices.clear();
        assert!(beyond_sight(&far).is_some());
    }
}
