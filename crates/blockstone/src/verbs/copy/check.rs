//! `copy --check`: whether files still match a manifest.

use std::io::BufReader;
use std::path::Path;
use std::sync::{Mutex, PoisonError};

use anyhow::{Context as _, Result, bail};
use blockstone_base::rows;
use blockstone_base::table::{Measure, Rows as _, Table, Value, bytes, happened, text, total};
use blockstone_base::text::{parent_dir, shown};
use blockstone_base::units::Bytes;
use blockstone_copy::CopyError;
use blockstone_copy::file::Watch as _;
use blockstone_copy::file::manifest::{self, Compared};
use blockstone_copy::tree::Steady;
use blockstone_record::manifest::End;
use blockstone_report::render::json::schema::Tables;
use blockstone_report::{Headline, Report, Section, Tone};
use blockstone_sys::held::HeldDir;
use blockstone_sys::{memory, path};
use serde_json::{Map, Value as Json};

use super::args::CopyArgs;
use super::options;
use crate::earlier::{null, null_nothing};
use crate::exit::Exit;
use crate::failure::Failure;
use crate::finish::finish;
use crate::input;
use crate::interrupt;
use crate::progress::Progress;
use crate::verb::Context;

const SCREEN_ROWS: usize = 20;
/// Bytes of a manifest that one chunk takes; compressed, its hash remains.
const CHUNK_BYTES: u64 = 60;
const PACKED_CHUNK_BYTES: u64 = 20;

rows! {
    /// Single figures of files that were compared with a manifest.
    pub(super) struct Summary {
        /// Files of the manifest that were looked at.
        files: u64 = total("files", Measure::Count),
        /// Files that are equal.
        equal_files: u64 = total("equal", Measure::Count),
        /// Bytes compared, in the files that are equal.
        read_bytes: u64 = total("read", Measure::Bytes),
        /// Charged by the kernel as read from storage for that; unknown if one of the files does
        /// not tell.
        medium_bytes: Option<u64> = total("from the medium", Measure::Bytes),
    }
}

rows! {
    /// Files that are not what the manifest says.
    pub(super) struct ChangedRow {
        /// Its name in the manifest.
        file: String = text("file").answer(),
        /// How it differs.
        what: String = text("what").answer(),
        /// Its size when it was copied.
        size_bytes: u64 = bytes("size then"),
        /// Where the first chunk begins that differs.
        offset_bytes: Value = bytes("from"),
    }
}

pub const TABLES: &[Tables] = &[&[("changed", ChangedRow::COLUMNS)]];

fn earlier(mut document: Map<String, Json>) -> Map<String, Json> {
    document.values_mut().for_each(null);
    null_nothing(&mut document);
    document.remove("verdicts");
    document
}

#[derive(Default)]
struct Sums {
    files: u64,
    equal_files: u64,
    read_bytes: u64,
    medium_bytes: Option<u64>,
}

pub fn run(args: &CopyArgs, list: &Path, context: &Context) -> Result<Exit> {
    memory::hold_to(Some(memory::READING));
    let [path] = &args.paths[..] else {
        bail!(Failure::new(
            format!("check {}: name one path, the target of the copy", list.display()),
            "blockstone copy --check MANIFEST TARGET"
        ));
    };
    // For a copy to one file, the manifest has only the name of that file.
    let is_dir = path::look(path).is_ok_and(|found| found.is_dir());
    let root = if is_dir { path } else { parent_dir(path) };
    let held = HeldDir::hold(root).map_err(|error| {
        let what = format!("check {}", shown(path));
        Failure::new(what, "name the target of the copy").because(error)
    })?;
    let from = input::open(list).map_err(|error| {
        let what = format!("read {}", list.display());
        Failure::new(what, "name a file that --manifest wrote").because(error)
    })?;
    let all_bytes = path::look(list).map_or(0, |found| found.len());
    let chunk_bytes = from.compression().map_or(CHUNK_BYTES, |_| PACKED_CHUNK_BYTES);
    let mut bar = Progress::start(context.printer)?;
    let mut changed = ChangedRow::table("changed", "Changed files", []).on_screen(SCREEN_ROWS);
    let mut sums = Sums { medium_bytes: Some(0), ..Sums::default() };
    let mut line_bytes = 0;
    // Progress and current file: signals are handled while a large file is read.
    let at = Mutex::new((0.0, String::new()));
    let watch = Steady::new(args.rate, |_| {
        let at = at.lock().unwrap_or_else(PoisonError::into_inner);
        bar.step(at.0, &at.1)
    });
    for entry in manifest::read(BufReader::new(from)) {
        // A signal ends the input, perhaps within a line.
        if interrupt::signal().is_some() {
            break;
        }
        let entry = entry.with_context(|| format!("read {}", list.display()))?;
        line_bytes += chunk_bytes * (entry.chunks.len() as u64 + 1);
        let done = line_bytes as f64 / all_bytes.max(line_bytes) as f64;
        *at.lock().unwrap_or_else(PoisonError::into_inner) = (done, shown(&entry.path));
        if watch.moved(0).is_break() {
            break;
        }
        match manifest::check(&entry, &held, &options(args), &watch) {
            Err(CopyError::Interrupted) => break,
            compared => add(&mut sums, &mut changed, &entry, &compared?),
        }
    }
    bar.finish();
    if sums.files == 0 && bar.signal().is_none() {
        bail!(Failure::new(
            format!("check {}: it lists no files", list.display()),
            "name a file that --manifest wrote"
        ));
    }
    finish(&report(&sums, changed, (list, root), bar.signal()), context)
}

fn add(sums: &mut Sums, changed: &mut Table, entry: &manifest::Entry, compared: &Compared) {
    sums.files += 1;
    let (what, offset) = match compared {
        Compared::Equal { read_bytes, medium_bytes } => {
            sums.equal_files += 1;
            sums.read_bytes += *read_bytes;
            sums.medium_bytes = sums.medium_bytes.zip(*medium_bytes).map(|(all, one)| all + one);
            return;
        }
        Compared::Differs { offset_bytes, .. } => ("other bytes".to_owned(), Some(*offset_bytes)),
        Compared::Size { found_bytes } => (format!("it has {} now", Bytes(*found_bytes)), None),
        Compared::Missing => ("it is not there".to_owned(), None),
        Compared::NoFile => ("it is not a file, or is reached by a link".to_owned(), None),
    };
    let (file, size_bytes) = (shown(&entry.path), entry.size_bytes);
    changed.push(ChangedRow { file, what, size_bytes, offset_bytes: happened(offset) });
}

fn report(
    sums: &Sums,
    changed: Table,
    (list, root): (&Path, &Path),
    signal: Option<&str>,
) -> Report {
    let end = End::by(signal);
    let differ = sums.files - sums.equal_files;
    let mut text = format!(
        "{} of {} files equal, {} read",
        sums.equal_files,
        sums.files,
        Bytes(sums.read_bytes)
    );
    if let Some(medium) = sums.medium_bytes {
        text = format!("{text}, {} from the medium", Bytes(medium));
    }
    let &Sums { files, equal_files, read_bytes, medium_bytes } = sums;
    let summary = Summary { files, equal_files, read_bytes, medium_bytes };
    Report {
        verb: "copy-check".into(),
        version: 2,
        headline: Headline {
            subject: format!("{} · {}", shown(root), shown(list)),
            text,
            tone: if differ > 0 { Tone::Bad } else { Tone::Plain },
            ..Headline::default()
        },
        sections: if differ > 0 { vec![Section::of("changed", changed)] } else { Vec::new() },
        scalars: Some(Summary::table("copy-check", "Comparison", [summary])),
        earlier: Some(earlier),
        end,
        is_refuted: differ > 0,
        ..Report::default()
    }
}
