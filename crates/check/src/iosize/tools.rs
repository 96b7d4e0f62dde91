//! Programs that everybody copies with, each on a scratch file: which sizes they ask for here.

use std::fs::{self, File};
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use blockstone_base::iosize::{IosizeFindings, Tool};
use blockstone_base::rng;
use blockstone_measure::{Observer, claim, scratch};
use blockstone_sys::bpf::iosize::OfSize;
use blockstone_sys::scratch::ScratchDir;
use blockstone_sys::survey;

use super::counter::Counter;
use super::{command, findings, flows};
use crate::CheckError;

/// Lines of the scratch file and bytes of each, which together are 4 MiB.
const LINES: u64 = 65_536;
const LINE: usize = 64;
/// Time that one of them may take.
const PATIENCE: Duration = Duration::from_secs(30);
const INPUT: &str = "in";
const OUTPUT: &str = "out";

/// The arguments of each; where the last is `>`, its output goes to the file.
const TOOLS: &[(&str, &[&str])] = &[
    ("cp", &["in", "out"]),
    ("cat", &["in", ">"]),
    ("dd", &["if=in", "of=out"]),
    ("tar", &["-cf", "out", "in"]),
    ("gzip", &["-1", "-c", "in", ">"]),
    ("md5sum", &["in"]),
    ("sha256sum", &["in"]),
    ("wc", &["in"]),
    ("sort", &["-o", "out", "in"]),
    ("uniq", &["in", "out"]),
    ("rsync", &["--whole-file", "in", "out"]),
    ("zstd", &["-q", "-1", "in", "-o", "out"]),
    ("xz", &["-0", "-c", "in", ">"]),
];

/// Runs those that are installed, one after the other, in a directory of their own in `dir`; `id`
/// names it. Fails when the directory cannot be used.
pub fn of_tools(
    dir: &Path,
    id: u64,
    observer: &mut dyn Observer,
) -> Result<IosizeFindings, CheckError> {
    let target = survey::target(Path::new("/"), dir)?;
    claim::directory(dir)?;
    let dir = Path::new(&target.path);
    scratch::remove_orphans(dir, &[]);
    let place = Scratch::create(&dir.join(scratch::name(id, "iosize")))?;
    let mut counter = Counter::start();
    let began = Instant::now();
    let mut tools = Vec::new();
    for (name, arguments) in TOOLS {
        if observer.interrupted().is_some() {
            break;
        }
        let Some(version) = version(name) else { continue };
        observer.phase(name);
        place.reset()?;
        let before = counter.sizes();
        let ran =
            command::run(place.command(name, arguments)?, &mut counter, Some(PATIENCE), observer);
        counter.write_back(observer);
        let after = counter.sizes();
        let names = counter.names(&after);
        let is_here = |size: &OfSize| {
            names.get(&size.place).is_some_and(|path| Path::new(path).starts_with(&place.path))
        };
        let sizes: Vec<OfSize> =
            flows::since(&after, &before).into_iter().filter(is_here).collect();
        tools.push(Tool {
            name: (*name).to_owned(),
            version,
            command: format!("{name} {}", arguments.join(" ").replace('>', "> out")),
            flows: flows::of_all(&sizes, name),
            exit: ran?.exit,
        });
    }
    let mut found = findings("tools".to_owned(), &mut counter, observer);
    found.subject = dir.display().to_string();
    found.total = Vec::new();
    found.flows = Vec::new();
    found.tools = tools;
    found.observed_s = began.elapsed().as_secs_f64();
    Ok(found)
}

/// What a program says of itself in its first line; none if it is not installed.
fn version(name: &str) -> Option<String> {
    let mut command = Command::new(name);
    command.arg("--version").env("LC_ALL", "C").stdin(Stdio::null()).stderr(Stdio::null());
    let output = command.output().ok()?;
    let text = String::from_utf8_lossy(&output.stdout);
    let line = text.lines().next().unwrap_or_default();
    let line: String = line.chars().filter(|char| !char.is_control()).take(80).collect();
    Some(line.split_whitespace().collect::<Vec<_>>().join(" "))
}

/// A directory that goes with this value, and is found by a later check if this one is killed.
struct Scratch {
    path: PathBuf,
    dir: ScratchDir,
}

impl Scratch {
    fn create(path: &Path) -> Result<Self, CheckError> {
        let failed = failed(path);
        let dir = ScratchDir::create(path, None).map_err(&failed)?;
        let made = Self { path: path.to_owned(), dir };
        made.fill().map_err(failed)?;
        Ok(made)
    }

    /// Lines of hexadecimal digits: text that is sorted, counted and compressed.
    fn fill(&self) -> std::io::Result<()> {
        let mut file = BufWriter::new(File::create_new(self.path.join(INPUT))?);
        let mut bytes = [0; LINE / 2];
        for line in 0..LINES {
            rng::fill(line, &mut bytes);
            let text = bytes.iter().fold(String::new(), |text, byte| format!("{text}{byte:02x}"));
            file.write_all(&text.as_bytes()[1..])?;
            file.write_all(b"\n")?;
        }
        file.into_inner()?.sync_all()
    }

    /// No output yet, and nothing of the input in the page cache.
    fn reset(&self) -> Result<(), CheckError> {
        let error = failed(&self.path);
        match fs::remove_file(self.path.join(OUTPUT)) {
            Err(source) if source.kind() != std::io::ErrorKind::NotFound => {
                return Err(error(source));
            }
            _ => {}
        }
        let file = File::open(self.path.join(INPUT)).map_err(error)?;
        // Where there is no cache to drop from, this fails, and that is no fault.
        let _ = rustix::fs::fadvise(&file, 0, None, rustix::fs::Advice::DontNeed);
        Ok(())
    }

    fn command(&self, name: &str, arguments: &[&str]) -> Result<Command, CheckError> {
        let mut command = Command::new(name);
        command.current_dir(&self.path).env("LC_ALL", "C");
        command.stdin(Stdio::null()).stderr(Stdio::null()).stdout(Stdio::null());
        let arguments = match arguments.split_last() {
            Some((&">", rest)) => {
                let output = File::create_new(self.path.join(OUTPUT));
                command.stdout(output.map_err(failed(&self.path))?);
                rest
            }
            _ => arguments,
        };
        command.args(arguments);
        Ok(command)
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        // The next check in the directory removes what cannot be removed now.
        let _ = self.dir.remove();
    }
}

fn failed(dir: &Path) -> impl Fn(std::io::Error) -> CheckError {
    let dir = dir.to_owned();
    let hint = "free some space, or choose another directory";
    move |source| CheckError::Scratch { dir: dir.clone(), source, hint }
}
