//! Reads files, compressed or not, into a trace.

use std::io;
use std::path::{Path, PathBuf};

use anyhow::{Result, anyhow, bail};
use blockstone_base::text::shown;
use blockstone_base::units::Bytes;
use blockstone_input::{Source, Unpacked};
use blockstone_trace::{Options, Reader, Trace};

use super::ahead::Ahead;
use crate::failure::{Failure, with_hint_of};
use crate::input;
use crate::progress::Progress;

/// A trace, and the parts of it that could not be read.
pub struct Input {
    pub trace: Trace,
    pub bytes: u64,
    pub warnings: Vec<String>,
    pub signal: Option<&'static str>,
}

/// A file that is read: one that the user named, or one of an archive.
enum Named {
    Path(PathBuf),
    Member(Source),
}

impl Named {
    fn name(&self) -> String {
        match self {
            Self::Path(path) => shown(path),
            Self::Member(file) => shown(file.name()),
        }
    }

    fn open(&self) -> io::Result<Unpacked> {
        match self {
            Self::Path(path) => input::open(path),
            Self::Member(file) => input::open_source(file),
        }
    }
}

/// Returns the files; in place of an archive, the traces and logs in it. Names the others.
fn files(paths: &[PathBuf], warnings: &mut Vec<String>) -> Result<Vec<Named>> {
    let mut files = Vec::new();
    for path in paths {
        let mut choose = |head: &[u8]| match blockstone_trace::recognise(head) {
            Ok(_) => Ok(()),
            Err(error) => Err(error.to_string().trim_start_matches("read trace: ").to_owned()),
        };
        let members =
            if path == Path::new("-") { Ok(None) } else { input::members(path, &mut choose) };
        let Some(members) = members.map_err(|error| unreadable(&shown(path), &error))? else {
            files.push(Named::Path(path.clone()));
            continue;
        };
        if members.chosen.is_empty() {
            bail!(Failure::new(
                format!("read trace {}: no file in the archive is a trace or a log", shown(path)),
                "an Oracle SQL trace, a slow query log or a log of PostgreSQL is expected"
            ));
        }
        files.extend(members.chosen.into_iter().map(Named::Member));
        let left_out = members.left_out.iter();
        warnings.extend(left_out.map(|it| format!("{} is not read: {}", shown(&it.name), it.why)));
    }
    Ok(files)
}

/// Reads the files as one trace.
pub fn read(paths: &[PathBuf], options: Options, bar: &mut Progress) -> Result<Input> {
    let mut reader = Reader::new(options);
    let all: u64 = paths.iter().filter_map(|path| Some(path.metadata().ok()?.len())).sum();
    let (mut bytes, mut before) = (0, 0);
    let mut warnings = Vec::new();
    for file in files(paths, &mut warnings)? {
        let name = file.name();
        let refused = |error| refused(&name, &error);
        let source = file.open().map_err(|error| unreadable(&name, &error))?;
        let mut ahead = Ahead::of(source);
        let (mut has_any, mut packed) = (false, 0);
        loop {
            match ahead.next() {
                Ok(piece) => {
                    packed = piece.packed;
                    if piece.bytes().is_empty() {
                        break;
                    }
                    has_any = true;
                    bytes += piece.bytes().len() as u64;
                    reader.feed(piece.bytes()).map_err(refused)?;
                    ahead.done(piece);
                }
                Err(error) if !has_any => return Err(unreadable(&name, &error)),
                Err(error) => {
                    warnings.push(format!("{name}: only its beginning could be read: {error}"));
                    break;
                }
            }
            let done = before + packed;
            let text = format!("{} of {}  {name}", Bytes(done), Bytes(all));
            if !bar.step(done as f64 / all.max(1) as f64, &text) {
                break;
            }
        }
        before += packed;
        reader.end_of_file().map_err(refused)?;
        if bar.signal().is_some() {
            break;
        }
    }
    let name = paths.first().map(|path| shown(path)).unwrap_or_default();
    let trace = reader.finish().map_err(|error| refused(&name, &error))?;
    Ok(Input { trace, bytes, warnings, signal: bar.signal() })
}

fn refused(name: &str, error: &blockstone_trace::TraceError) -> anyhow::Error {
    let what = error.to_string().replacen("read trace", &format!("read trace {name}"), 1);
    with_hint_of(error, what)
}

fn unreadable(name: &str, error: &io::Error) -> anyhow::Error {
    let hint = "name a trace or a log, or `-` for standard input";
    anyhow!(input::failure(&format!("read trace {name}"), error, hint))
}
