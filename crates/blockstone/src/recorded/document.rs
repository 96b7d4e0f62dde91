//! Keys that the JSON documents of recordings share, besides their single figures and tables.

use std::collections::BTreeMap;

use blockstone_base::identity::{Host, StorageTarget};
use blockstone_base::stats::Estimate;
use blockstone_base::table::Missing;
use blockstone_base::verdict::Verdict;
use blockstone_record::Recording;
use blockstone_record::manifest::{Figure, FileEvidence, NamedCapability, Phase, Rank};
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value;

/// Tables for people, of what these keys say.
pub const SHOWN_ONLY: &[&str] =
    &["devices", "path", "test-file", "machine", "capabilities", "settings", "recording"];

/// Which recording it is, its figures, the storage and the machine. A key without a value is left
/// out.
#[derive(Serialize, JsonSchema)]
pub struct Objects<'a> {
    /// Whether no verdict condemns a number.
    trustworthy: bool,
    recording: Identity<'a>,
    /// Every figure that the verb knows, by name.
    figures: BTreeMap<&'a str, Known<'a>>,
    host: &'a Host,
    target: &'a StorageTarget,
    /// Settings after defaults, by the name of the option.
    settings: &'a BTreeMap<String, Value>,
    /// Capabilities of the measurement, with the reason for each that is degraded.
    capabilities: &'a [NamedCapability],
    /// File that was read and written.
    file: Option<&'a FileEvidence>,
    /// Files or devices that served a database as disks, and their layout after loading.
    disk_files: &'a [FileEvidence],
    /// Files in which a database on this machine stores the rows that are visited, after loading.
    data_files: &'a [FileEvidence],
    /// Of a merged recording: the smallest share of a rank's window that the common window covers.
    overlap_ratio: Option<f64>,
    /// Of a merged recording: number of ranks that are missing.
    missing_ranks: Option<u64>,
    /// Place of this process among several that applied the load together.
    rank: Option<&'a Rank>,
}

#[derive(Serialize, JsonSchema)]
struct Identity<'a> {
    /// Its directory.
    path: String,
    /// Short random id, also the suffix of the directory's name.
    id: &'a str,
    /// Format in which it is stored.
    format: &'a str,
    /// Command line, as given.
    command: &'a [String],
    /// Seed of all random choices and data, in digits.
    seed: String,
    /// RFC 3339.
    started_at: &'a str,
    /// RFC 3339; left out while it runs and after a crash.
    ended_at: Option<&'a str>,
    /// Remarks on phases.
    remarks: Vec<Remark<'a>>,
}

#[derive(Serialize, JsonSchema)]
struct Remark<'a> {
    /// Label of the phase.
    phase: &'a str,
    /// Remark of the load generator.
    note: Option<&'a str>,
    /// First error of a request.
    first_error: Option<&'a str>,
}

/// A figure: measured, condemned or not measured.
#[derive(Serialize, JsonSchema)]
#[serde(untagged)]
pub enum Known<'a> {
    Measured {
        /// Title for people.
        title: &'a str,
        /// Unit: `IOPS`, `MB/s`, `ns`.
        unit: &'a str,
        #[serde(flatten)]
        estimate: Estimate,
        /// Label of the phase that it was derived from.
        phase: &'a str,
    },
    Condemned {
        /// Title for people.
        title: &'a str,
        /// Unit: `IOPS`, `MB/s`, `ns`.
        unit: &'a str,
        /// The number, which may not be used.
        condemned: Estimate,
        /// Rules that condemn it.
        condemned_by: &'a [String],
        /// Label of the phase that it was derived from.
        phase: &'a str,
    },
    Unmeasured {
        /// Reason why it was not measured, such as `off` or `nothing happened`.
        unmeasured: &'static str,
    },
}

impl<'a> From<&'a Figure> for Known<'a> {
    fn from(figure: &'a Figure) -> Self {
        let Figure { title, unit, estimate, phase, condemned_by } = figure;
        if condemned_by.is_empty() {
            return Self::Measured { title, unit, estimate: *estimate, phase };
        }
        Self::Condemned { title, unit, condemned: *estimate, condemned_by, phase }
    }
}

/// Returns the keys of a recording. `names` are the figures that its verb knows.
pub fn objects<'a>(
    recording: &'a Recording,
    names: &'a [&str],
    figures: &'a [(String, Figure)],
    verdicts: &[Verdict],
) -> Objects<'a> {
    let manifest = &recording.manifest;
    let merged = manifest.merged.as_ref();
    let unmeasured = || Known::Unmeasured { unmeasured: Missing::Nothing.word() };
    let mut known: BTreeMap<&str, Known<'_>> =
        names.iter().map(|name| (*name, unmeasured())).collect();
    known.extend(figures.iter().map(|(name, figure)| (name.as_str(), figure.into())));
    Objects {
        trustworthy: !verdicts.iter().any(Verdict::condemns),
        recording: Identity {
            path: recording.dir.display().to_string(),
            id: &manifest.id,
            format: &manifest.format,
            command: &manifest.argv,
            seed: manifest.seed.to_string(),
            started_at: &manifest.started_at,
            ended_at: manifest.ended_at.as_deref(),
            remarks: manifest.phases.iter().filter_map(remark).collect(),
        },
        figures: known,
        host: &manifest.host,
        target: &manifest.target,
        settings: &manifest.settings,
        capabilities: &manifest.capabilities,
        file: manifest.file.as_ref(),
        disk_files: &manifest.disk_files,
        data_files: &manifest.data_files,
        overlap_ratio: merged.map(|it| it.overlap_ratio),
        missing_ranks: merged.map(|it| it.missing.len() as u64),
        rank: manifest.rank.as_ref(),
    }
}

fn remark(phase: &Phase) -> Option<Remark<'_>> {
    let (note, first_error) = (phase.note.as_deref(), phase.first_error.as_deref());
    note.or(first_error)?;
    Some(Remark { phase: &phase.label, note, first_error })
}
