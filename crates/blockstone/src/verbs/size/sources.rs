//! Sources of a load: recordings, and files that are imported in memory.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use anyhow::{Result, bail};
use blockstone_base::database::LOAD_ADVICE;
use blockstone_figures::History;
use blockstone_record::Recording;
use blockstone_record::manifest::Group;
use blockstone_size::hardware::cache::AdviceRow;
use blockstone_size::{LeftOut, Observation, Source};
use blockstone_watch::{Databases, Destination, Import, NO_TIMES};
use jiff::tz::TimeZone;

use super::args::SizeArgs;
use crate::failure::Failure;
use crate::recordings;
use crate::verb::Context;

/// Present size of a cache, as its advice expresses it.
const PRESENT_PPM: u64 = 1_000_000;
/// Maximum number of files in a directory that are examined.
const FILES_MAX: usize = 10_000;

/// Everything that was read.
#[derive(Default)]
pub struct Sources {
    pub observations: Vec<Observation>,
    pub histories: Vec<History>,
    /// The kind of each history.
    pub kinds: Vec<Source>,
    /// Devices that are not counted by themselves, with the name of their source.
    pub left_out: Vec<(String, LeftOut)>,
    pub notes: Vec<String>,
}

/// Phases of a recording that are a load of their own, not its preparation.
const LOADS: [Group; 2] = [Group::Workload, Group::Noise];

pub fn read(args: &SizeArgs, context: &Context) -> Result<Sources> {
    let mut sources = Sources::default();
    let mut files: Vec<PathBuf> = Vec::new();
    for path in args.inputs() {
        let name = path.display().to_string();
        if path.join("manifest.json").is_file() || !path.exists() && names_recording(&name) {
            sources.recording(&recordings::open(&name, &context.global.runs_dir)?)?;
        } else if path.is_dir() {
            let before = (files.len(), sources.histories.len());
            directory(path, &mut files, &mut sources)?;
            if before == (files.len(), sources.histories.len()) {
                bail!(Failure::new(
                    format!("size {name}: the directory has no files"),
                    "name reports, recordings or the directories that they are in"
                ));
            }
        } else {
            files.push(path.clone());
        }
    }
    if !files.is_empty() {
        sources.files(&files, args, context)?;
    }
    Ok(sources)
}

/// Whether a name that is not a path may be that of a recording.
fn names_recording(name: &str) -> bool {
    name == "last" || !name.contains(['/', '.'])
}

/// Adds a directory, if it has anything but recordings, and the recordings in it.
fn directory(path: &Path, files: &mut Vec<PathBuf>, sources: &mut Sources) -> Result<()> {
    let found = blockstone_sys::path::entries(path).map_err(|error| {
        let path = path.display();
        anyhow::anyhow!(Failure::new(
            format!("read {path}: {error}"),
            "check the path and that this user may read it"
        ))
    })?;
    if found.len() > FILES_MAX {
        let path = path.display();
        bail!(Failure::new(
            format!("read {path}: it has more than {FILES_MAX} files"),
            "name those that are meant"
        ));
    }
    let (recordings, others): (Vec<PathBuf>, Vec<PathBuf>) =
        found.into_iter().partition(|entry| entry.join("manifest.json").is_file());
    for recording in recordings {
        sources.recording(&Recording::open(&recording)?)?;
    }
    files.extend((!others.is_empty()).then(|| path.to_owned()));
    Ok(())
}

impl Sources {
    /// Whether all sources say when their intervals were, and how long.
    pub fn is_timed(&self) -> bool {
        !self.notes.iter().any(|note| note.contains(NO_TIMES))
    }

    fn recording(&mut self, recording: &Recording) -> Result<()> {
        let manifest = &recording.manifest;
        let is_load = |group: &Group| LOADS.contains(group);
        let windows = manifest.phases.iter().filter(|phase| is_load(&phase.group));
        let spans: Vec<(u64, u64)> =
            windows.map(|phase| (phase.window_start_ns, phase.window_end_ns)).collect();
        let imported = manifest.imported.iter().flat_map(|imported| &imported.notes);
        self.notes.extend(imported.filter(|note| note.contains(NO_TIMES)).cloned());
        let history = History::read(recording)?;
        let zone = if manifest.imported.is_some() { TimeZone::UTC } else { TimeZone::system() };
        let name = recording.dir.file_name().unwrap_or_default().to_string_lossy().into_owned();
        // Everything else that the host did meanwhile is not part of the load.
        let devices: Vec<_> = manifest.target.devices.iter().map(|it| it.name.as_str()).collect();
        self.history(history.in_zone(zone), &spans, &devices, &name);
        Ok(())
    }

    fn history(&mut self, history: History, spans: &[(u64, u64)], devices: &[&str], name: &str) {
        let (kind, found) = blockstone_size::observations(&history, spans, devices, name);
        self.observations.extend(found);
        if matches!(kind, Source::Host | Source::Devices) {
            let left_out = blockstone_size::left_out(&history, devices);
            self.notes.extend(said(&left_out).map(|note| format!("{name}: {note}")));
            self.left_out.extend(left_out.into_iter().map(|device| (name.to_owned(), device)));
        }
        self.kinds.push(kind);
        self.histories.push(history);
    }

    /// Reads what databases recorded about themselves, or files of sar, iostat or collectl.
    fn files(&mut self, files: &[PathBuf], args: &SizeArgs, context: &Context) -> Result<()> {
        let import = Import::read_any(files, args.keep_names, Databases::Any)?;
        self.notes.extend(import.notes().iter().cloned());
        if let Some(dir) = &args.save {
            let run = recordings::elsewhere(dir, &context.global.runs_dir)?;
            let to = Destination { dir: run.path, id: run.id };
            import.record(&to, &recordings::command_line())?;
        }
        let name = files[0].file_name().unwrap_or_default().to_string_lossy().into_owned();
        self.history(import.history()?, &[], &[], &name);
        Ok(())
    }
}

/// Devices of one reason that a note names.
const NAMED: usize = 8;

/// Returns a note for each reason for which devices are left out.
fn said(left_out: &[LeftOut]) -> impl Iterator<Item = String> {
    let mut reasons: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for LeftOut { name, why } in left_out {
        reasons.entry(why).or_default().push(name);
    }
    reasons.into_iter().map(|(why, names)| {
        let more = match names.len().saturating_sub(NAMED) {
            0 => String::new(),
            more => format!(" and {more} more"),
        };
        let names = names[..names.len().min(NAMED)].join(", ");
        format!("left out: {names}{more} ({why})")
    })
}

/// The reads that a database expects with other cache sizes, by the last advice of its instances;
/// only sizes that all of them have.
pub fn advice(sources: &Sources) -> Vec<AdviceRow> {
    let mut last: BTreeMap<&str, (u64, u64, f64)> = BTreeMap::new();
    for row in sources.histories.iter().flat_map(|it| it.rows(LOAD_ADVICE.probe)) {
        let known = row.number("size_ppm").zip(row.number("physical_reads"));
        let Some((ppm, reads)) = known.filter(|(ppm, _)| *ppm > 0.0) else { continue };
        if last.get(row.object).is_none_or(|it| it.0 <= row.t_ns) {
            last.insert(row.object, (row.t_ns, ppm as u64, reads));
        }
    }
    // Sizes change from one snapshot to the next: those of the last snapshot count.
    let newest = last.values().map(|it| it.0).max();
    let mut sizes: BTreeMap<u64, (f64, usize)> = BTreeMap::new();
    for (_, ppm, reads) in last.into_values().filter(|it| Some(it.0) == newest) {
        let size = sizes.entry(ppm).or_default();
        *size = (size.0 + reads, size.1 + 1);
    }
    let Some(&(now, pools)) = sizes.get(&PRESENT_PPM).filter(|it| it.0 > 0.0) else {
        return Vec::new();
    };
    let known = sizes.into_iter().filter(|(_, size)| size.1 == pools);
    let row = |(ppm, (reads, _)): (u64, (f64, usize))| AdviceRow {
        size_factor: ppm as f64 / PRESENT_PPM as f64,
        reads_factor: reads / now,
    };
    known.map(row).collect()
}
