//! Every kind of file that the program reads, damaged: bytes flipped, cut, moved and exchanged,
//! lengths at their limits, and checksums recomputed where a format has one.

use std::fs;
use std::path::{Path, PathBuf};

use tempfile::TempDir;

use super::runner::{Ended, Fault, Start};
use super::{MEMORY_BYTES_MAX, Outcome, Wanted, copy, each};
use crate::mutate::Corpus;
use crate::targets::{flash, imports, instance, offload, recording, reduce, scans, seal, workload};

/// Name of the file or directory that a command reads.
const IT: &str = "it";
/// Name of a command's output, which is removed before the next command.
const OUT: &str = "out";

type Bytes = Vec<u8>;

/// A kind of file.
#[derive(Debug)]
pub struct Class {
    pub name: &'static str,
    from: Origin,
    seal: fn(&[u8]) -> Bytes,
    /// Commands that read it, in turn.
    commands: &'static [&'static [&'static str]],
}

/// Origin of valid files.
#[derive(Debug)]
enum Origin {
    /// This file of this recording.
    Recording(&'static str, &'static str),
    /// A grid of two recordings, and its plan.
    Grid,
    /// This file of a saved scan.
    Scan(&'static str),
    /// Made by a function.
    Seeds(fn() -> Vec<Bytes>),
}

const RECORDING: &[&[&str]] = &[
    &["report", IT],
    &["report", "--json", IT],
    &["report", "--verbose", "--html", OUT, IT],
    &["report", "--csv", IT],
    &["report", "--from", "1s", "--to", "3s", IT],
    &["compare", "other", IT],
    &["compare", "--json", IT, "other"],
    &["merge", "--partial", IT, "other"],
    &["watch", "--once", "--replay", IT],
    &["watch", "--once", "--json", "--replay", IT],
    &["runs", "--runs-dir", "."],
    &["runs", "--json", "--runs-dir", "."],
    &["flash", "sim", "--trace", IT, "--drive-fills", "0.1"],
    &["flash", "fit", IT],
];
const GRID: &[&[&str]] =
    &[&["report", IT], &["report", "--json", IT], &["report", "--html", OUT, IT]];
const SCAN: &[&[&str]] = &[
    &["reduce", "--merge", IT],
    &["reduce", "--merge", "--json", IT, "other"],
    &["reduce", "--resume", IT],
    &["reduce", "--resume", IT, "--save", OUT],
    &["reduce", "--merge", "--html", OUT, "other", IT],
];
const IMPORT: &[&[&str]] = &[
    &["watch", "--import", IT, "--record", OUT],
    &["watch", "--import", IT, "other", "--record", OUT],
];
/// On a small device: the tables of a large one take 1 GiB, whatever the trace.
const TRACE: &[&[&str]] = &[
    &["flash", "sim", "--raw", "2G", "--format-level", "44", "--trace", IT],
    &["flash", "sim", "--raw", "2G", "--format-level", "44", "--json", "--trace", IT],
    &[
        "flash",
        "sim",
        "--raw",
        "2G",
        "--format-level",
        "44",
        "--trace-format",
        "blkparse",
        "--trace",
        IT,
    ],
];
const FIT: &[&[&str]] = &[&["flash", "fit", IT], &["flash", "fit", "--json", IT]];
const MODEL: &[&[&str]] =
    &[&["reduce", "--model", "./it", "other"], &["reduce", "--model", "./it", "--json", "other"]];
const COUNTERS: &[&[&str]] = &[
    &["offload", "account", IT],
    &["offload", "account", "--json", "--link", "1GB", "other", IT],
    &["offload", "account", "--html", OUT, IT],
    &["offload", "model", "--fit", IT, "--cells", "2"],
    &["offload", "model", "--fit", IT, "--json"],
];
/// Nothing listens at that port, so a valid file gets no further.
const CONF: &[&[&str]] = &[
    &["run", "--conf", IT, "--target", "postgres://nobody@127.0.0.1:1/none"],
    &["run", "--conf", IT, "--target", "mysql://nobody@127.0.0.1:1"],
];
const DATA: &[&[&str]] = &[
    &["reduce", IT],
    &["reduce", "--json", "--offset", "0,1B,4K", IT, "other"],
    &["reduce", "--save", OUT, IT],
];

fn as_it_is(input: &[u8]) -> Bytes {
    input.to_vec()
}

const fn class(
    name: &'static str,
    from: Origin,
    commands: &'static [&'static [&'static str]],
) -> Class {
    Class { name, from, seal: as_it_is, commands }
}

/// Makes a class of files that end in a checksum.
const fn table(
    name: &'static str,
    from: Origin,
    commands: &'static [&'static [&'static str]],
) -> Class {
    Class { seal: seal::parquet, ..class(name, from, commands) }
}

use Origin::{Grid, Recording, Scan, Seeds};

const MANIFEST: &str = "manifest.json";

pub const CLASSES: &[Class] = &[
    class("manifest-calibrate", Recording("calibrate", MANIFEST), RECORDING),
    class("manifest-run", Recording("run", MANIFEST), RECORDING),
    class("manifest-scan", Recording("scan", MANIFEST), RECORDING),
    class("manifest-noise", Recording("noise", MANIFEST), RECORDING),
    class("manifest-sqlite", Recording("sqlite", MANIFEST), RECORDING),
    class("manifest-watch", Recording("watch", MANIFEST), RECORDING),
    class("grid", Grid, GRID),
    table("series-block", Recording("calibrate", "series/block.parquet"), RECORDING),
    table("series-host", Recording("watch", "series/host.parquet"), RECORDING),
    table("series-process", Recording("watch", "series/processes.parquet"), RECORDING),
    table("series-instance", Recording("run", "series/instance.parquet"), RECORDING),
    table("series-operation", Recording("run", "series/operation.parquet"), RECORDING),
    table("series-sql", Recording("sqlite", "series/sql.parquet"), RECORDING),
    table("histograms", Recording("calibrate", "histograms.parquet"), RECORDING),
    table("histograms-run", Recording("noise", "histograms.parquet"), RECORDING),
    table("events", Recording("run", "events.parquet"), RECORDING),
    Class { seal: seal::document, ..class("scan", Scan(scans::DOCUMENT), SCAN) },
    table("fingerprints", Scan(scans::FINGERPRINTS), SCAN),
    table("file-sets", Scan(scans::SETS), SCAN),
    class("collectl", Seeds(imports::collectl), IMPORT),
    class("sar", Seeds(imports::sar), IMPORT),
    class("iostat", Seeds(imports::iostat), IMPORT),
    class("iostat-json", Seeds(imports::iostat_json), IMPORT),
    class("load-report", Seeds(imports::loads), IMPORT),
    class("gzip", Seeds(imports::compressed), IMPORT),
    class("vmstat", Seeds(imports::vmstat), IMPORT),
    class("dool", Seeds(imports::dool), IMPORT),
    class("nmon", Seeds(imports::nmon), IMPORT),
    class("plot", Seeds(imports::plot), IMPORT),
    class("archive", Seeds(imports::archives), IMPORT),
    class("trace", Seeds(flash::traces), TRACE),
    class("fio-log", Seeds(flash::logs), FIT),
    class("model", Seeds(reduce::models), MODEL),
    class("offload-counters", Seeds(offload::tables), COUNTERS),
    class("conf", Seeds(workload::confs), CONF),
    class("pages", Seeds(reduce::pages), DATA),
    class("instance-blocks", Seeds(instance::blocks), DATA),
];

/// The directory in which the program is started, and the files in it.
struct WorkDir {
    dir: TempDir,
    /// The file that is damaged.
    file: PathBuf,
    seeds: Vec<Bytes>,
}

impl Class {
    fn place(&self) -> WorkDir {
        let dir = tempfile::tempdir().expect("temporary files can be made");
        let (it, other) = (dir.path().join(IT), dir.path().join("other"));
        let (file, seeds) = match self.from {
            Recording(name, file) => {
                copy(&fixture(name), &it);
                copy(&fixture(name), &other);
                (it.join(file), Vec::new())
            }
            Grid => {
                for name in ["0-1", "1-1"] {
                    copy(&fixture("run"), &it.join(name));
                }
                (it.join("grid.json"), recording::plans())
            }
            Scan(file) => {
                let saved = scans::build(dir.path());
                copy(&saved, &it);
                fs::rename(&saved, &other).expect("temporary files can be moved");
                (it.join(file), Vec::new())
            }
            Seeds(seeds) => {
                let seeds = seeds();
                fs::write(&other, &seeds[0]).expect("temporary files can be written");
                (it, seeds)
            }
        };
        let read = || vec![fs::read(&file).expect("the fixtures can be read")];
        let seeds = if seeds.is_empty() { read() } else { seeds };
        WorkDir { dir, file, seeds }
    }

    fn run(&self, wanted: &Wanted) -> Outcome {
        let place = self.place();
        let corpus = Corpus::new(place.seeds.clone());
        let beside = tempfile::tempdir().expect("temporary files can be made");
        let mut outcome = Outcome { class: self.name.to_owned(), ..Outcome::default() };
        for number in 0..wanted.inputs {
            let input = corpus.input(wanted.seed, number);
            // A seed stays as it was made: its checksum says which file of which size it is.
            let is_seed = number < place.seeds.len() as u64;
            let input = if is_seed { input } else { (self.seal)(&input) };
            let command = self.commands[number as usize % self.commands.len()];
            let ended = place.start(wanted, &input, command, beside.path());
            outcome.add(&ended);
            let is_large = ended.memory_is_its_own && ended.memory_peak_bytes > MEMORY_BYTES_MAX;
            let memory = is_large.then(|| Fault::Odd("takes more than 512 MiB".to_owned()));
            let Some(fault) = ended.fault().or(memory) else { continue };
            let how = format!("input {number}: blockstone {}", command.join(" "));
            if outcome.find(&fault, &how)
                && let Some(save) = &wanted.save
            {
                let kind: String = fault.to_string().replace(|c: char| !c.is_alphanumeric(), "-");
                let path = save.join(format!("{}-{number}-{kind}", self.name));
                fs::write(path, &input).expect("findings can be saved");
            }
        }
        outcome
    }
}

impl WorkDir {
    fn start(&self, wanted: &Wanted, input: &[u8], command: &[&str], beside: &Path) -> Ended {
        let out = self.dir.path().join(OUT);
        let _ = fs::remove_dir_all(&out);
        let _ = fs::remove_file(&out);
        fs::write(&self.file, input).expect("temporary files can be written");
        let dir = self.dir.path();
        let start = Start { binary: &wanted.binary, dir, beside, measures: false };
        start.run(command).expect("the program can be started")
    }
}

pub fn fixture(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../blockstone/tests/fixtures/recording-1")
        .join(name)
}

/// Tries the classes of these names, or all classes.
pub fn run(names: &[String], wanted: &Wanted) -> Vec<Outcome> {
    let chosen = |class: &&Class| names.is_empty() || names.iter().any(|name| name == class.name);
    let classes: Vec<&Class> = CLASSES.iter().filter(chosen).collect();
    each(&classes, wanted.jobs, |class| class.run(wanted))
}
