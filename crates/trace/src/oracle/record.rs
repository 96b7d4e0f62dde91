//! Parsers for one line → one record.

use super::bytes::{Ends, HIGHEST, Names, after, count, last, name, number, skipped, unsigned};
use super::events::{Events, Meaning};
use super::tally::Size;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CallKind {
    Parse,
    Execute,
    Fetch,
    Close,
    /// End of a cursor's sort or temporary segments.
    Unmap,
    Lob,
    Remote,
}

impl CallKind {
    pub const ALL: [(Self, &'static str); 7] = [
        (Self::Parse, "parse"),
        (Self::Execute, "execute"),
        (Self::Fetch, "fetch"),
        (Self::Close, "close"),
        (Self::Unmap, "unmap"),
        (Self::Lob, "lob"),
        (Self::Remote, "remote call"),
    ];
}

/// A database call; times in the unit of the trace.
#[derive(Clone, Copy, Debug, Default)]
pub struct Call {
    pub cpu: i64,
    pub elapsed: i64,
    pub physical_reads: i64,
    pub consistent_reads: i64,
    pub current_reads: i64,
    pub misses: i64,
    pub rows: i64,
    /// Absent if the line has none, as for LOBs.
    pub depth: Option<usize>,
    pub tim: Option<i64>,
}

/// Greater depths indicate damage.
const DEEPEST: i64 = 63;

/// Reads the number after `key`, with which the text begins.
#[inline]
fn field<'a>(text: &'a [u8], key: &[u8]) -> Option<(i64, &'a [u8])> {
    unsigned(text.strip_prefix(key)?)
}

impl Call {
    /// Reads `c=1,e=2,…`, which must be complete.
    #[inline]
    pub fn parse(fields: &[u8], tims: &mut Ends) -> Option<Self> {
        Self::usual(fields, tims).or_else(|| Self::any(fields))
    }

    /// Reads the fields in the order of most releases; `None` for another order.
    #[inline]
    fn usual(fields: &[u8], tims: &mut Ends) -> Option<Self> {
        let (cpu, rest) = field(fields, b"c=")?;
        let (elapsed, rest) = field(rest, b",e=")?;
        let (physical_reads, rest) = field(rest, b",p=")?;
        let (consistent_reads, rest) = field(rest, b",cr=")?;
        let (current_reads, rest) = field(rest, b",cu=")?;
        let (misses, rest) = field(rest, b",mis=")?;
        let (rows, rest) = field(rest, b",r=")?;
        let (depth, rest) = field(rest, b",dep=")?;
        let rest = skipped(rest.strip_prefix(b",og=")?)?;
        let rest = rest.strip_prefix(b",plh=").map_or(Some(rest), skipped)?;
        let (tim, rest) = tims.read(rest, b",tim=")?;
        let call = Self {
            cpu,
            elapsed,
            physical_reads,
            consistent_reads,
            current_reads,
            misses,
            rows,
            depth: Some(depth as usize),
            tim: Some(tim),
        };
        (rest.is_empty() && tim >= 0 && depth <= DEEPEST && call.is_sane()).then_some(call)
    }

    #[inline]
    fn is_sane(&self) -> bool {
        let sane = |value: i64| (0..=HIGHEST).contains(&value);
        sane(self.cpu)
            && sane(self.elapsed)
            && sane(self.physical_reads)
            && sane(self.consistent_reads)
            && sane(self.current_reads)
            && sane(self.misses)
            && sane(self.rows)
    }

    /// Reads the fields in any order.
    fn any(mut fields: &[u8]) -> Option<Self> {
        let mut call = Self { cpu: -1, elapsed: -1, ..Self::default() };
        let (mut depth, mut tim, mut ignored) = (-1, -1, 0);
        loop {
            let (field, rest) = match fields {
                [b'c', b'=', rest @ ..] => (&mut call.cpu, rest),
                [b'e', b'=', rest @ ..] => (&mut call.elapsed, rest),
                [b'p', b'=', rest @ ..] => (&mut call.physical_reads, rest),
                [b'c', b'r', b'=', rest @ ..] => (&mut call.consistent_reads, rest),
                [b'c', b'u', b'=', rest @ ..] => (&mut call.current_reads, rest),
                [b'm', b'i', b's', b'=', rest @ ..] => (&mut call.misses, rest),
                [b'r', b'=', rest @ ..] => (&mut call.rows, rest),
                [b'd', b'e', b'p', b'=', rest @ ..] => (&mut depth, rest),
                [b't', b'i', b'm', b'=', rest @ ..] => (&mut tim, rest),
                // For LOBs the type is a word.
                [b't', b'y', b'p', b'e', b'=', b'A'..=b'Z', ..] => {
                    fields = &fields[memchr::memchr(b',', fields)? + 1..];
                    continue;
                }
                _ => {
                    let equals = fields.iter().position(|&byte| byte == b'=')?;
                    (&mut ignored, &fields[equals + 1..])
                }
            };
            let (value, rest) = number(rest)?;
            *field = value;
            fields = match rest {
                [] => break,
                [b',', b' ', tail @ ..] | [b',', tail @ ..] => tail,
                _ => return None,
            };
        }
        let valid = call.is_sane() && depth <= DEEPEST;
        call.depth = usize::try_from(depth).ok();
        call.tim = (tim >= 0).then_some(tim);
        valid.then_some(call)
    }
}

#[derive(Clone, Copy, Debug)]
pub struct Wait<'a> {
    pub cursor: u64,
    pub event: u16,
    pub elapsed: i64,
    /// The three parameters and the object, not parsed yet.
    rest: &'a [u8],
    pub tim: Option<i64>,
}

/// Kept from line to line: most lines repeat parts of those before.
#[derive(Debug)]
pub struct Memory {
    pub events: Events,
    pub names: Names,
    pub tims: Ends,
}

impl<'a> Wait<'a> {
    /// Parses the rest of a line after `WAIT #`.
    #[inline]
    pub fn parse(line: &'a [u8], memory: &mut Memory) -> Option<Self> {
        let (cursor, rest) = memory.names.read(line)?;
        let (event, rest) = memory.events.read(rest.strip_prefix(b": nam='")?)?;
        let (elapsed, rest) = count(rest)?;
        let (tim, rest) = match memory.tims.read(rest, b" tim=") {
            Some((tim, rest)) => (Some(tim), rest),
            None => (None, rest),
        };
        Some(Self { cursor, event, elapsed, rest, tim })
    }

    /// Returns the data that it moved.
    #[inline]
    pub fn moved(&self, meaning: Meaning) -> Moved {
        /// A single request of a database is never larger.
        const MOST_BLOCKS: u64 = 1 << 20;
        const MOST_BYTES: u64 = 1 << 32;
        if matches!(meaning, Meaning::Nothing | Meaning::Client) {
            return Moved::default();
        }
        let (values, object) = self.values();
        let Some([first, second, third]) = values else { return Moved::default() };
        let blocks = |blocks| Size { bytes: 0, blocks };
        let (size, file) = match meaning {
            Meaning::File if third <= MOST_BLOCKS => (blocks(third), Some(first)),
            Meaning::Blocks if second <= MOST_BLOCKS => (blocks(second), None),
            Meaning::Bytes if third <= MOST_BYTES => (Size { bytes: third, blocks: 0 }, None),
            _ => return Moved::default(),
        };
        Moved { size, file, object }
    }

    /// Returns the three parameters, and the object.
    #[inline]
    fn values(&self) -> (Option<[u64; 3]>, Option<i64>) {
        let (object, parameters) = match last(self.rest, b" obj#=") {
            Some((object, rest)) => (Some(object), rest),
            None => (None, self.rest),
        };
        (of_file(parameters).or_else(|| values(parameters)), object)
    }
}

/// Data that a wait moved, its file and its object.
#[derive(Clone, Copy, Debug, Default)]
pub struct Moved {
    pub size: Size,
    pub file: Option<u64>,
    pub object: Option<i64>,
}

/// Parses the parameters with the names that 10g and later use for reads of files.
#[inline]
fn of_file(parameters: &[u8]) -> Option<[u64; 3]> {
    let (file, rest) = field(parameters, b" file#=")?;
    let (block, rest) = field(rest, b" block#=")?;
    let (blocks, _) = field(rest, b" blocks=")?;
    Some([file as u64, block as u64, blocks as u64])
}

/// Parses `file#=1 block#=7725 blocks=1`, whatever the names are.
fn values(mut parameters: &[u8]) -> Option<[u64; 3]> {
    let mut values = [0; 3];
    for value in &mut values {
        let equals = memchr::memchr(b'=', parameters)?;
        let (number, rest) = number(&parameters[equals + 1..])?;
        *value = u64::try_from(number).ok()?;
        parameters = rest;
    }
    Some(values)
}

/// `PARSING IN CURSOR` or `PARSE ERROR`: the text of a statement follows.
#[derive(Clone, Copy, Debug)]
pub struct Header {
    pub cursor: u64,
    pub text_bytes: usize,
    pub depth: Option<usize>,
    pub sql_id: Option<[u8; 13]>,
}

impl Header {
    /// Parses the rest of a line after `#`.
    pub fn parse(line: &[u8]) -> Option<Self> {
        let (cursor, rest) = name(line)?;
        let rest = rest.strip_prefix(b" len=").or_else(|| rest.strip_prefix(b":len="))?;
        let (text_bytes, rest) = number(rest)?;
        let depth = match rest.strip_prefix(b" dep=") {
            Some(rest) => number(rest).map(|(depth, _)| depth),
            None => after(rest, b" dep="),
        };
        let id = rest.strip_suffix(b"'").and_then(|rest| rest.split_last_chunk::<13>());
        let id = id.filter(|(before, id)| {
            before.ends_with(b"sqlid='") && id.iter().all(u8::is_ascii_alphanumeric)
        });
        Some(Self {
            cursor,
            text_bytes: usize::try_from(text_bytes).ok()?,
            depth: depth.filter(|it| (0..=DEEPEST).contains(it)).map(|depth| depth as usize),
            sql_id: id.map(|(_, id)| *id),
        })
    }
}

/// One line of a plan.
#[derive(Clone, Debug, PartialEq)]
pub struct Stat {
    pub cursor: u64,
    pub id: u32,
    pub parent: u32,
    pub object: u64,
    pub operation: Vec<u8>,
    pub rows: u64,
    pub consistent_reads: Option<u64>,
    pub physical_reads: Option<u64>,
    pub time: Option<u64>,
}

/// Bytes kept of an operation's name.
const LONGEST_OPERATION: usize = 200;

impl Stat {
    /// Parses the rest of a line after `STAT #`.
    pub fn parse(line: &[u8]) -> Option<Self> {
        let (cursor, mut rest) = name(line)?;
        let (mut id, mut parent, mut rows, mut object) = (None, None, None, 0);
        let operation = loop {
            rest = rest.strip_prefix(b" ")?;
            if let Some(operation) = rest.strip_prefix(b"op='") {
                break operation.strip_suffix(b"'")?;
            }
            let equals = rest.iter().position(|&byte| byte == b'=')?;
            let (value, tail) = number(&rest[equals + 1..])?;
            match &rest[..equals] {
                b"id" => id = Some(u32::try_from(value).ok()?),
                b"pid" => parent = Some(u32::try_from(value).ok()?),
                b"cnt" => rows = Some(u64::try_from(value).ok()?),
                b"obj" => object = u64::try_from(value).unwrap_or(0),
                _ => {}
            }
            rest = tail;
        };
        let (operation, figures) = operation.split_at(figures(operation));
        let operation = operation.trim_ascii();
        let mut stat = Self {
            cursor,
            id: id?,
            parent: parent?,
            object,
            operation: operation[..operation.len().min(LONGEST_OPERATION)].to_vec(),
            rows: rows?,
            consistent_reads: None,
            physical_reads: None,
            time: None,
        };
        for word in figures.split(|&byte| byte == b' ' || byte == b'(') {
            let (field, value) = match word {
                [b'c', b'r', b'=', value @ ..] => (&mut stat.consistent_reads, value),
                [b'p', b'r', b'=', value @ ..] => (&mut stat.physical_reads, value),
                [b't', b'i', b'm', b'e', b'=', value @ ..] => (&mut stat.time, value),
                _ => continue,
            };
            *field = number(value).and_then(|(value, _)| u64::try_from(value).ok());
        }
        Some(stat)
    }
}

/// Position where `(cr=…` starts, after which `(object id …)` may follow.
fn figures(operation: &[u8]) -> usize {
    let mut end = operation.len();
    while let Some(at) = memchr::memrchr(b'(', &operation[..end]) {
        if operation[at..].starts_with(b"(cr=") {
            return at;
        }
        end = at;
    }
    operation.len()
}
