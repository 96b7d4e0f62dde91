//! The directory of runs: the names of run directories, and the list of existing ones.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{File, TryLockError};
use std::io;
use std::path::{Path, PathBuf};

use blockstone_sys::held::HeldDir;
use blockstone_sys::{path, random};
use jiff::civil::DateTime;
use jiff::tz::TimeZone;
use jiff::{Timestamp, Zoned};

use crate::elsewhere;
use crate::error::RecordError;
use crate::labels::{LABELS, Labels};
use crate::manifest::{End, Figure, MANIFEST, Manifest};
use crate::recording::read_manifest;

/// Name of the directory of runs in a working directory.
pub const RUNS: &str = "blockstone-runs";
/// Prefix of a run directory's name: local time, so that names sort by age.
const TIME_FORMAT: &str = "%Y%m%d-%H%M%S";

/// Characters of an id: Crockford's base 32, in which no two characters look alike.
const LETTERS: &[u8; 32] = b"0123456789abcdefghjkmnpqrstvwxyz";

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RunDir {
    /// Path for [`crate::Recorder::create`], which also creates the directory.
    pub path: PathBuf,
    pub id: String,
}

#[derive(Clone, Debug, PartialEq)]
pub struct RunEntry {
    pub path: PathBuf,
    pub id: String,
    pub verb: String,
    pub started_at: Option<Timestamp>,
    /// When its recording was last written.
    pub changed_at: Option<Timestamp>,
    pub target_path: Option<String>,
    pub state: RunState,
    /// Figures by name; empty before the end.
    pub summary: BTreeMap<String, Figure>,
    /// Tags and note of the user, or why they cannot be read.
    pub labels: Result<Labels, String>,
}

impl RunEntry {
    /// Returns the name of its directory.
    pub fn name(&self) -> String {
        self.path.file_name().unwrap_or_default().to_string_lossy().into_owned()
    }
}

/// How a run ended, as far as can be seen from outside.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RunState {
    /// A process of this machine is recording it.
    Running,
    /// It was killed, or runs on another machine that shares this directory.
    Unfinished,
    Ended(End),
    Damaged {
        reason: String,
    },
    /// It is a directory of recordings, one for each combination of settings and each repeat.
    Grid {
        recordings: usize,
    },
}

/// Returns the directory `<root>/<YYYYMMDD-HHMMSS>-<verb>-<id>` for a new run; nothing is created
/// yet. Fails when `root` belongs to another user, or is writable by others, and when the operating
/// system provides no random numbers.
pub fn new_run_dir(root: &Path, verb: &str, now: &Zoned) -> Result<RunDir, RecordError> {
    own(root)?;
    let id = new_id()?;
    let time = now.strftime(TIME_FORMAT);
    Ok(RunDir { path: root.join(format!("{time}-{verb}-{id}")), id })
}

/// Returns exactly `dir` for a new run (`--record`); nothing is created yet. Fails when it exists
/// and is not an empty directory owned by this user.
pub fn out_run_dir(dir: &Path) -> Result<RunDir, RecordError> {
    if let Some(held) = own(dir)?
        && !held.is_empty().map_err(RecordError::io("record into", dir))?
    {
        return Err(RecordError::NotEmpty { path: dir.to_owned() });
    }
    Ok(RunDir { path: dir.to_owned(), id: new_id()? })
}

/// Returns the directory if it exists. Fails when others could redirect writes to it.
fn own(dir: &Path) -> Result<Option<HeldDir>, RecordError> {
    match HeldDir::open(dir) {
        Ok(held) => Ok(Some(held)),
        Err(source) if source.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(source) => Err(RecordError::io("record into", dir)(source)),
    }
}

/// Name of the file in the directory of a grid that names its recordings.
pub const GRID: &str = "grid.json";
/// Name of the page in the directory of a recording or a grid.
pub const PAGE: &str = "report.html";
/// The verb that makes grids.
const GRID_VERB: &str = "run";

/// Returns the runs in `root`, and those that were [noted](crate::note_elsewhere) there to be
/// elsewhere, newest first: recordings, and grids of recordings. A run whose manifest cannot be
/// read is listed with the reason; a directory that is not a run is not listed. If `root` does not
/// exist, there are no runs. Fails when `root` cannot be listed.
pub fn list_runs(root: &Path) -> Result<Vec<RunEntry>, RecordError> {
    let mut runs = list_runs_in(root)?;
    let mut seen: BTreeSet<PathBuf> =
        runs.iter().filter_map(|run| path::whole(&run.path).ok()).collect();
    let mut places = elsewhere::places(root);
    places.retain(|place| path::whole(place).is_ok_and(|place| seen.insert(place)));
    runs.extend(places.iter().filter_map(|place| entry(place)));
    newest_first(&mut runs);
    Ok(runs)
}

/// Returns only the runs in `root`.
pub fn list_runs_in(root: &Path) -> Result<Vec<RunEntry>, RecordError> {
    listed(root, entry)
}

fn entry(path: &Path) -> Option<RunEntry> {
    if is_grid(path) { Some(grid_entry(path)) } else { run_entry(path) }
}

fn newest_first(runs: &mut [RunEntry]) {
    runs.sort_by(|a, b| (b.started_at, &b.path).cmp(&(a.started_at, &a.path)));
}

/// Returns the recordings of the grid in `dir`, newest first.
pub fn list_grid(dir: &Path) -> Result<Vec<RunEntry>, RecordError> {
    listed(dir, run_entry)
}

fn listed(
    root: &Path,
    entry: impl Fn(&Path) -> Option<RunEntry>,
) -> Result<Vec<RunEntry>, RecordError> {
    let entries = match path::entries(root) {
        Err(source) if source.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        entries => entries.map_err(RecordError::io("list", root))?,
    };
    let mut runs: Vec<RunEntry> = entries.iter().filter_map(|path| entry(path)).collect();
    newest_first(&mut runs);
    Ok(runs)
}

fn is_grid(path: &Path) -> bool {
    !path.join(MANIFEST).exists() && path.join(GRID).exists()
}

/// A grid began with the first of its recordings.
fn grid_entry(path: &Path) -> RunEntry {
    let named = path.file_name().and_then(Named::of).unwrap_or_default();
    let parts = list_grid(path).unwrap_or_default();
    let first = parts.last();
    let mut entry = RunEntry {
        path: path.to_owned(),
        id: named.id,
        verb: GRID_VERB.to_owned(),
        started_at: first.and_then(|part| part.started_at).or(named.started_at),
        changed_at: parts.iter().map(|part| part.changed_at).max().unwrap_or_default(),
        target_path: first.and_then(|part| part.target_path.clone()),
        state: RunState::Grid { recordings: parts.len() },
        summary: BTreeMap::new(),
        labels: labels(path),
    };
    if entry.id.is_empty() {
        entry.id = entry.name();
    }
    entry
}

fn labels(path: &Path) -> Result<Labels, String> {
    Labels::read(path).map_err(|error| error.to_string())
}

fn run_entry(path: &Path) -> Option<RunEntry> {
    let named = path.file_name().and_then(Named::of);
    let has_manifest = path.join(MANIFEST).exists();
    if !path.is_dir() || (named.is_none() && !has_manifest) {
        return None;
    }
    Some(match read_manifest(path) {
        Ok(manifest) => RunEntry {
            path: path.to_owned(),
            started_at: made_at(&manifest).parse().ok(),
            id: manifest.id,
            verb: manifest.verb,
            changed_at: match manifest.end {
                End::Running => last_written(path),
                _ => written_at(&path.join(MANIFEST)),
            },
            target_path: Some(manifest.target.path),
            state: match manifest.end {
                End::Running if is_locked(path) => RunState::Running,
                End::Running => RunState::Unfinished,
                end => RunState::Ended(end),
            },
            summary: manifest.summary,
            labels: labels(path),
        },
        Err(error) => {
            let named = named.unwrap_or_default();
            RunEntry {
                path: path.to_owned(),
                id: named.id,
                verb: named.verb,
                started_at: named.started_at,
                changed_at: last_written(path),
                target_path: None,
                state: RunState::Damaged { reason: error.to_string() },
                summary: BTreeMap::new(),
                labels: labels(path),
            }
        }
    })
}

/// Returns when it began. What was merged is newer than the recordings that it was made from.
fn made_at(manifest: &Manifest) -> &str {
    let ended_at = manifest.merged.as_ref().and(manifest.ended_at.as_deref());
    ended_at.unwrap_or(&manifest.started_at)
}

fn written_at(path: &Path) -> Option<Timestamp> {
    let modified = path.symlink_metadata().ok()?.modified().ok()?;
    Timestamp::try_from(modified).ok()
}

/// Returns when a file of a recording that did not end was last written. A recording may go on for
/// months, and keep only its last days. Tags and pages are made of it later.
fn last_written(dir: &Path) -> Option<Timestamp> {
    let is_recorded = |path: &&PathBuf| !path.ends_with(LABELS) && !path.ends_with(PAGE);
    let entries = path::entries(dir).ok()?;
    entries.iter().filter(is_recorded).filter_map(|path| written_at(path)).max()
}

/// The parts of the name of a recording's directory.
#[derive(Default)]
pub(crate) struct Named {
    started_at: Option<Timestamp>,
    verb: String,
    id: String,
}

impl Named {
    pub fn of(name: impl AsRef<Path>) -> Option<Self> {
        let (time, rest) = name.as_ref().to_str()?.split_at_checked(15)?;
        let (verb, id) = rest.strip_prefix('-')?.rsplit_once('-')?;
        let time = DateTime::strptime(TIME_FORMAT, time).ok()?;
        let zoned = time.to_zoned(TimeZone::system()).ok();
        Some(Self {
            started_at: zoned.map(|zoned| zoned.timestamp()),
            verb: verb.to_owned(),
            id: id.to_owned(),
        })
    }
}

/// Returns whether a recorder on this machine holds the directory's lock.
fn is_locked(dir: &Path) -> bool {
    let lock = HeldDir::hold(dir).and_then(|held| held.file()).map(|file| file.try_lock_shared());
    matches!(lock, Ok(Err(TryLockError::WouldBlock)))
}

/// Takes the directory's lock. A file system without locks is not an error: a reader then cannot
/// tell a running recording from a killed one, and says so.
pub(crate) fn lock(dir: &HeldDir) -> Result<File, RecordError> {
    let file = dir.file().map_err(RecordError::io("open", dir.path()))?;
    match file.try_lock() {
        Err(TryLockError::WouldBlock) => Err(RecordError::InUse { path: dir.path().to_owned() }),
        Ok(()) | Err(TryLockError::Error(_)) => Ok(file),
    }
}

/// Locks the directory of a grid while its recordings are made, so that it is not removed.
pub fn lock_grid(dir: &Path) -> Result<File, RecordError> {
    lock(&own(dir)?.ok_or_else(|| RecordError::NotARecording { path: dir.to_owned() })?)
}

/// Returns six characters with 30 random bits: enough among the runs of one second.
fn new_id() -> Result<String, RecordError> {
    let mut bytes = [0_u8; 6];
    random::fill(&mut bytes).map_err(RecordError::io("name", Path::new("a recording")))?;
    Ok(bytes.iter().map(|byte| char::from(LETTERS[usize::from(byte % 32)])).collect())
}
