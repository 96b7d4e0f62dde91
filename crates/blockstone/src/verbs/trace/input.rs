//! Reads files, compressed or not, into a trace.

use std::io;
use std::path::PathBuf;

use anyhow::{Result, anyhow};
use blockstone_base::text::shown;
use blockstone_base::units::Bytes;
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

/// Reads the files as one trace.
pub fn read(paths: &[PathBuf], options: Options, bar: &mut Progress) -> Result<Input> {
    let mut reader = Reader::new(options);
    let all: u64 = paths.iter().filter_map(|path| Some(path.metadata().ok()?.len())).sum();
    let (mut bytes, mut before) = (0, 0);
    let mut warnings = Vec::new();
    for path in paths {
        let name = shown(path);
        let refused = |error| refused(&name, &error);
        let source = input::open(path).map_err(|error| unreadable(&name, &error))?;
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
    anyhow!(Failure::new(
        format!("read trace {name}: {error}"),
        "name a trace or a log, or `-` for standard input"
    ))
}
