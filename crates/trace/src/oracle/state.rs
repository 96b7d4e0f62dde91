//! State of the reader, changed by records and by the lines between them.

use std::collections::HashMap;

use memchr::memmem;

use crate::format::Limits;
use crate::normal::{self, Dialect};

use super::bytes::{self, Ends, Names};
use super::counts::{Counts, Ticks};
use super::events::{Events, Meaning};
use super::plans::{LONGEST_PLAN, Plans};
use super::record::{Call, CallKind, Header, Memory, Moved, Stat, Wait};
use super::session::{Cursor, Session, Trip};
use super::statements::{Key, OTHERS, Statements};
use super::tally::Keyed;

/// Maximum number of open cursors of all sessions.
const MOST_CURSORS: usize = 128 << 10;

pub struct State {
    pub limits: Limits,
    pub product: String,
    pub instance: String,
    pub release: u32,
    /// Microseconds per unit of time.
    pub unit: i64,
    pub sessions: Vec<Session>,
    pub session_ids: HashMap<Vec<u8>, u32>,
    pub merged_sessions: u64,
    /// Session of each process, in files merged by trcsess.
    pub processes: HashMap<Vec<u8>, u32>,
    pub process: Vec<u8>,
    pub current: u32,
    pub open_cursors: usize,
    /// The cursor that was used last, its session and its statement.
    recent: Option<(u64, u32, u32)>,
    pub memory: Memory,
    pub statements: Statements,
    pub plans: Plans,
    pub stats: Vec<Stat>,
    pub files: Keyed,
    pub blocks: Keyed,
    pub objects: Keyed,
    pub ticks: Ticks,
    pub counts: Counts,
}

impl State {
    pub fn new(limits: Limits) -> Self {
        Self {
            product: String::new(),
            instance: String::new(),
            release: u32::MAX,
            unit: 1,
            sessions: vec![Session::new("(none)".to_owned())],
            session_ids: HashMap::new(),
            merged_sessions: 0,
            processes: HashMap::new(),
            process: Vec::new(),
            current: 0,
            open_cursors: 0,
            recent: None,
            memory: Memory {
                events: Events::new(limits.events),
                names: Names::default(),
                tims: Ends::default(),
            },
            statements: Statements::new(&limits),
            plans: Plans::new(limits.row_sources),
            stats: Vec::new(),
            files: Keyed::default(),
            blocks: Keyed::default(),
            objects: Keyed::default(),
            ticks: Ticks::default(),
            counts: Counts::default(),
            limits,
        }
    }

    #[inline]
    pub fn wait(&mut self, line: &[u8]) -> bool {
        let Some(wait) = Wait::parse(line, &mut self.memory) else { return false };
        self.counts.records += 1;
        self.counts.negative_waits += u64::from(wait.elapsed < 0);
        let elapsed = wait.elapsed.max(0).saturating_mul(self.unit);
        let us = elapsed as u64;
        let event = wait.event;
        let meaning = self.memory.events.meaning(event);
        let Moved { size, file, object } = wait.moved(meaning);
        let statement = (wait.cursor != 0).then(|| self.statement(wait.cursor));
        let session = &mut self.sessions[self.current as usize];
        session.at(wait.tim.map(|tim| tim.saturating_mul(self.unit)), elapsed);
        session.waits.of(event).0.add(us, size);
        if let Some(statement) = statement {
            let (tally, new) = self.statements.of(statement).waits.of(event);
            tally.add(us, size);
            self.statements.pairs += usize::from(new);
            if meaning != Meaning::Client {
                session.waited(statement, us);
            }
        }
        if meaning == Meaning::Client {
            self.client_wait(Trip { statement, wait_us: us });
            return true;
        }
        if let Some(file) = file {
            self.files.add((event, file), us, size, self.limits.keys);
        }
        if size.blocks > 0 {
            self.blocks.add((event, size.blocks), us, size, self.limits.keys);
        }
        if let (true, Some(object @ 1..)) = (size.blocks + size.bytes > 0, object) {
            self.objects.add((event, object as u64), us, size, self.limits.keys);
        }
        true
    }

    fn client_wait(&mut self, trip: Trip) {
        let session = &mut self.sessions[self.current as usize];
        if !session.waits_after.is_empty() {
            for (statement, us) in session.between_calls() {
                self.statements.of(statement).wait_between(us);
            }
        }
        if let Some(statement) = trip.statement {
            self.statements.of(statement).wait_between(trip.wait_us);
        }
        if let Some(before) = session.trip.replace(trip) {
            self.trip(before, before.wait_us);
        }
    }

    fn trip(&mut self, trip: Trip, gap_us: u64) {
        self.sessions[self.current as usize].trips.add(trip.wait_us, gap_us);
        if let Some(statement) = trip.statement {
            self.statements.of(statement).trips.add(trip.wait_us, gap_us);
        }
    }

    /// Handles the rest of a line after `FETCH #` and the like.
    #[inline]
    pub fn call(&mut self, kind: CallKind, line: &[u8]) -> bool {
        let Some((cursor, rest)) = self.memory.names.read(line) else { return false };
        let Some(fields) = rest.strip_prefix(b":") else { return false };
        let Some(call) = Call::parse(fields, &mut self.memory.tims) else { return false };
        if call.depth.is_none() {
            return false;
        }
        self.count_call(kind, Some(cursor), call);
        true
    }

    #[inline]
    fn count_call(&mut self, kind: CallKind, cursor: Option<u64>, mut call: Call) {
        self.counts.records += 1;
        self.ticks.note(call.cpu);
        if self.unit != 1 {
            call.cpu = call.cpu.saturating_mul(self.unit);
            call.elapsed = call.elapsed.saturating_mul(self.unit);
            call.tim = call.tim.map(|tim| tim.saturating_mul(self.unit));
        }
        let session = &mut self.sessions[self.current as usize];
        let own = session.call(&call);
        if call.depth.unwrap_or(0) == 0
            && let Some((trip, gap_us)) = session.client_call(&call)
        {
            self.trip(trip, gap_us);
        }
        let Some(cursor) = cursor else { return };
        let session = &self.sessions[self.current as usize];
        // Closing a cursor that does not occur elsewhere in the trace does not create a statement.
        if kind == CallKind::Close && !session.cursors.contains_key(&cursor) {
            return;
        }
        let statement = self.statement(cursor);
        self.statements.of(statement).add(kind, &call, &own);
    }

    /// Returns the statement of a cursor of the current session.
    #[inline]
    fn statement(&mut self, cursor: u64) -> u32 {
        if let Some((recent, session, statement)) = self.recent
            && (recent, session) == (cursor, self.current)
        {
            return statement;
        }
        let session = &self.sessions[self.current as usize];
        if let Some(known) = session.cursors.get(&cursor) {
            self.recent = Some((cursor, self.current, known.statement));
            return known.statement;
        }
        self.open(cursor, Key::Cursor { session: self.current, cursor }, b"", 0)
    }

    /// Assigns a statement to a cursor.
    fn open(&mut self, cursor: u64, key: Key, text: &[u8], texts: u32) -> u32 {
        self.recent = None;
        if self.statements.is_full() {
            self.end_plan();
            let numbers = self.statements.shrink();
            self.plans.renumber(&numbers, OTHERS);
            for session in &mut self.sessions {
                session.renumber(&numbers);
            }
        }
        let statement = self.statements.define(key, text);
        if self.open_cursors >= MOST_CURSORS {
            self.sessions.iter_mut().for_each(|session| session.cursors.clear());
            self.open_cursors = 0;
        }
        let session = &mut self.sessions[self.current as usize];
        let before = session.cursors.insert(cursor, Cursor { statement, texts });
        self.open_cursors += usize::from(before.is_none());
        statement
    }

    /// Defines the text of a cursor's statement.
    pub fn define(&mut self, header: &Header, text: &[u8]) {
        let text = text.trim_ascii_end();
        let key = if let Some(id) = header.sql_id {
            Key::SqlId(id)
        } else {
            let text = String::from_utf8_lossy(text);
            Key::Hash(normal::hash(&normal::normalised(&text, Dialect::Oracle)))
        };
        let session = &self.sessions[self.current as usize];
        let texts = session.cursors.get(&header.cursor).map_or(0, |it| it.texts);
        let statement = self.open(header.cursor, key, text, texts.wrapping_add(1));
        let held = self.statements.of(statement);
        if held.depth.is_none() {
            held.depth = header.depth;
        }
    }

    pub fn end_plan(&mut self) {
        let stats = std::mem::take(&mut self.stats);
        let Some(first) = stats.first() else { return };
        let statement = self.statement(first.cursor);
        let session = &self.sessions[self.current as usize];
        let texts = session.cursors.get(&first.cursor).map_or(0, |it| it.texts);
        self.plans.add(statement, (first.cursor, texts), &stats, self.release < 11);
    }

    /// Handles the rest of a line after `STAT #`.
    pub fn stat(&mut self, line: &[u8]) -> bool {
        let Some(stat) = Stat::parse(line) else { return false };
        self.counts.records += 1;
        let continues =
            self.stats.last().is_some_and(|it| it.cursor == stat.cursor && it.id < stat.id);
        if !continues {
            self.end_plan();
        }
        if self.stats.len() < LONGEST_PLAN {
            self.stats.push(stat);
        }
        true
    }

    /// Handles lines that are too rare for a branch of their own before all others.
    pub fn rare(&mut self, line: &[u8]) -> bool {
        for start in [&b"SORT UNMAP #"[..], b"UNMAP #"] {
            if let Some(rest) = line.strip_prefix(start) {
                return self.call(CallKind::Unmap, rest);
            }
        }
        for start in [&b"RPC CALL:"[..], b"RPC EXEC:"] {
            if let Some(rest) = line.strip_prefix(start) {
                return self.uncursored(CallKind::Remote, rest);
            }
        }
        if line.starts_with(b"LOB")
            && let Some(colon) = memchr::memchr(b':', line)
        {
            return self.uncursored(CallKind::Lob, &line[colon + 1..]);
        }
        if line.starts_with(b"XCTEND ") {
            return self.transaction(line);
        }
        if line.starts_with(b"ERROR #") {
            self.counts.records += 1;
            self.counts.errors += 1;
            return true;
        }
        self.headed(line)
    }

    /// Handles a call without a cursor: of a LOB, or of another database.
    fn uncursored(&mut self, kind: CallKind, fields: &[u8]) -> bool {
        let fields = fields.trim_ascii_start();
        if memmem::find(fields, b"c=").is_none() {
            // `RPC CALL:PROCEDURE …` has only the name.
            return kind == CallKind::Remote;
        }
        let Some(call) = Call::parse(fields, &mut self.memory.tims) else { return false };
        self.count_call(kind, None, call);
        true
    }

    fn transaction(&mut self, line: &[u8]) -> bool {
        match bytes::after(line, b"rlbk=") {
            Some(0) => self.counts.commits += 1,
            Some(_) => self.counts.rollbacks += 1,
            None => return false,
        }
        self.counts.records += 1;
        let tim = bytes::after(line, b"tim=").map(|tim| tim.saturating_mul(self.unit));
        let session = &mut self.sessions[self.current as usize];
        session.at(tim, 0);
        session.transaction_end();
        true
    }

    /// Handles lines of a file's header.
    fn headed(&mut self, line: &[u8]) -> bool {
        const HEAD: [&[u8]; 21] = [
            b"With the ",
            b"Data Mining",
            b"and Real ",
            b"Version",
            b"Build label:",
            b"ORACLE_HOME",
            b"System name:",
            b"Node name:",
            b"Release:",
            b"Machine:",
            b"CLID:",
            b"Instance number:",
            b"Database ",
            b"Redo thread mounted",
            b"Oracle process number",
            b"Windows thread id",
            b"VM name",
            b"Windows NT Version",
            b"CPU  ",
            b"Process Affinity",
            b"Memory (Avail",
        ];
        if line.starts_with(b"Trace file ") || line.starts_with(b"Dump file ") {
            // Files that were concatenated with nothing between them.
            self.end_of_file();
            return true;
        }
        if line.starts_with(b"Oracle") && self.product(line) {
            return true;
        }
        if let Some(rest) = line.strip_prefix(b"Instance name:") {
            self.instance = lossy(rest);
            return true;
        }
        if let Some(rest) = line.strip_prefix(b"Unix process pid: ") {
            let end = rest.iter().position(|byte| !byte.is_ascii_digit()).unwrap_or(rest.len());
            self.process(&rest[..end]);
            return true;
        }
        // Skips the path of the file, before 11g, and hexadecimal dumps of binds.
        let in_dump = line.starts_with(b"Dump of memory")
            || line.starts_with(b"Repeat ")
            || (line.len() > 17 && line[..8].iter().all(u8::is_ascii_hexdigit));
        line[0] == b'/' || in_dump || HEAD.iter().any(|start| line.starts_with(start))
    }

    fn product(&mut self, line: &[u8]) -> bool {
        const OLDEST_WITH_MICROSECONDS: u32 = 9;
        let release = match memmem::find(line, b"Release ") {
            Some(at) => bytes::name(&line[at + 8..]).map(|(release, _)| release),
            None => None,
        };
        let Some(release) = release.and_then(|it| u32::try_from(it).ok()) else { return false };
        self.release = release;
        self.unit = if release < OLDEST_WITH_MICROSECONDS { 10_000 } else { 1 };
        if self.product.is_empty() {
            self.product = lossy(line);
        }
        true
    }

    /// Handles the rest of a line after `*** `.
    pub fn starred(&mut self, line: &[u8]) {
        if let Some(rest) = line.strip_prefix(b"SESSION ID:(") {
            let end = memchr::memchr(b')', rest).unwrap_or(rest.len());
            let id = [self.instance.as_bytes(), b"/", &rest[..end.min(60)]].concat();
            self.current = self.session(id, end.min(60));
            self.processes.insert(self.process.clone(), self.current);
        } else if line.starts_with(b"DUMP FILE SIZE IS LIMITED") {
            self.counts.limited += 1;
        } else if line.starts_with(b"TRACE CONTINUE") {
            self.counts.continued += 1;
        } else if line.starts_with(b"[ Unix ") || line.starts_with(b"[ Windows ") {
            // `[ Unix process pid: 7 ]` or `[ Windows thread id: 7 ]`, by trcsess.
            let id = bytes::between(line, b"id: ", b' ').unwrap_or_default().to_vec();
            self.process(&id);
        }
    }

    /// Sets the process that writes the next lines, and the session that it had last.
    fn process(&mut self, pid: &[u8]) {
        self.process = pid[..pid.len().min(20)].to_vec();
        if self.processes.len() >= 4 * self.limits.sessions {
            self.processes.clear();
        }
        if let Some(&session) = self.processes.get(&self.process) {
            self.current = session;
        }
    }

    /// Returns the number of a session; the last `shown` bytes of its key are its id.
    fn session(&mut self, key: Vec<u8>, shown: usize) -> u32 {
        if let Some(&number) = self.session_ids.get(&key) {
            return number;
        }
        if self.sessions.len() > self.limits.sessions {
            self.merged_sessions += 1;
            return 0;
        }
        let number = self.sessions.len() as u32;
        let id = lossy(&key[key.len() - shown..]);
        self.sessions.push(Session::new(id));
        self.session_ids.insert(key, number);
        number
    }

    pub fn end_of_file(&mut self) {
        self.end_plan();
        // Other sessions may continue in another file, with their open cursors and calls.
        self.sessions[0].end();
        self.recent = None;
        self.current = 0;
        self.process.clear();
        self.processes.clear();
    }
}

/// Decodes a short text of a header.
fn lossy(bytes: &[u8]) -> String {
    String::from_utf8_lossy(&bytes[..bytes.len().min(200)]).trim().to_owned()
}
