//! Visibility of changes of names and attributes to others, and exclusion of operations that must
//! be exclusive.

use std::time::Duration;

use crate::coherence::findings::{Class, ReadMode, WriteMode};
use blockstone_base::units::format_ns;
use blockstone_sys::clock::now_ns;
use rustix::io::Errno;

use super::ask::{Act, Answer, Ask, Look, Records};
use super::history::INITIAL;
use super::session::{Outcome, REFUSED, Session, Tried, Waited};
use super::stamp::Content;
use crate::CheckError;

/// A case with two ranks.
type OfTwo = fn(&mut Session<'_>, (usize, usize)) -> Result<Outcome, CheckError>;

const RACES: u32 = 8;
const RECORDS: u32 = 100;
const COUNTS: u32 = 50;
const SIZE: u64 = 12_345;
const LESS: u64 = 4_321;
const MODE: u32 = 0o400;

/// A change by one rank that the other has to see afterwards.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Change {
    Create,
    List,
    Extend,
    Truncate,
    Chmod,
    Rename,
    RenameOver,
    /// As before, but the other opens the file.
    OpenRenamedOver,
    Remove,
    /// As before, but the other lists the directory: a name without a file may remain in its cache.
    ListRemoved,
    OpenRemoved,
    /// Removes the file and makes another of that name, which often gets the number of the first.
    Replace,
    /// Renames the file, and the other lists the directory.
    ListRenamed,
    /// Removes a file that the other made; the other, and all further ranks, list the directory.
    ListRemovedElsewhere,
    /// As before, but they open the file.
    OpenRemovedElsewhere,
}

impl Change {
    /// Returns whether another rank than the one that makes the change made the file.
    fn is_elsewhere(self) -> bool {
        matches!(self, Self::ListRemovedElsewhere | Self::OpenRemovedElsewhere)
    }
}

const CHANGES: [(Change, &str); 15] = [
    (Change::Create, "create"),
    (Change::List, "list"),
    (Change::Extend, "extend"),
    (Change::Truncate, "truncate"),
    (Change::Chmod, "chmod"),
    (Change::Rename, "rename"),
    (Change::RenameOver, "rename-over"),
    (Change::OpenRenamedOver, "open-renamed-over"),
    (Change::Remove, "remove"),
    (Change::ListRemoved, "list-removed"),
    (Change::OpenRemoved, "open-removed"),
    (Change::Replace, "replace"),
    (Change::ListRenamed, "list-renamed"),
    (Change::ListRemovedElsewhere, "list-removed-elsewhere"),
    (Change::OpenRemovedElsewhere, "open-removed-elsewhere"),
];

pub fn all(session: &mut Session<'_>) -> Result<(), CheckError> {
    let ranks: Vec<usize> = (0..session.ranks.len()).collect();
    let writers = ranks.iter().copied().filter(|&it| session.ranks[it].can_write);
    let writers: Vec<usize> = writers.collect();
    for (change, name) in CHANGES {
        if session.is_over() {
            return Ok(());
        }
        let case = format!("name/{name}");
        session.observer.phase(&case);
        let among = if change.is_elsewhere() { &writers } else { &ranks };
        let outcome = session.both_ways(among, |session, pair| changed(session, change, pair))?;
        if let Some(outcome) = outcome {
            session.push(case, outcome);
        }
    }
    if session.is_over() {
        return Ok(());
    }
    session.observer.phase("name/held-removed");
    if let Some(outcome) = session.both_ways(&ranks, super::held::removed)? {
        session.push("name/held-removed".to_owned(), outcome);
    }
    let &[a, b, ..] = writers.as_slice() else { return Ok(()) };
    let races: [(&str, OfTwo); 2] = [("name/exclusive-create", exclusive), ("name/append", append)];
    for (case, race) in races {
        if session.is_over() {
            return Ok(());
        }
        session.observer.phase(case);
        let outcome = race(session, (a, b))?;
        session.push(case.to_owned(), outcome);
    }
    Ok(())
}

/// Tries locks, with ranks that can all write to the file.
pub fn locks(session: &mut Session<'_>) -> Result<(), CheckError> {
    let writers = session.opened.iter().copied().filter(|&it| session.ranks[it].can_write);
    let writers: Vec<usize> = writers.collect();
    let &[a, b, ..] = writers.as_slice() else { return Ok(()) };
    let cases: [(&str, OfTwo); 3] = [
        ("lock/exclusion", exclusion),
        ("lock/fence", |session, _| super::data::fence(session)),
        ("lock/counter", counter),
    ];
    for (case, run) in cases {
        if session.is_over() {
            return Ok(());
        }
        session.observer.phase(case);
        let outcome = match session.open_all(&[a, b])? {
            Ok(()) => run(session, (a, b))?,
            Err(outcome) => outcome,
        };
        session.push(case.to_owned(), outcome);
    }
    Ok(())
}

pub fn changed(
    session: &mut Session<'_>,
    change: Change,
    ranks: (usize, usize),
) -> Result<Outcome, CheckError> {
    let writer = ranks.0;
    let (mut lags, mut late, mut reused) = (Vec::new(), 0, 0);
    let mut worst = (Class::Linearizable, String::new());
    // Only a few rounds, because each makes and removes a file.
    let rounds = session.rounds.clamp(2, 10) / 2;
    for _ in 0..rounds {
        let (name, other) = (session.name(), session.name());
        let Seen { waited, by, is_reused } =
            match one_change(session, change, ranks, (name, other))? {
                Ok(seen) => seen,
                Err(Stop::Failed(doing, rank, errno)) => {
                    return Ok(Outcome::failed(doing, rank, errno));
                }
                Err(Stop::Unseen(rank, ns)) => {
                    let (ns, maker) = (format_ns(ns as f64), maker_of(change, ranks));
                    let evidence =
                        format!("rank {maker} to {rank}: the file itself was not seen for {ns}");
                    return Ok(Outcome {
                        operations: 1,
                        stale: 1,
                        ..Outcome::new(Class::Never, evidence)
                    });
                }
            };
        late += waited.late;
        lags.extend(waited.lag_ns);
        reused += u32::from(is_reused);
        let class = waited.class();
        if class > worst.0 {
            let ns = waited.lag_ns.unwrap_or(session.patience.as_nanos() as u64);
            let after = format_ns(ns as f64);
            let evidence = match class {
                Class::Never => format!("rank {writer} to {by}: not seen for {after}"),
                _ => format!("rank {writer} to {by}: seen after {after}"),
            };
            worst = (class, evidence);
        }
        for name in [name, other] {
            // One of them exists, or none.
            let _ = session.ask(maker_of(change, ranks), Ask::Name { name, act: Act::Remove })?;
        }
        if class == Class::Never {
            break;
        }
    }
    let (class, evidence) = worst;
    let evidence = match class {
        Class::Linearizable => format!("{rounds} changes a direction, each seen at once"),
        _ => evidence,
    };
    let evidence = match change {
        Change::Replace => {
            format!("{evidence}; {reused} new files had the inode number of the removed one")
        }
        _ => evidence,
    };
    let lags = if class == Class::Never { Vec::new() } else { lags };
    let operations = u64::from(rounds) + late;
    Ok(Outcome { operations, stale: late, lags, ..Outcome::new(class, evidence) })
}

/// Reason why a change was not tried.
enum Stop {
    Failed(&'static str, usize, i32),
    /// The file that the change applies to was not seen by this rank within these nanoseconds.
    Unseen(usize, u64),
}

/// Result of one change.
struct Seen {
    waited: Waited,
    /// The last rank that did not see it; the reader, if all saw it at once.
    by: usize,
    /// Whether the new file has the inode number of the removed one.
    is_reused: bool,
}

/// Returns the rank that makes the file.
fn maker_of(change: Change, (writer, reader): (usize, usize)) -> usize {
    if change.is_elsewhere() { reader } else { writer }
}

/// Returns the requests that make the files of a change, and the file that must then be seen.
fn preparation(change: Change, (name, other): (u32, u32)) -> (Vec<Ask>, u32) {
    let create = Ask::Name { name, act: Act::Create };
    let resize = |bytes| Ask::Name { name, act: Act::Resize(bytes) };
    match change {
        Change::Create | Change::List => (Vec::new(), name),
        Change::Extend
        | Change::Chmod
        | Change::Rename
        | Change::Remove
        | Change::ListRemoved
        | Change::OpenRemoved
        | Change::ListRenamed
        | Change::ListRemovedElsewhere
        | Change::OpenRemovedElsewhere => (vec![create], name),
        Change::Truncate | Change::Replace => (vec![create, resize(SIZE)], name),
        Change::RenameOver | Change::OpenRenamedOver => {
            (vec![create, resize(SIZE), Ask::Name { name: other, act: Act::Create }], other)
        }
    }
}

/// Returns what the writer does to the file.
fn acts(change: Change, other: u32) -> Vec<Act> {
    match change {
        Change::Create | Change::List => vec![Act::Create],
        Change::Extend => vec![Act::Resize(SIZE)],
        Change::Truncate => vec![Act::Resize(LESS)],
        Change::Chmod => vec![Act::Chmod(MODE)],
        Change::Rename | Change::RenameOver | Change::OpenRenamedOver | Change::ListRenamed => {
            vec![Act::RenameTo(other)]
        }
        Change::Remove
        | Change::ListRemoved
        | Change::OpenRemoved
        | Change::ListRemovedElsewhere
        | Change::OpenRemovedElsewhere => vec![Act::Remove],
        Change::Replace => vec![Act::Remove, Act::Create, Act::Resize(LESS)],
    }
}

fn one_change(
    session: &mut Session<'_>,
    change: Change,
    (writer, reader): (usize, usize),
    (name, other): (u32, u32),
) -> Result<Result<Seen, Stop>, CheckError> {
    let patience = session.patience;
    let maker = maker_of(change, (writer, reader));
    let lookers: Vec<usize> = if change.is_elsewhere() {
        (0..session.ranks.len()).filter(|it| *it != writer).collect()
    } else {
        vec![reader]
    };
    let (before, there) = preparation(change, (name, other));
    if !before.is_empty() {
        for ask in before {
            if let Err(errno) = session.ask(maker, ask)? {
                return Ok(Err(Stop::Failed("create", maker, errno)));
            }
        }
        // The rank that removes it has to see it, too.
        let removes = change.is_elsewhere().then_some(writer);
        for rank in lookers.iter().copied().chain(removes) {
            let since_ns = now_ns();
            let waited = session.wait_for(since_ns, patience, &mut |session| {
                look(session, rank, there, &|found| found.is_some())
            })?;
            match waited {
                Ok(waited) if waited.lag_ns.is_some() => {}
                Ok(_) => return Ok(Err(Stop::Unseen(rank, now_ns() - since_ns))),
                Err(errno) => return Ok(Err(Stop::Failed("stat", rank, errno))),
            }
        }
    }
    // It is removed like a file that no one has open.
    if change.is_elsewhere() {
        let _ = session.ask(maker, Ask::Name { name, act: Act::Close })?;
    }
    // Readers look before the change: their answer afterwards may come from their cache.
    for &rank in &lookers {
        if let Err(errno) = sees(session, change, rank, (name, other))? {
            return Ok(Err(Stop::Failed("stat", rank, errno)));
        }
    }
    let before = match change {
        Change::Replace => session.inode(writer, name)?,
        _ => None,
    };
    for act in acts(change, other) {
        if let Err(errno) = session.ask(writer, Ask::Name { name, act })? {
            return Ok(Err(Stop::Failed("change a file", writer, errno)));
        }
    }
    let since_ns = now_ns();
    let mut by = reader;
    let waited = session.wait_for(since_ns, patience, &mut |session| {
        for &rank in &lookers {
            match sees(session, change, rank, (name, other))? {
                Ok(true) => {}
                answer => {
                    by = rank;
                    return Ok(answer);
                }
            }
        }
        Ok(Ok(true))
    })?;
    let is_reused = before.is_some() && before == session.inode(writer, name)?;
    let seen = |waited| Seen { waited, by, is_reused };
    Ok(waited.map(seen).map_err(|errno| Stop::Failed("stat", by, errno)))
}

/// Returns whether the reader sees the result of the change.
fn sees(
    session: &mut Session<'_>,
    change: Change,
    reader: usize,
    (name, other): (u32, u32),
) -> Tried<bool> {
    let is = |found: &dyn Fn(Look) -> bool, it: Option<Look>| it.is_some_and(found);
    match change {
        Change::Create => look(session, reader, name, &|it| it.is_some()),
        Change::List => lists(session, reader, name, true),
        Change::ListRemoved | Change::ListRemovedElsewhere => lists(session, reader, name, false),
        Change::ListRenamed => {
            let gone = lists(session, reader, name, false)?;
            let there = lists(session, reader, other, true)?;
            Ok(gone.and_then(|gone| there.map(|there| gone && there)))
        }
        Change::Extend => look(session, reader, name, &|it| is(&|it| it.bytes == SIZE, it)),
        Change::Truncate => look(session, reader, name, &|it| is(&|it| it.bytes == LESS, it)),
        Change::Chmod => look(session, reader, name, &|it| is(&|it| it.mode == MODE, it)),
        Change::Remove => look(session, reader, name, &|it| it.is_none()),
        Change::Rename => {
            let gone = look(session, reader, name, &|it| it.is_none())?;
            let there = look(session, reader, other, &|it| it.is_some())?;
            Ok(gone.and_then(|gone| there.map(|there| gone && there)))
        }
        Change::RenameOver => look(session, reader, other, &|it| is(&|it| it.bytes == SIZE, it)),
        Change::OpenRenamedOver => {
            opened(session, reader, other, &|it| is(&|it| it.bytes == SIZE, it))
        }
        Change::OpenRemoved | Change::OpenRemovedElsewhere => {
            opened(session, reader, name, &|it| it.is_none())
        }
        Change::Replace => opened(session, reader, name, &|it| is(&|it| it.bytes == LESS, it)),
    }
}

/// Returns whether the list of a rank has a name, or has it not, as wanted.
fn lists(session: &mut Session<'_>, rank: usize, name: u32, is_there: bool) -> Tried<bool> {
    let answer = session.ask(rank, Ask::Name { name, act: Act::List })?;
    Ok(answer.map(|it| matches!(it, Answer::Listed(listed) if listed == is_there)))
}

fn look(
    session: &mut Session<'_>,
    rank: usize,
    name: u32,
    wanted: &dyn Fn(Option<Look>) -> bool,
) -> Tried<bool> {
    found(session, rank, Ask::Name { name, act: Act::Look }, wanted)
}

fn opened(
    session: &mut Session<'_>,
    rank: usize,
    name: u32,
    wanted: &dyn Fn(Option<Look>) -> bool,
) -> Tried<bool> {
    found(session, rank, Ask::Name { name, act: Act::Open }, wanted)
}

fn found(
    session: &mut Session<'_>,
    rank: usize,
    ask: Ask,
    wanted: &dyn Fn(Option<Look>) -> bool,
) -> Tried<bool> {
    let answer = session.ask(rank, ask)?;
    Ok(answer.and_then(|it| match it {
        Answer::Look(found) => Ok(wanted(found)),
        _ => Err(REFUSED),
    }))
}

/// Has both ranks create the same name: only one may succeed.
fn exclusive(session: &mut Session<'_>, (a, b): (usize, usize)) -> Result<Outcome, CheckError> {
    let mut wrong = 0_u64;
    for _ in 0..RACES {
        let name = session.name();
        let ask = |rank| (rank, Ask::Name { name, act: Act::Create });
        let answers = session.ask_all(vec![ask(a), ask(b)])?;
        let exists = Errno::EXIST.raw_os_error();
        let failed = answers.iter().zip([a, b]).find_map(|(answer, rank)| match answer {
            Err(errno) if *errno != exists => Some((rank, *errno)),
            _ => None,
        });
        for rank in [a, b] {
            let _ = session.ask(rank, Ask::Name { name, act: Act::Remove })?;
        }
        if let Some((rank, errno)) = failed {
            return Ok(Outcome::failed("create", rank, errno));
        }
        wrong += u64::from(answers.iter().filter(|it| it.is_ok()).count() != 1);
    }
    let (class, evidence) = match wrong {
        0 => (Class::Linearizable, format!("one winner in each of {RACES} races with O_EXCL")),
        _ => (Class::Torn, format!("{wrong} of {RACES} races with O_EXCL had not one winner")),
    };
    let operations = u64::from(RACES) * 2;
    Ok(Outcome { operations, stale: wrong, ..Outcome::new(class, evidence) })
}

/// Has both ranks append to the same file at the same time: no record may be lost.
fn append(session: &mut Session<'_>, (a, b): (usize, usize)) -> Result<Outcome, CheckError> {
    let name = session.name();
    if let Err(errno) = session.ask(a, Ask::Name { name, act: Act::Create })? {
        return Ok(Outcome::failed("create", a, errno));
    }
    let patience = session.patience;
    let waited = session
        .wait_for(now_ns(), patience, &mut |session| look(session, b, name, &|it| it.is_some()))?;
    if !waited.is_ok_and(|it| it.lag_ns.is_some()) {
        let _ = session.ask(a, Ask::Name { name, act: Act::Remove })?;
        let evidence = format!("rank {b} does not see the file of rank {a}");
        return Ok(Outcome::new(Class::Never, evidence));
    }
    let ask = |rank, tag| (rank, Ask::Name { name, act: Act::Append { tag, records: RECORDS } });
    let answers = session.ask_all(vec![ask(a, 1), ask(b, 2)])?;
    let failed = answers.iter().zip([a, b]).find_map(|(it, rank)| Some((rank, it.clone().err()?)));
    let all = Records { first: RECORDS, second: RECORDS, damaged: 0 };
    let mut found = [Records::default(); 2];
    for (rank, found) in [a, b].into_iter().zip(&mut found) {
        let until = session.wait_for(now_ns(), patience, &mut |session| {
            let answer = session.ask(rank, Ask::Name { name, act: Act::CountRecords })?;
            Ok(answer.map(|it| {
                if let Answer::Records(records) = it {
                    *found = records;
                }
                *found == all
            }))
        })?;
        if let Err(errno) = until {
            return Ok(Outcome::failed("read", rank, errno));
        }
    }
    let _ = session.ask(a, Ask::Name { name, act: Act::Remove })?;
    if let Some((rank, errno)) = failed {
        return Ok(Outcome::failed("append", rank, errno));
    }
    let total = RECORDS * 2;
    let complete = found.iter().filter(|it| **it == all).count();
    let there = found.iter().map(|it| it.first + it.second).max().unwrap_or_default();
    let (class, evidence) = match complete {
        2 => (Class::Linearizable, format!("all {total} records of two ranks are there")),
        1 => (Class::Never, format!("one rank sees all {total} records, the other does not")),
        _ => (Class::Torn, format!("{there} of {total} records that two ranks appended are there")),
    };
    Ok(Outcome { operations: total.into(), ..Outcome::new(class, evidence) })
}

/// Takes the lock in turns: while one rank has it the other must not get it, and after that it
/// must.
fn exclusion(session: &mut Session<'_>, (a, b): (usize, usize)) -> Result<Outcome, CheckError> {
    let (mut both, mut lost) = (0_u64, 0_u64);
    for round in 0..RACES {
        let (a, b) = if round % 2 == 0 { (a, b) } else { (b, a) };
        let steps =
            [(a, true, 1_000), (b, true, 0), (a, false, 0), (b, true, 1_000), (b, false, 0)];
        let mut held = Vec::new();
        for (rank, lock, wait_ms) in steps {
            match session.ask(rank, Ask::Lock { lock, wait_ms })? {
                Ok(answer) => held.push(matches!(answer, Answer::Locked(true))),
                Err(errno) => return Ok(Outcome::failed("lock", rank, errno)),
            }
        }
        both += u64::from(held[1]);
        lost += u64::from(!held[0] || !held[3]);
    }
    let (class, evidence) = match (both, lost) {
        (0, 0) => (Class::Linearizable, format!("{RACES} hand-overs of the lock")),
        (0, _) => (Class::Never, format!("{lost} of {RACES} times a free lock was not given")),
        _ => (Class::Torn, format!("{both} of {RACES} times both had the lock")),
    };
    let operations = u64::from(RACES) * 5;
    Ok(Outcome { operations, stale: both, ..Outcome::new(class, evidence) })
}

/// Has both ranks increment the same number, each step under the lock.
fn counter(session: &mut Session<'_>, (a, b): (usize, usize)) -> Result<Outcome, CheckError> {
    let block = session.blocks(1);
    if let Err(errno) = session.write(a, WriteMode::Fdatasync, block, INITIAL)? {
        return Ok(Outcome::failed("write", a, errno));
    }
    let ask = |rank| (rank, Ask::Count { rounds: COUNTS, block });
    let answers = session.ask_all(vec![ask(a), ask(b)])?;
    for (answer, rank) in answers.iter().zip([a, b]) {
        if let Err(errno) = answer {
            return Ok(Outcome::failed("count under the lock", rank, *errno));
        }
    }
    let expected = u64::from(COUNTS) * 2;
    let mut found = 0;
    for rank in [a, b] {
        std::thread::sleep(Duration::from_millis(1));
        let locked = session.ask(rank, Ask::Lock { lock: true, wait_ms: 1_000 })?;
        let read = session.read(rank, ReadMode::Held, block)?;
        let _ = session.ask(rank, Ask::Lock { lock: false, wait_ms: 0 })?;
        if let (Ok(_), Ok((Content::Whole(count), _))) = (locked, read) {
            found = found.max(count);
        }
    }
    let evidence = format!("{found} of {expected} steps of two ranks, each under the lock");
    let class = if found == expected { Class::Linearizable } else { Class::Torn };
    let stale = expected.saturating_sub(found);
    Ok(Outcome { operations: expected * 2, stale, ..Outcome::new(class, evidence) })
}
