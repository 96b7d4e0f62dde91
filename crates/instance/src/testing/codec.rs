//! A case as a text file. Each content is stored once, with runs of equal bytes counted; pages and
//! writes refer to contents by number.

use std::collections::{BTreeSet, HashMap};
use std::fmt::Write as _;
use std::sync::Arc;

use super::case::{Case, Cut, Hurt, HurtKind};
use super::history::{Event, History, Kept, Lost, Write};
use super::image::Image;
use super::oracle::{Expected, Promise};
use super::rows::{RowState, Step};
use super::setting::Setting;
use crate::block::COLUMNS;
use crate::spec::TornProtection;

const TITLE: &str = "blockstone-case 1";
const PAGE_BYTES: u64 = 4096;

/// Shorter runs are written out.
const RUN_MIN: usize = 4;

#[derive(Default)]
struct Contents {
    numbers: HashMap<Vec<u8>, usize>,
    text: String,
}

impl Contents {
    fn number(&mut self, bytes: &[u8]) -> usize {
        if let Some(number) = self.numbers.get(bytes) {
            return *number;
        }
        let number = self.numbers.len();
        self.numbers.insert(bytes.to_vec(), number);
        let _ = writeln!(self.text, "content {}", encode(bytes));
        number
    }
}

fn encode(bytes: &[u8]) -> String {
    let mut out = String::new();
    for run in bytes.chunk_by(|a, b| a == b) {
        if run.len() < RUN_MIN {
            for byte in run {
                let _ = write!(out, "{byte:02x}");
            }
        } else {
            let _ = write!(out, "{:02x}*{};", run[0], run.len());
        }
    }
    out
}

fn decode(text: &str) -> Option<Vec<u8>> {
    let mut bytes = Vec::new();
    let mut rest = text;
    while !rest.is_empty() {
        let byte = u8::from_str_radix(rest.get(..2)?, 16).ok()?;
        rest = &rest[2..];
        if let Some(counted) = rest.strip_prefix('*') {
            let (count, left) = counted.split_once(';')?;
            let count: usize = count.parse().ok().filter(|count| *count <= 1 << 21)?;
            bytes.extend(std::iter::repeat_n(byte, count));
            rest = left;
        } else {
            bytes.push(byte);
        }
    }
    Some(bytes)
}

impl Case {
    /// Returns the case as text: everything before its cut, and nothing after it.
    pub fn to_text(&self) -> String {
        let (mut contents, mut out) = (Contents::default(), String::new());
        let Setting { copies, protection } = self.setting;
        let _ = writeln!(out, "setting {copies} {}", protection.name());
        for (disk, image) in self.history.base.iter().enumerate() {
            let _ = writeln!(out, "disk {}", image.size_bytes());
            for (page, bytes) in image.pages() {
                let _ = writeln!(out, "page {disk} {page} {}", contents.number(bytes));
            }
            for sector in image.unreadable() {
                let _ = writeln!(out, "unreadable {disk} {sector}");
            }
        }
        for event in &self.history.events[..self.cut.cut] {
            write_event(event, &mut contents, &mut out);
        }
        write_expected(&self.at_cut(), &mut out);
        for row in &self.torn {
            let _ = writeln!(out, "torn {row}");
        }
        write_lost("lost", &self.cut.lost, &mut out);
        for Hurt { disk, sector, kind } in &self.hurt {
            let _ = match kind {
                HurtKind::Rot(bit) => writeln!(out, "rot {disk} {sector} {bit}"),
                HurtKind::Unreadable => writeln!(out, "eio {disk} {sector}"),
            };
        }
        for recovery in &self.recoveries {
            let _ = writeln!(out, "recovery {}", recovery.cut);
            write_lost("recovery-lost", &recovery.lost, &mut out);
        }
        format!("{TITLE}\n{}{out}", contents.text)
    }

    fn at_cut(&self) -> Expected {
        let mut expected = self.expected.clone();
        expected.follow(&self.history.events[..self.cut.cut]);
        expected
    }

    /// Parses a case from its text. The error is the first line that cannot be read.
    pub fn from_text(text: &str) -> Result<Self, String> {
        let mut lines = text.lines();
        if lines.next() != Some(TITLE) {
            return Err(format!("read case: the first line is not \"{TITLE}\""));
        }
        let mut reader = Reader::new();
        for (number, line) in (2..).zip(lines) {
            let done = reader.line(line);
            done.ok_or_else(|| format!("read case: line {number} is not understood"))?;
        }
        Ok(reader.finish())
    }
}

fn write_event(event: &Event, contents: &mut Contents, out: &mut String) {
    let _ = match event {
        Event::Write(write) => {
            let content = contents.number(&write.data);
            let Write { number, disk, offset, durable, by, .. } = &**write;
            let by = if by.is_empty() { "-" } else { by };
            writeln!(out, "write {number} {disk} {offset} {} {content} {by}", u8::from(*durable))
        }
        Event::Written { write, failed } => {
            writeln!(out, "written {write} {}", u8::from(*failed))
        }
        Event::SyncBegins { disk } => writeln!(out, "sync {disk}"),
        Event::Synced { disk, since, failed } => {
            writeln!(out, "synced {disk} {since} {}", u8::from(*failed))
        }
        // The state that marks describe at the cut is in the expectation.
        Event::Mark(_) => writeln!(out, "mark"),
    };
}

fn write_expected(expected: &Expected, out: &mut String) {
    for RowState { version, columns } in &expected.rows {
        let columns: Vec<String> = columns.iter().map(u64::to_string).collect();
        let _ = writeln!(out, "row {version} {}", columns.join(","));
    }
    if expected.closed {
        out.push_str("closed\n");
    }
    for Promise { steps, sure, last } in &expected.sessions {
        let (number, end) = last.unwrap_or((0, 0));
        let _ = write!(out, "session {sure} {number} {end}");
        for step in steps {
            let _ = match step {
                Step::Change { row, heavy: true } => write!(out, " h{row}"),
                Step::Change { row, heavy: false } => write!(out, " l{row}"),
                Step::Commit { number } => write!(out, " c{number}"),
            };
        }
        out.push('\n');
    }
}

fn write_lost(name: &str, lost: &[Lost], out: &mut String) {
    for Lost { disk, sector, kept } in lost {
        let _ = match kept {
            Kept::Durable => writeln!(out, "{name} {disk} {sector} durable"),
            Kept::Write(write) => writeln!(out, "{name} {disk} {sector} write {write}"),
            Kept::Garbage(seed) => writeln!(out, "{name} {disk} {sector} garbage {seed}"),
        };
    }
}

struct Reader {
    contents: Vec<Vec<u8>>,
    case: Case,
    events: Vec<Event>,
    base: Vec<Image>,
}

impl Reader {
    fn new() -> Self {
        let setting = Setting { copies: 1, protection: TornProtection::None };
        let case = Case {
            setting,
            history: Arc::default(),
            cut: Cut::default(),
            hurt: Vec::new(),
            recoveries: Vec::new(),
            expected: Expected { rows: Vec::new(), sessions: Vec::new(), closed: false },
            torn: BTreeSet::new(),
            atlas: setting.ground().atlas,
        };
        Self { contents: Vec::new(), case, events: Vec::new(), base: Vec::new() }
    }

    fn line(&mut self, line: &str) -> Option<()> {
        let (name, rest) = line.split_once(' ').unwrap_or((line, ""));
        let words: Vec<&str> = rest.split(' ').collect();
        let number = |at: usize| words.get(at)?.parse::<u64>().ok();
        let case = &mut self.case;
        match name {
            "content" => self.contents.push(decode(rest)?),
            "setting" => {
                let copies = number(0).filter(|copies| (1..=3).contains(copies))? as usize;
                let named = |p: &&TornProtection| p.name() == words[1];
                let protection = *TornProtection::ALL.iter().find(named)?;
                case.setting = Setting { copies, protection };
                case.atlas = case.setting.ground().atlas;
            }
            "disk" => self.base.push(Image::new(number(0)?)),
            "page" => {
                let (disk, page, content) = (number(0)?, number(1)?, number(2)?);
                let bytes = self.contents.get(content as usize)?;
                self.base.get_mut(disk as usize)?.write(page * PAGE_BYTES, bytes);
            }
            "unreadable" => {
                self.base.get_mut(number(0)? as usize)?.make_unreadable(number(1)? as u32);
            }
            "write" | "written" | "sync" | "synced" | "mark" => {
                let event = self.event(name, &words)?;
                self.events.push(event);
            }
            "row" => case.expected.rows.push(row(number(0)?, words.get(1)?)?),
            "closed" => case.expected.closed = true,
            "session" => case.expected.sessions.push(session(&words)?),
            "torn" => {
                case.torn.insert(number(0)? as u32);
            }
            "lost" => case.cut.lost.push(lost(&words)?),
            "rot" | "eio" => {
                let (disk, sector) = (number(0)? as u8, number(1)? as u32);
                let kind = match name {
                    "rot" => HurtKind::Rot(number(2)? as u32),
                    _ => HurtKind::Unreadable,
                };
                case.hurt.push(Hurt { disk, sector, kind });
            }
            "recovery" => {
                case.recoveries.push(Cut { cut: number(0)? as usize, lost: Vec::new() });
            }
            "recovery-lost" => case.recoveries.last_mut()?.lost.push(lost(&words)?),
            _ => return None,
        }
        Some(())
    }

    fn event(&self, name: &str, words: &[&str]) -> Option<Event> {
        let number = |at: usize| words.get(at)?.parse::<u64>().ok();
        Some(match name {
            "write" => Event::Write(Arc::new(Write {
                number: number(0)? as u32,
                disk: number(1)? as u8,
                offset: number(2)?,
                durable: number(3)? == 1,
                data: self.contents.get(number(4)? as usize)?.clone(),
                by: words.get(5..)?.join(" "),
            })),
            "written" => Event::Written { write: number(0)? as u32, failed: number(1)? == 1 },
            "sync" => Event::SyncBegins { disk: number(0)? as u8 },
            "synced" => Event::Synced {
                disk: number(0)? as u8,
                since: number(1)? as u32,
                failed: number(2)? == 1,
            },
            // Only its position counts.
            _ => Event::SyncBegins { disk: 0 },
        })
    }

    fn finish(mut self) -> Case {
        self.case.cut.cut = self.events.len();
        self.case.history = Arc::new(History { base: self.base, events: self.events });
        self.case
    }
}

fn row(version: u64, text: &str) -> Option<RowState> {
    let columns: Vec<u64> = text.split(',').map(|word| word.parse().ok()).collect::<Option<_>>()?;
    let columns: [u64; COLUMNS] = columns.try_into().ok()?;
    Some(RowState { version, columns })
}

fn session(words: &[&str]) -> Option<Promise> {
    let number = |at: usize| words.get(at)?.parse::<u64>().ok();
    let (commit, end) = (number(1)?, number(2)?);
    let step = |word: &&str| {
        let (kind, value) = word.split_at_checked(1)?;
        let value: u64 = value.parse().ok()?;
        Some(match kind {
            "h" | "l" => Step::Change { row: value as u32, heavy: kind == "h" },
            "c" => Step::Commit { number: value },
            _ => return None,
        })
    };
    let steps = words[3..].iter().map(step).collect::<Option<Vec<_>>>()?;
    let sure = number(0)? as usize;
    Some(Promise { steps, sure, last: (commit > 0).then_some((commit, end)) })
}

fn lost(words: &[&str]) -> Option<Lost> {
    let number = |at: usize| words.get(at)?.parse::<u64>().ok();
    let kept = match *words.get(2)? {
        "durable" => Kept::Durable,
        "write" => Kept::Write(number(3)? as u32),
        "garbage" => Kept::Garbage(number(3)?),
        _ => return None,
    };
    Some(Lost { disk: number(0)? as u8, sector: number(1)? as u32, kept })
}
