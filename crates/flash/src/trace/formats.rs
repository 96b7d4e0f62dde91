//! Parsers for one line at a time.

use super::{Format, Recorded};
use crate::workload::Action;

type Line = Result<Option<Recorded>, String>;

const SECTOR: u64 = 512;

pub struct Reader {
    format: Format,
    fio: Fio,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Fio {
    /// The first line has not been read yet.
    Unknown,
    /// Without timestamps; `wait` lines give the time, in µs.
    Version2 { waited_us: u64 },
    /// Each line starts with the microseconds since the beginning.
    Version3,
}

impl Reader {
    pub fn new(format: Format) -> Self {
        Self { format, fio: Fio::Unknown }
    }

    /// Returns a request, `None` if the line holds none, or why it is invalid.
    pub fn line(&mut self, line: &str) -> Line {
        match self.format {
            _ if line.trim().is_empty() => Ok(None),
            Format::Msr => msr(line),
            Format::Blkparse => blkparse(line),
            Format::Disksim => disksim(line),
            Format::Fio => self.fio(line),
        }
    }

    fn fio(&mut self, line: &str) -> Line {
        let fields: Vec<&str> = line.split_whitespace().collect();
        if self.fio == Fio::Unknown {
            self.fio = match fields.as_slice() {
                ["fio", "version", "2", "iolog"] => Fio::Version2 { waited_us: 0 },
                ["fio", "version", "3", "iolog"] => Fio::Version3,
                _ => return Err("the first line is not `fio version 2 iolog` or 3".to_owned()),
            };
            return Ok(None);
        }
        let (t_ns, rest) = match (self.fio, fields.as_slice()) {
            (Fio::Version3, [us, rest @ ..]) => (number(us, "time")?.saturating_mul(1000), rest),
            (Fio::Version2 { waited_us }, rest) => (waited_us.saturating_mul(1000), rest),
            (Fio::Version3 | Fio::Unknown, _) => return Err("a line without fields".to_owned()),
        };
        let (action, offset, len) = match rest {
            [_, "add" | "open" | "close" | "sync" | "datasync" | "sync_file_range", ..] => {
                return Ok(None);
            }
            [_, "wait", offset, _] => {
                let us = number(offset, "wait")?;
                if let Fio::Version2 { waited_us } = &mut self.fio {
                    *waited_us = waited_us.saturating_add(us);
                }
                return Ok(None);
            }
            [_, "read", offset, len] => (Action::Read, offset, len),
            [_, "write", offset, len] => (Action::Write, offset, len),
            [_, "trim", offset, len] => (Action::Trim, offset, len),
            _ => return Err("no action with offset and length".to_owned()),
        };
        let (offset_bytes, len_bytes) = (number(offset, "offset")?, number(len, "length")?);
        Ok(Some(Recorded { t_ns, action, offset_bytes, len_bytes }))
    }
}

/// Parses a number of sectors and converts it to bytes.
fn sectors(text: &str, what: &str) -> Result<u64, String> {
    Ok(number(text, what)?.saturating_mul(SECTOR))
}

fn msr(line: &str) -> Line {
    /// A Windows file time after 1980, in 100 ns since 1601; smaller values are in another unit.
    const LEAST: u64 = 119_600_064_000_000_000;
    let line = line.trim();
    // A header line is not an error.
    if line.starts_with("Timestamp") {
        return Ok(None);
    }
    let fields: Vec<&str> = line.split(',').collect();
    let [time, _, _, kind, offset, size, _] = fields.as_slice() else {
        return Err(format!("{} fields instead of 7", fields.len()));
    };
    let time: u64 = time.parse().map_err(|_| format!("timestamp `{time}` is not a number"))?;
    if time < LEAST {
        return Err(format!("timestamp {time} is not a Windows file time in units of 100 ns"));
    }
    let action = match kind.to_ascii_lowercase().as_str() {
        "read" => Action::Read,
        "write" => Action::Write,
        _ => return Err(format!("type `{kind}` is neither Read nor Write")),
    };
    let (offset_bytes, len_bytes) = (number(offset, "offset")?, number(size, "size")?);
    let t_ns = (time - LEAST).saturating_mul(100);
    Ok(Some(Recorded { t_ns, action, offset_bytes, len_bytes }))
}

fn blkparse(line: &str) -> Line {
    let fields: Vec<&str> = line.split_whitespace().collect();
    // Skips messages and the summary at the end.
    let device = fields.first().and_then(|device| device.split_once(','));
    if !device.is_some_and(|(a, b)| a.parse::<u32>().is_ok() && b.parse::<u32>().is_ok()) {
        return Ok(None);
    }
    let [_, _, _, time, _, event, flags, rest @ ..] = fields.as_slice() else {
        return Err("an event with too few fields".to_owned());
    };
    let t_ns = seconds_ns(time)?;
    if *event != "D" {
        return Ok(None);
    }
    let action = match flags {
        _ if flags.contains('D') => Action::Trim,
        _ if flags.contains('W') => Action::Write,
        _ if flags.contains('R') => Action::Read,
        _ => return Ok(None),
    };
    let [sector, "+", count, ..] = rest else {
        // A flush has no address.
        return if flags.contains('F') { Ok(None) } else { Err("no sector + count".to_owned()) };
    };
    let (offset_bytes, len_bytes) = (sectors(sector, "sector")?, sectors(count, "count")?);
    Ok(Some(Recorded { t_ns, action, offset_bytes, len_bytes }))
}

fn disksim(line: &str) -> Line {
    let fields: Vec<&str> = line.split_whitespace().collect();
    let [ms, _, block, count, flags] = fields.as_slice() else {
        return Err(format!("{} fields instead of 5", fields.len()));
    };
    let ms: f64 = ms.parse().map_err(|_| format!("time `{ms}` is not a number"))?;
    if !(0.0..1e13).contains(&ms) {
        return Err(format!("time {ms} ms is invalid"));
    }
    // The lowest bit marks a read.
    let flags = number(flags, "flags")?;
    let action = if flags & 1 == 1 { Action::Read } else { Action::Write };
    let (offset_bytes, len_bytes) = (sectors(block, "block")?, sectors(count, "block count")?);
    Ok(Some(Recorded { t_ns: (ms * 1e6).round() as u64, action, offset_bytes, len_bytes }))
}

fn number(text: &str, what: &str) -> Result<u64, String> {
    text.parse().map_err(|_| format!("{what} `{text}` is not a whole number"))
}

/// Parses seconds with up to nine decimals, without going through floating point.
fn seconds_ns(text: &str) -> Result<u64, String> {
    let fail = || format!("time `{text}` is not a number of seconds");
    let (whole, part) = text.split_once('.').unwrap_or((text, "0"));
    let whole: u64 = whole.parse().map_err(|_| fail())?;
    if part.is_empty() || part.len() > 9 || !part.bytes().all(|byte| byte.is_ascii_digit()) {
        return Err(fail());
    }
    let part: u64 = format!("{part:0<9}").parse().map_err(|_| fail())?;
    whole.checked_mul(1_000_000_000).and_then(|ns| ns.checked_add(part)).ok_or_else(fail)
}
