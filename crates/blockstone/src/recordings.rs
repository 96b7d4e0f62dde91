//! Directories of recordings: found by what a person would type (a directory, an id, `last`), or
//! created.

use std::path::{Path, PathBuf};

use anyhow::{Result, bail};
use blockstone_base::rng;
use blockstone_record::manifest::{End, Manifest};
use blockstone_record::{Recording, RunDir, RunState};
use blockstone_servers::without_password;

use crate::failure::Failure;
use crate::verb::Global;

pub fn open(name: &str, runs_dir: &Path) -> Result<Recording> {
    let dir = locate(name, runs_dir)?;
    Ok(Recording::open(&dir)?)
}

pub fn locate(name: &str, runs_dir: &Path) -> Result<PathBuf> {
    let direct = Path::new(name);
    if direct.join("manifest.json").is_file() || name.contains('/') {
        return Ok(direct.to_path_buf());
    }
    let list = || format!("blockstone runs lists the recordings in {}", runs_dir.display());
    let mut runs = blockstone_record::list_runs(runs_dir)?;
    if let Some(before) = before_last(name) {
        return match runs.get(before) {
            Some(run) => Ok(run.path.clone()),
            None => bail!(Failure::new(
                format!("find recording `{name}`: there are {}", runs.len()),
                list()
            )),
        };
    }
    runs.retain(|run| run.id.starts_with(name) || run.path.ends_with(name));
    match runs.as_slice() {
        [] => bail!(Failure::new(format!("find recording `{name}`: no such recording"), list())),
        [run] => Ok(run.path.clone()),
        many => bail!(Failure::new(
            format!("find recording `{name}`: {} recordings match", many.len()),
            list()
        )),
    }
}

/// Returns how many recordings before the last one are meant: 0 for `last`, 2 for `last~2`.
fn before_last(name: &str) -> Option<usize> {
    match name.strip_prefix("last")? {
        "" => Some(0),
        rest => rest.strip_prefix('~')?.parse().ok(),
    }
}

/// Returns the address of a database to watch. A run in progress is given by the name of its
/// recording, which is replaced by its directory.
pub fn database(database: &str, global: &Global) -> Result<String> {
    let Some(run) = database.strip_prefix("run:") else { return Ok(database.to_owned()) };
    Ok(format!("run:{}", locate(run, &global.runs_dir)?.display()))
}

/// Returns the directory for the recording of a measurement of `subjects`: a new one among the
/// runs, or the one named with `--record`.
pub fn new_dir(
    verb: &str,
    out: Option<&Path>,
    runs_dir: &Path,
    subjects: &[&Path],
) -> Result<RunDir> {
    let Some(out) = out else {
        return Ok(blockstone_record::new_run_dir(runs_dir, verb, &jiff::Zoned::now())?);
    };
    let real = |path: &Path| path.canonicalize().ok();
    if real(out).is_some() && subjects.iter().any(|subject| real(subject) == real(out)) {
        bail!(Failure::new(
            format!("write the recording to {}: that is the directory under test", out.display()),
            "name another with --record"
        ));
    }
    Ok(blockstone_record::out_run_dir(out)?)
}

/// Returns the arguments of this program, without passwords.
pub fn command_line() -> Vec<String> {
    std::env::args_os().map(|argument| without_password(&argument.to_string_lossy())).collect()
}

/// Draws a seed for a run that was not given one.
pub fn draw_seed() -> u64 {
    rng::mix(jiff::Timestamp::now().as_nanosecond() as u64 ^ u64::from(std::process::id()))
}

/// Returns the manifest of the last complete calibration of the same path on the same machine that
/// began before this run. A calibration that cannot be read is ignored, because a run does not need
/// one.
pub fn calibration_before(run: &Manifest, runs_dir: &Path) -> Option<Manifest> {
    let started: jiff::Timestamp = run.started_at.parse().ok()?;
    let mut runs = blockstone_record::list_runs(runs_dir).ok()?;
    runs.retain(|entry| {
        entry.verb == "calibrate"
            && entry.target_path.as_deref() == Some(run.target.path.as_str())
            && entry.state == RunState::Ended(End::Complete)
            && entry.started_at.is_some_and(|at| at <= started)
    });
    let last = runs.into_iter().max_by_key(|entry| entry.started_at)?;
    let manifest = Recording::open(&last.path).ok()?.manifest;
    (manifest.host.hostname == run.host.hostname).then_some(manifest)
}
