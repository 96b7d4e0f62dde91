//! What rules look at: one kind of evidence for each kind of recording that is judged.

use blockstone_base::identity::{BlockDevice, StorageTarget};
use blockstone_base::load::Op;
use blockstone_base::verdict::Outcome;
use blockstone_record::manifest::{DataSample, Figure, FileEvidence, Group, Manifest, Phase};
use blockstone_reduce::findings::{FileNote, Findings as ScanFindings};

use super::Judgement;
use crate::findings::Point;
use crate::run::{RunFindings, RunWindow};
use crate::window::Window;

/// Everything that is known of one recording, by what it is a recording of.
pub enum Evidence<'a> {
    Calibration(Case<'a>),
    Run(RunCase<'a>),
    Scan(ScanCase<'a>),
}

pub struct Case<'a> {
    pub manifest: &'a Manifest,
    /// Its windows, in the order of time.
    pub windows: &'a [Window],
    pub points: &'a [Point],
    pub summary: &'a [(String, Figure)],
    /// How far the reference point moved.
    pub drift_ratio: Option<f64>,
}

pub struct RunCase<'a> {
    pub(crate) manifest: &'a Manifest,
    pub(crate) window: &'a RunWindow<'a>,
    pub(crate) findings: &'a RunFindings,
}

pub struct ScanCase<'a> {
    pub(crate) findings: &'a ScanFindings,
    pub(crate) files: &'a [FileNote],
    /// Whether chunks of variable size were looked for.
    pub(crate) chunks: bool,
}

impl Evidence<'_> {
    /// The figures that a judgement on these places concerns. Places are labels of points for a
    /// calibration, names of figures for everything else.
    pub(super) fn figures_at(&self, places: &[String]) -> Vec<String> {
        match self {
            Self::Calibration(case) => {
                let concerned = case.summary.iter().filter(|f| places.contains(&f.1.phase));
                concerned.map(|(name, _)| name.clone()).collect()
            }
            Self::Run(case) => {
                let known = |name: &&String| case.findings.figure(name).is_some();
                places.iter().filter(known).cloned().collect()
            }
            Self::Scan(_) => places.to_vec(),
        }
    }
}

/// File systems that keep their files in main memory.
const MEMORY_FILE_SYSTEMS: [&str; 4] = ["tmpfs", "ramfs", "devtmpfs", "hugetlbfs"];

/// Points that read through the page cache by intention, for contrast.
const CACHED_BY_INTENTION: [&str; 2] = ["cached-read/cached", "cached-read/buffered"];

impl<'a> Case<'a> {
    /// Points that claim to describe the storage: not the tool's own cost, and not the reads that
    /// are cached by intention.
    pub fn storage_points(&self) -> impl Iterator<Item = &'a Point> + use<'a> {
        self.points.iter().filter(|point| about_storage(point.group, &point.label))
    }

    pub fn reads(&self) -> impl Iterator<Item = &'a Point> + use<'a> {
        self.storage_points().filter(|point| point.load.op == Op::Read)
    }

    /// Whether the reference point moved by more than `ratio` over the run: then two points that
    /// were measured at different times cannot be told apart by less.
    pub fn moved(&self, ratio: f64) -> bool {
        self.drift_ratio.is_some_and(|drift| drift > ratio)
    }

    pub fn group(&self, group: Group) -> impl Iterator<Item = &'a Point> + use<'a> {
        self.points.iter().filter(move |point| point.group == group)
    }

    pub fn point(&self, label: &str) -> Option<&'a Point> {
        self.points.iter().find(|point| point.label == label)
    }

    /// Storage points from which a headline figure was read.
    pub fn headlines(&self) -> impl Iterator<Item = &'a Point> {
        let summary = self.summary;
        self.storage_points()
            .filter(move |point| summary.iter().any(|(_, figure)| figure.phase == point.label))
    }

    /// The windows of one label, in the order of time.
    pub fn windows_of(&self, label: &str) -> Vec<&'a Window> {
        let manifest = self.manifest;
        self.windows.iter().filter(|w| manifest.phases[w.phase].label == label).collect()
    }

    pub fn phase(&self, window: &Window) -> &'a Phase {
        &self.manifest.phases[window.phase]
    }

    /// Windows whose load claims to describe the storage, in the order of time.
    pub fn storage_windows(&self) -> impl Iterator<Item = &'a Window> {
        let manifest = self.manifest;
        self.windows.iter().filter(move |window| {
            let phase = &manifest.phases[window.phase];
            about_storage(phase.group, &phase.label)
        })
    }

    /// The devices from the top of the chain to its bottom.
    pub fn devices(&self) -> &'a [BlockDevice] {
        &self.manifest.target.devices
    }
}

/// The target's file system type; empty for a device.
pub(super) fn file_system(manifest: &Manifest) -> &str {
    manifest.target.file_system.as_ref().map_or("", |fs| fs.kind.as_str())
}

/// The kernel that the measurement ran on: `(6, 18)` of `6.18.5`.
pub(super) fn kernel_version(manifest: &Manifest) -> Option<(u32, u32)> {
    let mut parts = manifest.host.kernel.split(|c: char| !c.is_ascii_digit());
    Some((parts.next()?.parse().ok()?, parts.next()?.parse().ok()?))
}

/// Whether a file system of this type keeps its files in main memory.
pub(crate) fn keeps_in_memory(kind: &str) -> bool {
    MEMORY_FILE_SYSTEMS.contains(&kind)
}

/// The file system under test, or that of a loop device's backing file, where it keeps its files
/// in main memory: `tmpfs`, `loop0 on tmpfs`.
pub(crate) fn in_memory(target: &StorageTarget) -> Option<String> {
    let file_system = target.file_system.as_ref().map(|fs| fs.kind.clone());
    file_system.filter(|kind| keeps_in_memory(kind)).or_else(|| {
        target.devices.iter().find_map(|device| {
            let kind =
                device.backing_file_system.as_deref().filter(|kind| keeps_in_memory(kind))?;
            Some(format!("{} on {kind}", device.name))
        })
    })
}

fn about_storage(group: Group, label: &str) -> bool {
    group != Group::Overhead && !CACHED_BY_INTENTION.contains(&label)
}

impl RunCase<'_> {
    /// What `look` concludes about the disks' files: about the first that does not pass, or else
    /// about the first.
    pub(super) fn disk_files(&self, look: impl Fn(&FileEvidence) -> Judgement) -> Judgement {
        Self::files(&self.manifest.disk_files, look)
    }

    /// As [`RunCase::disk_files`], or of the database's own files: how these lie is its business,
    /// and pages of them that were never used are not read.
    pub(super) fn content(&self, look: impl Fn(&FileEvidence) -> Judgement) -> Judgement {
        if !self.manifest.disk_files.is_empty() {
            return self.disk_files(look);
        }
        let used: Vec<_> = self.manifest.data_files.iter().map(without_unused_pages).collect();
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

/// What was sampled of a file, without its pages of zeros.
fn without_unused_pages(file: &FileEvidence) -> FileEvidence {
    let used = file.sample.as_ref().map(|sample| DataSample {
        sampled_bytes: sample.sampled_bytes - sample.zero_bytes,
        zero_bytes: 0,
        lz4_bytes: sample.lz4_bytes,
        // All pages of zeros but the first occurred before.
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
}
