//! Directories of recordings: found by what a person would type (a directory, the beginning of a
//! name, `last`), or created.

use std::path::{Path, PathBuf};

use anyhow::{Result, anyhow, bail};
use blockstone_base::rng;
use blockstone_record::manifest::{End, MANIFEST, Manifest};
use blockstone_record::{GRID, RUNS, Recording, RunDir, RunEntry, RunState};
use blockstone_servers::without_password;

use crate::failure::Failure;
use crate::verb::Global;

/// Candidates that an error lists.
const LISTED: usize = 8;

pub fn open(name: &str, runs_dir: &Path) -> Result<Recording> {
    let dir = locate(name, runs_dir)?;
    if is_grid(&dir) {
        let parts = blockstone_record::list_grid(&dir)?;
        let hint = match parts.last() {
            Some(first) => format!("name one of its recordings, such as {}", first.path.display()),
            None => "it has no recordings".to_owned(),
        };
        bail!(Failure::new(
            format!("open {}: it is a grid of {} recordings", dir.display(), parts.len()),
            hint
        ));
    }
    Ok(Recording::open(&dir)?)
}

/// Whether this is the directory of a grid, which has its recordings in directories of their own.
pub fn is_grid(dir: &Path) -> bool {
    !dir.join(MANIFEST).exists() && dir.join(GRID).is_file()
}

/// Returns the directory of a recording or a grid: a path, or a name as [`find`] takes it. `GRID/X`
/// is the recording X of a grid.
pub fn locate(name: &str, runs_dir: &Path) -> Result<PathBuf> {
    let direct = Path::new(name);
    if direct.join(MANIFEST).is_file() {
        return Ok(direct.to_path_buf());
    }
    if let Some((grid, part)) = name.split_once('/') {
        ensure_no_file(direct)?;
        let found = || find(grid, runs_dir).ok().filter(|_| !part.is_empty() && !direct.exists());
        let part =
            found().map(|grid| grid.path.join(part)).filter(|it| it.join(MANIFEST).is_file());
        return Ok(part.unwrap_or_else(|| direct.to_path_buf()));
    }
    match find(name, runs_dir) {
        Ok(found) => Ok(found.path),
        // A recording of a grid has an id of its own.
        Err(error) => match part_of_grid(name, runs_dir) {
            Some(part) => Ok(part),
            None => Err(error),
        },
    }
}

/// Refuses a file: a person who has one from another program may try it where a recording is
/// expected.
fn ensure_no_file(path: &Path) -> Result<()> {
    if !path.is_file() {
        return Ok(());
    }
    let name = path.display();
    let hint = match path.parent().filter(|dir| dir.join(MANIFEST).is_file()) {
        Some(dir) if dir == Path::new("") => "name the directory: .".to_owned(),
        Some(dir) => format!("name the directory: {}", dir.display()),
        None => format!(
            "blockstone size {name} and blockstone trace {name} read files of other programs; \
             blockstone watch --import {name} --record DIR makes a recording of one"
        ),
    };
    let what = format!("open recording {name}: it is a file, and a recording is a directory");
    bail!(Failure::new(what, hint))
}

/// Returns the recording or grid in `runs_dir` that a name means: the beginning of its id or of the
/// name of its directory, if no other begins so; `last`, `last~2` for the second before it;
/// `calibrate:last` and `calibrate:last~2` among those that this verb made.
pub fn find(name: &str, runs_dir: &Path) -> Result<RunEntry> {
    let mut runs = blockstone_record::list_runs(runs_dir)?;
    let failed = |why: String| anyhow!(Failure::new(why, where_to_look(runs_dir)));
    if let Some((verb, before)) = from_last(name) {
        runs.retain(|run| verb.is_none_or(|verb| run.verb == verb));
        let (count, dir) = (runs.len(), runs_dir.display());
        let of_verb = verb.map_or(String::new(), |verb| format!(" of {verb}"));
        return runs.into_iter().nth(before).ok_or_else(|| {
            failed(format!("find recording `{name}`: there are {count}{of_verb} in {dir}"))
        });
    }
    if name.is_empty() {
        runs.clear();
    }
    let is_named = |run: &RunEntry| run.id == name || run.path.ends_with(name);
    if runs.iter().any(is_named) {
        runs.retain(is_named);
    } else {
        runs.retain(|run| run.id.starts_with(name) || run.name().starts_with(name));
    }
    match runs.as_slice() {
        [] => {
            ensure_no_file(Path::new(name))?;
            Err(failed(format!("find recording `{name}`: no such recording")))
        }
        [_] => Ok(runs.remove(0)),
        many => {
            let mut names: Vec<String> = many.iter().take(LISTED).map(RunEntry::name).collect();
            let more = many.len() - names.len();
            names.extend((more > 0).then(|| format!("and {more} more")));
            bail!(Failure::new(
                format!("find recording `{name}`: {} match: {}", many.len(), names.join(", ")),
                "type more of its name"
            ))
        }
    }
}

fn part_of_grid(name: &str, runs_dir: &Path) -> Option<PathBuf> {
    if name.is_empty() {
        return None;
    }
    let runs = blockstone_record::list_runs(runs_dir).ok()?;
    let grids = runs.iter().filter(|run| matches!(run.state, RunState::Grid { .. }));
    let parts = grids.filter_map(|grid| blockstone_record::list_grid(&grid.path).ok()).flatten();
    let mut found: Vec<RunEntry> = parts.filter(|part| part.id.starts_with(name)).collect();
    (found.len() == 1).then(|| found.remove(0).path)
}

/// Returns the verb, if one is named, and how many recordings before the last one are meant: 0 for
/// `last`, 2 for `run:last~2`.
fn from_last(name: &str) -> Option<(Option<&str>, usize)> {
    let (verb, name) = match name.split_once(':') {
        Some((verb, name)) => (Some(verb), name),
        None => (None, name),
    };
    let before = match name.strip_prefix("last")? {
        "" => 0,
        rest => rest.strip_prefix('~')?.parse().ok()?,
    };
    Some((verb, before))
}

/// Returns a hint on where recordings are: also in the working directory, where earlier versions
/// put them, if there are any.
fn where_to_look(runs_dir: &Path) -> String {
    let list = format!("blockstone runs lists the recordings in {}", runs_dir.display());
    match left_here(runs_dir) {
        Some(left) => format!("{list}; {left}"),
        None => list,
    }
}

/// Returns that there are recordings in the working directory, if that is not where they are looked
/// for.
pub fn left_here(runs_dir: &Path) -> Option<String> {
    let here = Path::new(RUNS);
    let is_other = here.canonicalize().ok()? != runs_dir.canonicalize().unwrap_or_default();
    let has_any = || blockstone_record::list_runs_in(here).is_ok_and(|runs| !runs.is_empty());
    (is_other && has_any()).then(|| format!("--runs-dir {RUNS} lists those in this directory"))
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
    elsewhere(out, runs_dir)
}

/// Returns `dir` for a new recording, and notes where it is, so that it is found by its id and as
/// `last`. Where that cannot be noted, it still is found by its path.
pub fn elsewhere(dir: &Path, runs_dir: &Path) -> Result<RunDir> {
    let run = blockstone_record::out_run_dir(dir)?;
    let _ = blockstone_record::note_elsewhere(runs_dir, dir);
    Ok(run)
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

#[cfg(test)]
mod tests {
    use blockstone_record::{Recorder, testing};

    use super::*;
    use crate::testing::told;

    /// Creates a recording named `name` that started `after_ms` milliseconds after noon.
    fn record(root: &Path, name: &str, verb: &str, after_ms: u64) {
        let manifest = Manifest {
            id: name.rsplit('-').next().unwrap_or_default().to_owned(),
            verb: verb.to_owned(),
            started_at: format!("2026-01-01T12:00:0{}.{:03}Z", after_ms / 1000, after_ms % 1000),
            ..testing::manifest()
        };
        Recorder::create(&root.join(name), manifest, &[]).unwrap().close(End::Complete).unwrap();
    }

    fn made() -> tempfile::TempDir {
        let root = tempfile::tempdir().unwrap();
        // Two of one second, the later one with the name that sorts first.
        record(root.path(), "20260101-120000-calibrate-zzz111", "calibrate", 100);
        record(root.path(), "20260101-120000-run-aaa222", "run", 200);
        record(root.path(), "20260101-120001-run-zzz333", "run", 1_000);
        let grid = root.path().join("20260101-120002-matrix-ggg444");
        record(&grid, "01-1-ppp555", "run", 2_000);
        std::fs::write(grid.join(GRID), "{}").unwrap();
        root
    }

    #[test]
    fn a_recording_is_named_by_any_beginning_that_only_it_has() {
        let root = made();
        let of = |name: &str| find(name, root.path()).map(|run| run.id);
        for (name, id) in [
            ("aaa", "aaa222"),
            ("aaa222", "aaa222"),
            ("20260101-120000-r", "aaa222"),
            ("20260101-120000-run-aaa222", "aaa222"),
            ("20260101-120001", "zzz333"),
            ("ggg", "ggg444"),
        ] {
            assert_eq!(of(name).unwrap(), id, "{name}");
        }
        let error = told(&of("20260101-120000").unwrap_err());
        let both = "2 match: 20260101-120000-run-aaa222, 20260101-120000-calibrate-zzz111\nhint: ";
        assert!(error.contains(both), "{error}");
        let file = root.path().join("iostat.txt");
        std::fs::write(&file, "Linux\n").unwrap();
        let error = told(&locate(file.to_str().unwrap(), root.path()).unwrap_err());
        assert!(error.contains("it is a file, and a recording is a directory\nhint:"), "{error}");
        let part = root.path().join("20260101-120000-run-aaa222/manifest.json");
        let error = told(&locate(part.to_str().unwrap(), root.path()).unwrap_err());
        assert!(error.ends_with("20260101-120000-run-aaa222"), "{error}");
        let error = told(&of("nope").unwrap_err());
        assert!(error.contains("no such recording\nhint: blockstone runs lists"), "{error}");
    }

    #[test]
    fn the_last_is_the_one_that_began_last() {
        let root = made();
        let of = |name: &str| find(name, root.path()).map(|run| run.id);
        for (name, id) in [
            ("last", "ggg444"),
            ("last~1", "zzz333"),
            ("last~2", "aaa222"),
            ("last~3", "zzz111"),
            ("calibrate:last", "zzz111"),
            ("run:last~1", "zzz333"),
            ("run:last~2", "aaa222"),
        ] {
            assert_eq!(of(name).unwrap(), id, "{name}");
        }
        let error = told(&of("calibrate:last~1").unwrap_err());
        assert!(error.contains("there are 1 of calibrate in "), "{error}");
        assert!(of("nonsense:last").is_err() && of("last~").is_err() && of("last~x").is_err());
    }

    #[test]
    fn a_recording_put_elsewhere_is_the_last_one_until_it_is_gone() {
        let (root, other) = (made(), tempfile::tempdir().unwrap());
        let dir = other.path().join("r1");
        assert_eq!(new_dir("run", Some(&dir), root.path(), &[]).unwrap().path, dir);
        let last = |name: &str| find(name, root.path()).map(|run| run.path);
        let before = root.path().join("20260101-120002-matrix-ggg444");
        assert_eq!(last("run:last").unwrap(), before, "not yet made");
        record(other.path(), "r1", "run", 9_000);
        for name in ["last", "run:last", "r1"] {
            assert_eq!(last(name).unwrap(), dir, "{name}");
        }
        assert_eq!(last("last~1").unwrap(), before);
        std::fs::rename(&dir, other.path().join("r2")).unwrap();
        assert_eq!(last("run:last").unwrap(), before);
    }

    #[test]
    fn recordings_of_a_grid_are_found_by_their_ids_and_below_its_name() {
        let root = made();
        let part = root.path().join("20260101-120002-matrix-ggg444/01-1-ppp555");
        for name in ["ppp555", "ppp", "ggg444/01-1-ppp555", "last/01-1-ppp555"] {
            assert_eq!(locate(name, root.path()).unwrap(), part, "{name}");
        }
        let error = told(&open("ggg444", root.path()).unwrap_err());
        assert!(error.contains("it is a grid of 1 recordings\nhint: name one of"), "{error}");
        assert!(error.ends_with(&part.display().to_string()), "{error}");
        assert_eq!(open("ppp", root.path()).unwrap().manifest.id, "ppp555");
        assert!(open("ggg444/02-1", root.path()).is_err());
    }
}
