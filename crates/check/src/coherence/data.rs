//! Visibility of data writes to others: handed over one by one, in a free run, and next to
//! neighbours in the same block.

use std::collections::BTreeSet;

use crate::coherence::findings::{Class, ReadMode, WriteMode};
use blockstone_base::units::format_ns;
use blockstone_sys::clock::now_ns;

use super::ask::{Answer, Ask, FREE_RUN_MAX, FreeRun, Step};
use super::history::{self, Contradiction, Fault, INITIAL, Operation};
use super::session::{Outcome, REFUSED, Session, Tried};
use super::stamp::Content;
use crate::CheckError;

/// Number of late rounds that suffices.
pub const LATE_ROUNDS: u32 = 3;
const FREE_RUN_BLOCKS: u32 = 4;
const NEIGHBOUR_ROUNDS: u32 = 8;

/// Tries every way to write with every way to read.
pub fn ping_pong(session: &mut Session<'_>) -> Result<(), CheckError> {
    for &write in WriteMode::ALL {
        for &read in ReadMode::ALL {
            if session.is_over() {
                return Ok(());
            }
            let case = format!("ping-pong/{}/{}", write.name(), read.name());
            session.observer.phase(&case);
            let outcome = handed_over(session, write, read, false)?;
            session.push(case, outcome);
        }
    }
    Ok(())
}

/// Tries the same through the page cache, each access under the lock of the file.
pub fn fence(session: &mut Session<'_>) -> Result<Outcome, CheckError> {
    handed_over(session, WriteMode::Buffered, ReadMode::Held, true)
}

fn handed_over(
    session: &mut Session<'_>,
    write: WriteMode,
    read: ReadMode,
    locked: bool,
) -> Result<Outcome, CheckError> {
    let ranks = session.opened.clone();
    let outcome = session.both_ways(&ranks, |session, pair| {
        HandOver::new(session, pair, (write, read), locked).run(session)
    })?;
    Ok(outcome.unwrap_or_else(no_writer))
}

/// Has one rank write, and another read.
#[cfg(test)]
pub fn one_way(
    session: &mut Session<'_>,
    pair: (usize, usize),
    write: WriteMode,
    read: ReadMode,
) -> Result<Outcome, CheckError> {
    HandOver::new(session, pair, (write, read), false).run(session)
}

pub fn no_writer() -> Outcome {
    Outcome::new(Class::Unknown, "no rank can write")
}

/// A writer that tells a reader after each write to look.
#[derive(Clone, Copy, Debug)]
struct HandOver {
    writer: usize,
    reader: usize,
    write: WriteMode,
    read: ReadMode,
    locked: bool,
    block: u32,
    /// Versions before this one are those that existed before.
    first_version: u64,
}

/// Observations of a hand-over.
#[derive(Debug, Default)]
struct HandOverEvidence {
    history: Vec<Operation>,
    lags: Vec<u64>,
    stale: u64,
    late_rounds: u32,
    /// The weakest class, and its evidence.
    worst: Option<(Class, String)>,
}

impl HandOverEvidence {
    fn note(&mut self, class: Class, evidence: impl FnOnce() -> String) {
        if self.worst.as_ref().is_none_or(|(known, _)| class > *known) {
            self.worst = Some((class, evidence()));
        }
    }
}

impl HandOver {
    fn new(
        session: &mut Session<'_>,
        (writer, reader): (usize, usize),
        (write, read): (WriteMode, ReadMode),
        locked: bool,
    ) -> Self {
        let (block, first_version) = (session.blocks(1), session.next_version);
        Self { writer, reader, write, read, locked, block, first_version }
    }

    fn run(&self, session: &mut Session<'_>) -> Result<Outcome, CheckError> {
        let mut seen = HandOverEvidence::default();
        let (writer, reader, block) = (self.writer, self.reader, self.block);
        // An exclusive lock requires a descriptor that can write.
        let opened = if self.locked {
            session.open_all(&[writer, reader])?
        } else {
            session.open_pair(writer, reader)?
        };
        if let Err(outcome) = opened {
            return Ok(outcome);
        }
        if let Err(errno) = session.ask(reader, Ask::Drop { block })? {
            return Ok(Outcome::failed("open", reader, errno));
        }
        match self.look(session, self.read, &mut seen)? {
            Ok(_) => {}
            Err(errno) => return Ok(Outcome::failed("read", reader, errno)),
        }
        for _ in 0..session.rounds {
            if session.is_over() {
                break;
            }
            if let Err(outcome) = self.round(session, &mut seen)? {
                return Ok(outcome);
            }
            let is_enough = seen.worst.as_ref().is_some_and(|(class, _)| *class >= Class::Never);
            if is_enough || seen.late_rounds >= LATE_ROUNDS {
                break;
            }
        }
        Ok(self.outcome(seen))
    }

    /// Performs one write and the reads until it is seen. Returns an outcome if that ends the case.
    fn round(
        &self,
        session: &mut Session<'_>,
        seen: &mut HandOverEvidence,
    ) -> Result<Result<(), Outcome>, CheckError> {
        let version = session.versions(1);
        let (writer, reader, block) = (self.writer, self.reader, self.block);
        let failed = |doing, rank, errno| Ok(Err(Outcome::failed(doing, rank, errno)));
        if let Err(errno) = self.lock(session, writer, true)? {
            return failed("lock", writer, errno);
        }
        let written = match session.write(writer, self.write, block, version)? {
            Ok(written) => written,
            Err(errno) => return failed("write", writer, errno),
        };
        seen.history.push(written);
        if let Err(errno) = self.lock(session, writer, false)? {
            return failed("unlock", writer, errno);
        }
        let since_ns = written.end_ns;
        let waited = if self.locked {
            let waited = session.wait_for(since_ns, session.patience, &mut |session| {
                self.shows_locked(session, version, seen)
            })?;
            waited.map(|waited| (waited.class(), waited))
        } else {
            session.wait_to_see(self.read, since_ns, &mut |session, mode| {
                if mode == self.read {
                    self.reads(session, version, seen)
                } else {
                    Ok(Ok(self.shows(session, mode, version)?))
                }
            })?
        };
        let (class, waited) = match waited {
            Ok(found) => found,
            Err(errno) => return failed("read", reader, errno),
        };
        seen.stale += waited.late;
        seen.late_rounds += u32::from(class != Class::Linearizable);
        seen.lags.extend(waited.lag_ns.filter(|_| class != Class::Reopen));
        let last = seen.history.last().map_or(0, |it| it.value);
        let after = format_ns(waited.lag_ns.unwrap_or_else(|| now_ns() - since_ns) as f64);
        match class {
            Class::Linearizable => {}
            Class::Never => {
                let cures = self.cures(session, version)?;
                seen.note(class, || {
                    format!(
                        "v{version} was acknowledged and not read for {after} (v{last}); {cures}"
                    )
                });
            }
            Class::Reopen => seen.note(class, || {
                let times = waited.late;
                format!("v{version} was missed by {times} reads, and read after opening again")
            }),
            _ => seen
                .note(class, || format!("v{version} was read {after} after its acknowledgement")),
        }
        Ok(Ok(()))
    }

    fn lock(&self, session: &mut Session<'_>, rank: usize, lock: bool) -> Tried<()> {
        if !self.locked {
            return Ok(Ok(()));
        }
        let answer = session.ask(rank, Ask::Lock { lock, wait_ms: 1_000 })?;
        Ok(answer.and_then(|it| match it {
            Answer::Locked(true) => Ok(()),
            _ => Err(rustix::io::Errno::WOULDBLOCK.raw_os_error()),
        }))
    }

    /// Returns whether the reader reads this version now.
    fn reads(
        &self,
        session: &mut Session<'_>,
        version: u64,
        seen: &mut HandOverEvidence,
    ) -> Tried<bool> {
        let content = self.look(session, self.read, seen)?;
        // A torn block is judged, not waited for.
        Ok(content.map(|it| !matches!(it, Content::Whole(found) if found != version)))
    }

    fn shows_locked(
        &self,
        session: &mut Session<'_>,
        version: u64,
        seen: &mut HandOverEvidence,
    ) -> Tried<bool> {
        if let Err(errno) = self.lock(session, self.reader, true)? {
            return Ok(Err(errno));
        }
        let read = self.reads(session, version, seen)?;
        let unlocked = self.lock(session, self.reader, false)?;
        Ok(unlocked.and(read))
    }

    fn look(
        &self,
        session: &mut Session<'_>,
        mode: ReadMode,
        seen: &mut HandOverEvidence,
    ) -> Tried<Content> {
        let (content, operation) = match session.read(self.reader, mode, self.block)? {
            Ok(read) => read,
            Err(errno) => return Ok(Err(errno)),
        };
        match content {
            Content::Whole(version) => {
                let value = since(self.first_version, version);
                seen.history.push(Operation { value, ..operation });
            }
            Content::Mixed(a, b) => {
                seen.note(Class::Torn, || format!("parts of v{a} and v{b} in one block"));
            }
            Content::Foreign => {
                seen.note(Class::Torn, || "a block that no rank wrote there".to_owned());
            }
        }
        Ok(Ok(content))
    }

    /// Returns whether a read by other means returns the version. That read is not part of the
    /// history.
    fn shows(
        &self,
        session: &mut Session<'_>,
        mode: ReadMode,
        version: u64,
    ) -> Result<bool, CheckError> {
        let read = session.read(self.reader, mode, self.block)?;
        Ok(read.is_ok_and(|(content, _)| content == Content::Whole(version)))
    }

    /// Returns what would have shown the version.
    fn cures(&self, session: &mut Session<'_>, version: u64) -> Result<String, CheckError> {
        let mut cures = Vec::new();
        if self.read != ReadMode::Direct && self.shows(session, ReadMode::Direct, version)? {
            cures.push("O_DIRECT reads it");
        }
        let block = self.block;
        if session.ask(self.reader, Ask::Drop { block })?.is_ok()
            && self.shows(session, self.read, version)?
        {
            cures.push("dropping the reader's pages shows it");
        }
        if cures.is_empty() {
            cures.push("neither O_DIRECT nor dropping the reader's pages shows it");
        }
        Ok(cures.join(" and "))
    }

    fn outcome(&self, seen: HandOverEvidence) -> Outcome {
        let HandOverEvidence { history, lags, stale, worst, .. } = seen;
        let written = history.iter().filter(|it| it.is_write).count();
        let contradiction = history::contradiction(&history);
        let back = history::regression(&history);
        let (writer, reader) = (self.writer, self.reader);
        let (class, evidence) = match (worst, back) {
            (Some((Class::Torn, evidence)), _) => (Class::Torn, evidence),
            (_, Some(back)) => {
                let (first, second) = (back.first.value, back.second.value);
                (Class::Torn, format!("v{second} was read after v{first}, which is newer"))
            }
            (Some((class, evidence)), None) => (class, evidence),
            (None, None) if written > 0 => {
                let evidence = format!("{written} writes a direction, each seen by the next read");
                return Outcome {
                    operations: history.len() as u64,
                    lags,
                    ..Outcome::new(Class::Linearizable, evidence)
                };
            }
            (None, None) => (Class::Unknown, "there was no time for it".to_owned()),
        };
        Outcome {
            operations: history.len() as u64,
            stale,
            lags: if class == Class::Never { Vec::new() } else { lags },
            contradiction: back.or(contradiction),
            ..Outcome::new(class, format!("rank {writer} to {reader}: {evidence}"))
        }
    }
}

/// Has all ranks read and write the same blocks as fast as they can.
pub fn free_run(session: &mut Session<'_>) -> Result<(), CheckError> {
    let cases = [
        (WriteMode::Buffered, ReadMode::Held),
        (WriteMode::Direct, ReadMode::Held),
        (WriteMode::Direct, ReadMode::Direct),
    ];
    for (write, read) in cases {
        if session.is_over() {
            return Ok(());
        }
        let case = format!("free-run/{}/{}", write.name(), read.name());
        session.observer.phase(&case);
        let outcome = free_run_of(session, write, read)?;
        session.push(case, outcome);
    }
    Ok(())
}

fn free_run_of(
    session: &mut Session<'_>,
    write: WriteMode,
    read: ReadMode,
) -> Result<Outcome, CheckError> {
    let ranks = session.opened.clone();
    if let Err(outcome) = session.open_all(&ranks)? {
        return Ok(outcome);
    }
    let (first_block, first_version) = (session.blocks(FREE_RUN_BLOCKS), session.next_version);
    let mut asks = Vec::new();
    for &rank in &ranks {
        let run = FreeRun {
            rank: rank as u32,
            write: session.ranks[rank].can_write.then_some(write),
            read,
            first_block,
            blocks: FREE_RUN_BLOCKS,
            operations: FREE_RUN_MAX,
            milliseconds: session.free_run_ms,
            first_version: session.versions(FREE_RUN_MAX),
            seed: first_block.into(),
        };
        asks.push((rank, Ask::FreeRun(run)));
    }
    let mut steps: Vec<(usize, Step)> = Vec::new();
    for (&rank, answer) in ranks.iter().zip(session.ask_all(asks)?) {
        match answer {
            Ok(Answer::History(found)) => steps.extend(found.into_iter().map(|it| (rank, it))),
            Ok(_) => return Ok(Outcome::failed("run", rank, REFUSED)),
            Err(errno) => return Ok(Outcome::failed("run", rank, errno)),
        }
    }
    let operation = |&(rank, step): &(usize, Step)| Operation {
        rank: rank as u32,
        register: step.block,
        is_write: step.is_write,
        value: since(first_version, step.version.unwrap_or_default()),
        start_ns: session.ranks[rank].at_ns(step.start_ns).0,
        end_ns: session.ranks[rank].at_ns(step.end_ns).1,
    };
    let is_whole = |it: &&(usize, Step)| it.1.version.is_some();
    let history: Vec<Operation> = steps.iter().filter(is_whole).map(operation).collect();
    let mixed: Vec<Operation> = steps.iter().filter(|it| !is_whole(it)).map(operation).collect();
    Ok(judged(&history, &mixed))
}

/// Returns the version, or the initial one for data that other cases wrote to the same block
/// before.
fn since(first_version: u64, version: u64) -> u64 {
    if version < first_version { INITIAL } else { version }
}

/// Judges a history, and reads that returned no single version of their block.
fn judged(history: &[Operation], mixed: &[Operation]) -> Outcome {
    let ranks: BTreeSet<u32> = history.iter().map(|it| it.rank).collect();
    let blocks: BTreeSet<u32> = history.iter().map(|it| it.register).collect();
    let count = history.len() + mixed.len();
    let mut what =
        format!("{count} operations of {} ranks on {} blocks", ranks.len(), blocks.len());
    if !mixed.is_empty() {
        let reads = mixed.len();
        what = format!("{what}, {reads} reads overlapped a write and returned parts of it");
    }
    // A read during a write may return parts of both, unless reads are atomic.
    let is_torn = |read: &&Operation| {
        !history.iter().any(|it| {
            it.is_write
                && it.register == read.register
                && it.start_ns <= read.end_ns
                && it.end_ns >= read.start_ns
        })
    };
    let torn = mixed.iter().take(1_000).find(is_torn);
    let contradiction = history::contradiction(history);
    let back = contradiction.and_then(|_| history::regression(history));
    let (class, evidence) = match (torn, contradiction, back) {
        (Some(read), ..) => {
            let (rank, block) = (read.rank, read.register);
            (Class::Torn, format!("rank {rank} read no version of block {block} in no write"))
        }
        (None, None, _) => (Class::Linearizable, "one order explains all".to_owned()),
        (None, Some(found), _) if found.fault != Fault::Stale => {
            (Class::Torn, "a read returned what was not written yet, or never".to_owned())
        }
        (None, Some(_), Some(back)) => (Class::Torn, format!("went back: {}", shown(&back))),
        (None, Some(found), None) => {
            let by: std::collections::HashMap<u64, u32> =
                history.iter().filter(|it| it.is_write).map(|it| (it.value, it.rank)).collect();
            let others = |rank: u32| {
                let mut reads = history.iter().filter(|it| !it.is_write && it.rank == rank);
                reads.any(|it| by.get(&it.value).is_some_and(|writer| *writer != rank))
            };
            let all_see = ranks.iter().all(|&rank| others(rank));
            let class = if all_see { Class::Sequential } else { Class::Never };
            (class, shown(&found))
        }
    };
    Outcome {
        operations: count as u64,
        stale: u64::from(contradiction.is_some()),
        contradiction: back.or(contradiction),
        ..Outcome::new(class, format!("{what}: {evidence}"))
    }
}

/// Formats `rank 1 read v40 203 ms after v41 was there at rank 0`.
fn shown(found: &Contradiction) -> String {
    let (first, second) = (&found.first, &found.second);
    let gap = format_ns(found.gap_ns() as f64);
    let (a, b) = (first.rank, second.rank);
    format!("rank {b} read v{} {gap} after v{} was there at rank {a}", second.value, first.value)
}

/// Has two ranks write different sectors of the same block: does one undo the other?
pub fn false_sharing(session: &mut Session<'_>) -> Result<(), CheckError> {
    let writers = session.opened.iter().copied().filter(|&it| session.ranks[it].can_write);
    let writers: Vec<usize> = writers.collect();
    let &[a, b, ..] = writers.as_slice() else { return Ok(()) };
    for mode in [WriteMode::Fdatasync, WriteMode::Direct, WriteMode::Mapped] {
        if session.is_over() {
            return Ok(());
        }
        let case = format!("false-sharing/{}", mode.name());
        session.observer.phase(&case);
        let outcome = neighbours(session, mode, (a, b))?;
        session.push(case, outcome);
    }
    Ok(())
}

fn neighbours(
    session: &mut Session<'_>,
    mode: WriteMode,
    ranks: (usize, usize),
) -> Result<Outcome, CheckError> {
    if let Err(outcome) = session.open_all(&[ranks.0, ranks.1])? {
        return Ok(outcome);
    }
    let block = session.blocks(1);
    let (mut lost, mut example) = (0, None);
    for rank in [ranks.0, ranks.1] {
        // Its pages hold the block as it is now.
        if let Err(errno) = session.ask(rank, Ask::Read { mode: ReadMode::Held, block })? {
            return Ok(Outcome::failed("read", rank, errno));
        }
    }
    for round in 0..NEIGHBOUR_ROUNDS {
        let pair = if round % 2 == 0 { [ranks.0, ranks.1] } else { [ranks.1, ranks.0] };
        let mut written = Vec::new();
        for (&rank, sector) in pair.iter().zip(0..) {
            let version = session.versions(1);
            let start_ns = now_ns();
            let ask = Ask::WriteSector { mode, block, sector, version };
            if let Err(errno) = session.ask(rank, ask)? {
                return Ok(Outcome::failed("write 512 bytes", rank, errno));
            }
            let (end_ns, rank) = (now_ns(), rank as u32);
            let (is_write, value) = (true, version);
            let register = block;
            written.push(Operation { rank, register, is_write, value, start_ns, end_ns });
        }
        for (write, sector) in written.iter().zip(0..) {
            let start_ns = now_ns();
            let ask = |mode| Ask::ReadSector { mode, block, sector };
            let reader = pair[1];
            let content = match session.ask(reader, ask(ReadMode::Direct))? {
                Ok(Answer::Content(content)) => content,
                _ => match session.ask(reader, ask(ReadMode::Held))? {
                    Ok(Answer::Content(content)) => content,
                    Ok(_) => return Ok(Outcome::failed("read", reader, REFUSED)),
                    Err(errno) => return Ok(Outcome::failed("read", reader, errno)),
                },
            };
            if content != Content::Whole(write.value) {
                lost += 1;
                let value = if let Content::Whole(version) = content { version } else { 0 };
                let (end_ns, rank, is_write) = (now_ns(), reader as u32, false);
                let read = Operation { rank, is_write, value, start_ns, end_ns, ..*write };
                example.get_or_insert(Contradiction {
                    fault: Fault::Stale,
                    first: *write,
                    second: read,
                });
            }
        }
    }
    let total = NEIGHBOUR_ROUNDS * 2;
    let (class, evidence) = match lost {
        0 => (Class::Linearizable, format!("{total} sectors, each as it was written")),
        lost => {
            let by = "undone by a write to another sector of their block";
            (Class::Torn, format!("{lost} of {total} sectors {by}"))
        }
    };
    Ok(Outcome {
        operations: u64::from(total) * 2,
        stale: lost,
        contradiction: example,
        ..Outcome::new(class, evidence)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn operation(rank: u32, is_write: bool, value: u64, start_ns: u64) -> Operation {
        Operation { rank, register: 0, is_write, value, start_ns, end_ns: start_ns + 5 }
    }

    #[test]
    fn a_free_run_is_judged_by_what_its_ranks_saw() {
        let fresh = vec![operation(0, true, 1, 10), operation(1, false, 1, 20)];
        let class = |history: &[Operation], mixed: &[Operation]| judged(history, mixed).class;
        assert_eq!(class(&fresh, &[]), Class::Linearizable);
        let mut late = fresh.clone();
        late.extend([
            operation(0, true, 2, 30),
            operation(1, false, 1, 40),
            operation(1, true, 3, 50),
            operation(0, false, 3, 60),
        ]);
        assert_eq!(class(&late, &[]), Class::Sequential);
        let blind = [operation(0, true, 1, 10), operation(1, false, 0, 20)];
        assert_eq!(class(&blind, &[]), Class::Never);
        late.push(operation(1, false, 1, 70));
        assert_eq!(class(&late, &[]), Class::Torn, "back");
        assert_eq!(class(&fresh, &[operation(1, false, 0, 12)]), Class::Linearizable);
        assert_eq!(class(&fresh, &[operation(1, false, 0, 90)]), Class::Torn);
        assert_eq!(class(&[operation(1, false, 9, 1)], &[]), Class::Torn, "never written");
    }
}
