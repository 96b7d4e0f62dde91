//! Visibility of changes of names and attributes to others, and exclusion of operations that must
//! be exclusive.

use std::time::Duration;

use crate::coherence::findings::{Class, ReadMode, WriteMode};
use blockstone_base::units::format_ns;
use blockstone_sys::clock::now_ns;
use rustix::io::Errno;

use super::ask::{Act, Answer, Ask, Look, Records};
use super::history::INITIAL;
use super::session::{Outcome, REFUSED, Session, Tried};
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
}

const CHANGES: [(Change, &str); 12] = [
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
];

pub fn all(session: &mut Session<'_>) -> Result<(), CheckError> {
    let ranks: Vec<usize> = (0..session.ranks.len()).collect();
    for (change, name) in CHANGES {
        if session.is_over() {
            return Ok(());
        }
        let case = format!("name/{name}");
        session.observer.phase(&case);
        let outcome = session.both_ways(&ranks, |session, pair| changed(session, change, pair))?;
        if let Some(outcome) = outcome {
            session.push(case, outcome);
        }
    }
    let writers = ranks.into_iter().filter(|&it| session.ranks[it].can_write);
    let writers: Vec<usize> = writers.collect();
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
    let (writer, reader) = ranks;
    let (mut lags, mut late) = (Vec::new(), 0);
    let mut worst = (Class::Linearizable, String::new());
    // Only a few rounds, because each makes and removes a file.
    let rounds = session.rounds.clamp(2, 10) / 2;
    for _ in 0..rounds {
        let (name, other) = (session.name(), session.name());
        let waited = match one_change(session, change, ranks, (name, other))? {
            Ok(waited) => waited,
            Err(Stop::Failed(doing, rank, errno)) => {
                return Ok(Outcome::failed(doing, rank, errno));
            }
            Err(Stop::Unseen(ns)) => {
                let ns = format_ns(ns as f64);
                let evidence =
                    format!("rank {writer} to {reader}: the file itself was not seen for {ns}");
                return Ok(Outcome {
                    operations: 1,
                    stale: 1,
                    ..Outcome::new(Class::Never, evidence)
                });
            }
        };
        late += waited.late;
        lags.extend(waited.lag_ns);
        let class = waited.class();
        if class > worst.0 {
            let ns = waited.lag_ns.unwrap_or(session.patience.as_nanos() as u64);
            let after = format_ns(ns as f64);
            let evidence = match class {
                Class::Never => format!("not seen for {after}"),
                _ => format!("seen after {after}"),
            };
            worst = (class, evidence);
        }
        for name in [name, other] {
            // One of them exists, or none.
            let _ = session.ask(writer, Ask::Name { name, act: Act::Remove })?;
        }
        if class == Class::Never {
            break;
        }
    }
    let (class, evidence) = worst;
    let evidence = match class {
        Class::Linearizable => format!("{rounds} changes a direction, each seen at once"),
        _ => format!("rank {writer} to {reader}: {evidence}"),
    };
    let lags = if class == Class::Never { Vec::new() } else { lags };
    let operations = u64::from(rounds) + late;
    Ok(Outcome { operations, stale: late, lags, ..Outcome::new(class, evidence) })
}

/// Reason why a change was not tried.
enum Stop {
    Failed(&'static str, usize, i32),
    /// The file that the change applies to was not seen within these nanoseconds.
    Unseen(u64),
}

fn one_change(
    session: &mut Session<'_>,
    change: Change,
    (writer, reader): (usize, usize),
    (name, other): (u32, u32),
) -> Result<Result<super::session::Waited, Stop>, CheckError> {
    let patience = session.patience;
    let create = Ask::Name { name, act: Act::Create };
    let resize = |bytes| Ask::Name { name, act: Act::Resize(bytes) };
    let (before, there) = match change {
        Change::Create | Change::List => (Vec::new(), name),
        Change::Extend
        | Change::Chmod
        | Change::Rename
        | Change::Remove
        | Change::ListRemoved
        | Change::OpenRemoved => (vec![create], name),
        Change::Truncate | Change::Replace => (vec![create, resize(SIZE)], name),
        Change::RenameOver | Change::OpenRenamedOver => {
            (vec![create, resize(SIZE), Ask::Name { name: other, act: Act::Create }], other)
        }
    };
    if !before.is_empty() {
        for ask in before {
            if let Err(errno) = session.ask(writer, ask)? {
                return Ok(Err(Stop::Failed("create", writer, errno)));
            }
        }
        let since_ns = now_ns();
        let waited = session.wait_for(since_ns, patience, &mut |session| {
            look(session, reader, there, &|found| found.is_some())
        })?;
        match waited {
            Ok(waited) if waited.lag_ns.is_some() => {}
            Ok(_) => return Ok(Err(Stop::Unseen(now_ns() - since_ns))),
            Err(errno) => return Ok(Err(Stop::Failed("stat", reader, errno))),
        }
    }
    // The reader looks before the change: its answer afterwards may come from its cache.
    if let Err(errno) = sees(session, change, reader, (name, other))? {
        return Ok(Err(Stop::Failed("stat", reader, errno)));
    }
    let acts = match change {
        Change::Create | Change::List => vec![Act::Create],
        Change::Extend => vec![Act::Resize(SIZE)],
        Change::Truncate => vec![Act::Resize(LESS)],
        Change::Chmod => vec![Act::Chmod(MODE)],
        Change::Rename | Change::RenameOver | Change::OpenRenamedOver => vec![Act::RenameTo(other)],
        Change::Remove | Change::ListRemoved | Change::OpenRemoved => vec![Act::Remove],
        Change::Replace => vec![Act::Remove, Act::Create, Act::Resize(LESS)],
    };
    for act in acts {
        if let Err(errno) = session.ask(writer, Ask::Name { name, act })? {
            return Ok(Err(Stop::Failed("change a file", writer, errno)));
        }
    }
    let waited = session.wait_for(now_ns(), patience, &mut |session| {
        sees(session, change, reader, (name, other))
    })?;
    Ok(waited.map_err(|errno| Stop::Failed("stat", reader, errno)))
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
        Change::List | Change::ListRemoved => {
            let is_there = change == Change::List;
            let answer = session.ask(reader, Ask::Name { name, act: Act::List })?;
            Ok(answer.map(|it| matches!(it, Answer::Listed(listed) if listed == is_there)))
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
        Change::OpenRemoved => opened(session, reader, name, &|it| it.is_none()),
        Change::Replace => opened(session, reader, name, &|it| is(&|it| it.bytes == LESS, it)),
    }
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
