//! Names of wait events → small numbers, and the meaning of their parameters.

use std::collections::HashMap;

/// Bytes kept of an event's name.
const LONGEST_NAME: usize = 100;
const CACHED: usize = 64;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Meaning {
    Nothing,
    /// The client's time between calls.
    Client,
    /// Parameters: file, block, number of blocks.
    File,
    /// The second parameter is the number of blocks.
    Blocks,
    /// The third parameter is a number of bytes.
    Bytes,
}

#[derive(Debug)]
struct Event {
    name: Vec<u8>,
    meaning: Meaning,
    /// The name as a line has it; empty if the name is cut.
    text: Vec<u8>,
    /// The event that followed it last.
    next: u16,
}

/// Text between the name of an event and its time.
const ELAPSED: &[u8] = b"' ela=";

#[derive(Debug)]
pub struct Events {
    list: Vec<Event>,
    ids: HashMap<Vec<u8>, u16>,
    /// Indexed by length and a few bytes of the name.
    cache: [u16; CACHED],
    limit: usize,
    latest: u16,
}

/// Id for names beyond the bound.
const OTHER: u16 = 0;

impl Events {
    pub fn new(limit: usize) -> Self {
        let name = b"(other events)".to_vec();
        let other = Event { name, meaning: Meaning::Nothing, text: Vec::new(), next: OTHER };
        let limit = limit.min(usize::from(u16::MAX));
        Self {
            list: vec![other],
            ids: HashMap::new(),
            cache: [OTHER; CACHED],
            limit,
            latest: OTHER,
        }
    }

    /// Reads the name of an event; returns its id and what follows `ela=`. Events often follow each
    /// other in the same order.
    #[inline]
    pub fn read<'a>(&mut self, line: &'a [u8]) -> Option<(u16, &'a [u8])> {
        let next = self.list[usize::from(self.latest)].next;
        let text = self.list[usize::from(next)].text.as_slice();
        if !text.is_empty() && line.starts_with(text) {
            self.latest = next;
            return Some((next, &line[text.len()..]));
        }
        let mut end = 0;
        let rest = loop {
            end += memchr::memchr(b'\'', &line[end..])?;
            if let Some(rest) = line[end..].strip_prefix(ELAPSED) {
                break rest;
            }
            end += 1;
        };
        let id = self.id(&line[..end]);
        self.list[usize::from(self.latest)].next = id;
        self.latest = id;
        Some((id, rest))
    }

    fn id(&mut self, name: &[u8]) -> u16 {
        let is_cut = name.len() > LONGEST_NAME;
        let name = &name[..name.len().min(LONGEST_NAME)];
        let middle = name.get(name.len() / 2).copied().unwrap_or(0);
        let end = name.last().copied().unwrap_or(0);
        let slot = name.len() ^ usize::from(middle) << 1 ^ usize::from(end) << 3;
        let slot = (slot ^ slot >> 6) % CACHED;
        let cached = self.cache[slot];
        if self.list[usize::from(cached)].name == name {
            return cached;
        }
        let id = match self.ids.get(name) {
            Some(&id) => id,
            None if self.list.len() >= self.limit => return OTHER,
            None => {
                let id = self.list.len() as u16;
                let text = if is_cut { Vec::new() } else { [name, ELAPSED].concat() };
                let meaning = meaning(name);
                self.list.push(Event { name: name.to_vec(), meaning, text, next: OTHER });
                self.ids.insert(name.to_vec(), id);
                id
            }
        };
        self.cache[slot] = id;
        id
    }

    #[inline]
    pub fn meaning(&self, id: u16) -> Meaning {
        self.list[usize::from(id)].meaning
    }

    pub fn name(&self, id: u16) -> String {
        String::from_utf8_lossy(&self.list[usize::from(id)].name).into_owned()
    }
}

fn meaning(name: &[u8]) -> Meaning {
    match name {
        b"SQL*Net message from client"
        | b"virtual circuit wait"
        | b"virtual circuit next request" => Meaning::Client,
        b"db file sequential read"
        | b"db file scattered read"
        | b"db file single write"
        | b"control file sequential read" => Meaning::File,
        b"db file parallel read" => Meaning::Blocks,
        _ if name.starts_with(b"direct path read") || name.starts_with(b"direct path write") => {
            Meaning::File
        }
        _ if name.starts_with(b"cell single block physical read")
            || name.starts_with(b"cell multiblock physical read") =>
        {
            Meaning::Bytes
        }
        _ => Meaning::Nothing,
    }
}
