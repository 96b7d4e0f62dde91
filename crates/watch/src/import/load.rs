//! Load statistics kept by databases: reports of AWR and Statspack, AWR-Miner, CSV. All files are
//! read into memory, sorted, and converted to rows of the load series.

mod rows;

use std::borrow::Cow;
use std::hash::{BuildHasher, Hasher, RandomState};
use std::io::Read;
use std::path::Path;

use blockstone_base::hint::Hint as _;
use blockstone_base::identity::Host;
use blockstone_import::{
    HEAD_BYTES, ImportError as LoadError, Names, Report, Series, recognises, series,
};
use blockstone_input::{Foreign, LeftOut, Source};
use blockstone_record::manifest::{Imported, ImportedObject};

use super::{ALL, ImportError, Snapshot, found};

/// No report is this large.
const FILE_BYTES: u64 = 64 << 20;
/// Maximum number of file names that a recording keeps.
const NAMED: usize = 8;
/// Maximum number of reasons for skipped files that are listed individually.
const SKIPS_NAMED: usize = 20;

pub const MADE_BY: &str = "reports of AWR and Statspack, AWR-Miner, CSV of a load";

/// How many databases may be in one import.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Databases {
    One,
    Any,
}

/// Loads of databases, as read from files.
pub struct Load {
    pub snapshots: Vec<Snapshot>,
    pub host: Host,
    pub imported: Imported,
    /// The databases, by their names in objects.
    pub databases: Vec<String>,
}

/// Whether a file contains the load of a database.
pub fn holds(file: &Source) -> bool {
    let head =
        bytes_of(file, HEAD_BYTES as u64).map(|bytes| String::from_utf8_lossy(&bytes).into_owned());
    head.is_ok_and(|head| recognises(&head))
}

impl Load {
    /// Reads these files, in any order. A skipped file, or one that was left out before, is listed
    /// in the notes, with the reason.
    pub fn read(
        files: &[Source],
        left_out: &[LeftOut],
        keep_names: bool,
        databases: Databases,
    ) -> Result<Self, ImportError> {
        let (mut reports, mut skips) = (Vec::new(), Vec::new());
        let salt = salt();
        let names = if keep_names { Names::Kept } else { Names::Hidden { salt: &salt } };
        for file in files {
            match report(file, names) {
                Ok(report) => reports.push((file.name(), report)),
                Err(skip) => skips.push((file.name(), skip)),
            }
        }
        if reports.is_empty() {
            return Err(none_read(files, &skips));
        }
        let mut notes = notes(&reports, &skips);
        notes.extend(found::told(left_out));
        let reports: Vec<Report> = reports.into_iter().map(|(_, report)| report).collect();
        Self::of(&series(&reports), &reports, files_named(files), notes, databases)
    }

    fn of(
        series: &[Series],
        reports: &[Report],
        file: String,
        mut notes: Vec<String>,
        wanted: Databases,
    ) -> Result<Self, ImportError> {
        let databases = rows::names(series);
        if wanted == Databases::One && series.len() > 1 {
            return Err(ImportError::Databases { names: databases.join(", ") });
        }
        for (series, name) in series.iter().zip(&databases) {
            notes.extend(series.notes.iter().map(|note| format!("{name}: {note}")));
        }
        let hosts = reports.iter().flat_map(|report| &report.intervals);
        let mut hosts: Vec<&str> = hosts.map(|interval| interval.instance.host.as_str()).collect();
        hosts.sort_unstable();
        hosts.dedup();
        hosts.retain(|host| !host.is_empty());
        let kinds = series.iter().flat_map(|series| &series.kinds);
        let mut tools: Vec<&str> = kinds.map(|kind| kind.tool()).collect();
        tools.sort_unstable();
        tools.dedup();
        let mut releases: Vec<&String> =
            series.iter().filter_map(|series| series.database.release.as_ref()).collect();
        releases.sort_unstable();
        releases.dedup();
        let imported = Imported {
            tool: tools.join("+"),
            tool_version: match releases[..] {
                [release] => Some(release.clone()),
                _ => None,
            },
            file,
            holds: "totals of intervals between snapshots".to_owned(),
            notes,
            objects: series.iter().zip(&databases).map(object).collect(),
        };
        let host = Host {
            hostname: if let [host] = hosts[..] { host.to_owned() } else { String::new() },
            ..Host::default()
        };
        Ok(Self { snapshots: rows::snapshots(series, &databases), host, imported, databases })
    }
}

/// Returns what the rows of a database were imported from.
fn object((series, name): (&Series, &String)) -> ImportedObject {
    let mut kinds: Vec<&str> = series.kinds.iter().map(|kind| kind.key()).collect();
    kinds.dedup();
    let container = series.database.container.as_ref().map(|it| it.name.clone());
    let undated = series.intervals.iter().any(|interval| interval.is_undated);
    ImportedObject { name: name.clone(), kind: kinds.join("+"), container, undated }
}

/// Why a file is not read, and what to do about it.
#[derive(Clone, Debug)]
struct Skip {
    why: String,
    hint: Option<String>,
}

impl Skip {
    fn by(why: impl Into<String>) -> Self {
        Self { why: why.into(), hint: None }
    }
}

/// Returns random bytes that are not stored anywhere.
fn salt() -> [u8; 16] {
    let random = || RandomState::new().build_hasher().finish().to_le_bytes();
    let mut salt = [0; 16];
    salt[..8].copy_from_slice(&random());
    salt[8..].copy_from_slice(&random());
    salt
}

fn report(file: &Source, names: Names<'_>) -> Result<Report, Skip> {
    let bytes = bytes_of(file, FILE_BYTES + 1).map_err(|error| Skip {
        why: error.to_string(),
        hint: Foreign::in_error(&error).map(|kind| kind.hint.to_owned()),
    })?;
    if bytes.len() as u64 > FILE_BYTES {
        return Err(Skip::by(format!("it has more than {} MiB", FILE_BYTES >> 20)));
    }
    if bytes.iter().all(u8::is_ascii_whitespace) {
        return Err(Skip::by("it is empty"));
    }
    if bytes.contains(&0) {
        return Err(Skip::by("it is binary"));
    }
    // Reports of old servers contain names in the character set of the database.
    let text = String::from_utf8_lossy(&bytes);
    let name = file.name().file_stem().unwrap_or_default().to_string_lossy();
    blockstone_import::read(&name, &text, names).map_err(|error| {
        let head = &text[..text.floor_char_boundary(HEAD_BYTES)];
        match (error, ALL.iter().find(|format| (format.recognises)(head))) {
            (LoadError::Unknown, Some(format)) => Skip {
                why: format!("reports of a database are read, and this is of {}", format.tool),
                hint: Some("give it by itself".to_owned()),
            },
            (error, _) => Skip { why: error.to_string(), hint: error.hint().map(Cow::into_owned) },
        }
    })
}

/// Reads the beginning of a file, decompressed; a truncated one as far as possible.
fn bytes_of(file: &Source, most: u64) -> std::io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    match file.open(|| true)?.decoded()?.take(most).read_to_end(&mut bytes) {
        Err(error) if bytes.is_empty() => Err(error),
        _ => Ok(bytes),
    }
}

fn file_name(path: &Path) -> String {
    path.file_name().unwrap_or_default().to_string_lossy().into_owned()
}

/// Names the files for a recording.
pub fn files_named(files: &[Source]) -> String {
    let names: Vec<String> =
        files.iter().take(NAMED).map(|file| file.name().display().to_string()).collect();
    match files.len().saturating_sub(NAMED) {
        0 => names.join(", "),
        more => format!("{} and {more} more", names.join(", ")),
    }
}

fn none_read(files: &[Source], skips: &[(&Path, Skip)]) -> ImportError {
    let first = files.first().map(Source::name);
    let path = skips.first().map(|(path, _)| *path).or(first).map(Path::to_owned);
    let skip = match skips {
        [] => Skip::by("there is no file in it"),
        [(_, skip), ..] => skip.clone(),
    };
    let hint = skip.hint.unwrap_or_else(|| format!("what can be imported: {MADE_BY}"));
    ImportError::Load { path: path.unwrap_or_default(), what: skip.why, hint }
}

fn notes(reports: &[(&Path, Report)], skips: &[(&Path, Skip)]) -> Vec<String> {
    let of_report = |(path, report): &(&Path, Report)| {
        let name = file_name(path);
        report.notes.iter().map(|note| format!("{name}: {note}")).collect::<Vec<_>>()
    };
    let mut notes: Vec<String> = reports.iter().flat_map(of_report).collect();
    let skipped = skips.iter().take(SKIPS_NAMED).map(|(path, Skip { why, hint })| {
        let hint = hint.as_ref().map(|hint| format!("; {hint}")).unwrap_or_default();
        format!("{} is not read: {why}{hint}", file_name(path))
    });
    notes.extend(skipped);
    if skips.len() > SKIPS_NAMED {
        notes.push(format!("{} more files are not read", skips.len() - SKIPS_NAMED));
    }
    notes.sort();
    notes
}
