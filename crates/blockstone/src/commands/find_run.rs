//! Finding a recording by what a person would type: a directory, an id, or `last`.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use blockstone_record::Recording;

/// Opens the recording that `name` means.
pub fn open(name: &str, runs_dir: &Path) -> Result<Recording> {
    let dir = locate(name, runs_dir)?;
    Ok(Recording::open(&dir)?)
}

/// The directory of the recording that `name` means.
pub fn locate(name: &str, runs_dir: &Path) -> Result<PathBuf> {
    let direct = Path::new(name);
    if direct.join("manifest.json").is_file() || name.contains('/') {
        return Ok(direct.to_path_buf());
    }
    let list = || format!("hint: blockstone runs lists the recordings in {}", runs_dir.display());
    let mut runs = blockstone_record::list_runs(runs_dir).with_context(list)?;
    if name != "last" {
        runs.retain(|run| run.id.starts_with(name) || run.path.ends_with(name));
    }
    match runs.as_slice() {
        [] => bail!("find recording `{name}`: there is none\n{}", list()),
        [run, ..] if name == "last" => Ok(run.path.clone()),
        [run] => Ok(run.path.clone()),
        many => bail!("find recording `{name}`: {} recordings match\n{}", many.len(), list()),
    }
}
