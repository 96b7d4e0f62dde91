//! A file that one rank has open, while another removes it and makes another of its name.

use crate::coherence::findings::Class;
use blockstone_sys::clock::now_ns;
use rustix::io::Errno;

use super::ask::{Act, Answer, Ask, Records};
use super::session::{Outcome, REFUSED, Session, Tried};
use crate::CheckError;

const RECORDS: u32 = 100;
/// Content of the file before its removal.
const OLD: Records = Records { first: RECORDS, second: 0, damaged: 0 };

/// Has one rank hold a file open, while another removes it and makes a new one of its name, which
/// may get its inode and its blocks: the open file must still read as it was, or be refused
/// (ESTALE), and never as the new file.
pub fn removed(
    session: &mut Session<'_>,
    (writer, reader): (usize, usize),
) -> Result<Outcome, CheckError> {
    let rounds = session.rounds.clamp(2, 10) / 2;
    let (mut wrong, mut refused, mut same_inode) = (0_u64, 0, 0);
    let mut evidence = String::new();
    let stale = Errno::STALE.raw_os_error();
    for _ in 0..rounds {
        let name = session.name();
        let found = match one(session, name, (writer, reader))? {
            Ok(found) => found,
            Err(outcome) => return Ok(outcome),
        };
        same_inode += u64::from(found.is_reused);
        match found.read {
            Ok(records) if records == OLD => {}
            Err(errno) if errno == stale => refused += 1,
            Err(errno) => return Ok(Outcome::failed("read", reader, errno)),
            Ok(Records { first, second, damaged }) => {
                wrong += 1;
                evidence = format!(
                    "rank {writer} to {reader}: of {RECORDS} records of a removed file that is \
                     open, {first} are read, with {second} of the new file and {damaged} of neither"
                );
            }
        }
    }
    if wrong == 0 {
        let how = if refused > 0 { format!(", {refused} of them ESTALE") } else { String::new() };
        evidence = format!("{rounds} removed files a direction read as they were{how}");
    }
    evidence =
        format!("{evidence}; {same_inode} new files had the inode number of the removed one");
    let class = if wrong == 0 { Class::Linearizable } else { Class::Torn };
    Ok(Outcome { operations: rounds.into(), stale: wrong, ..Outcome::new(class, evidence) })
}

/// Result for one open file after its removal.
struct Held {
    /// The records, or the error of the kernel.
    read: Result<Records, i32>,
    /// Whether the new file has the inode number of the removed one.
    is_reused: bool,
}

fn one(
    session: &mut Session<'_>,
    name: u32,
    (writer, reader): (usize, usize),
) -> Result<Result<Held, Outcome>, CheckError> {
    let patience = session.patience;
    let act = |act| Ask::Name { name, act };
    let make = |session: &mut Session<'_>, tag| -> Result<Option<Outcome>, CheckError> {
        for ask in [act(Act::Create), act(Act::Append { tag, records: RECORDS })] {
            if let Err(errno) = session.ask(writer, ask)? {
                return Ok(Some(Outcome::failed("create", writer, errno)));
            }
        }
        Ok(None)
    };
    if let Some(outcome) = make(session, 1)? {
        return Ok(Err(outcome));
    }
    let mut error = None;
    let waited = session.wait_for(now_ns(), patience, &mut |session| {
        let _ = session.ask(reader, act(Act::Release))?;
        let held = session.ask(reader, act(Act::Hold))?;
        error = held.err();
        let read = records(session, reader, act(Act::CountHeld))?;
        Ok(Ok(read == Ok(OLD)))
    })?;
    if !waited.is_ok_and(|it| it.lag_ns.is_some()) {
        let _ = session.ask(reader, act(Act::Release))?;
        let _ = session.ask(writer, act(Act::Remove))?;
        let evidence = format!("rank {reader} does not see the file of rank {writer}");
        let errno = error.filter(|errno| *errno != Errno::NOENT.raw_os_error());
        return Ok(Err(Outcome { errno, ..Outcome::new(Class::Unknown, evidence) }));
    }
    let before = session.inode(writer, name)?;
    if let Err(errno) = session.ask(writer, act(Act::Remove))? {
        return Ok(Err(Outcome::failed("remove", writer, errno)));
    }
    if let Some(outcome) = make(session, 2)? {
        return Ok(Err(outcome));
    }
    let is_reused = before.is_some() && before == session.inode(writer, name)?;
    let read = records(session, reader, act(Act::CountHeld))?;
    let _ = session.ask(reader, act(Act::Release))?;
    let _ = session.ask(writer, act(Act::Remove))?;
    Ok(Ok(Held { read, is_reused }))
}

fn records(session: &mut Session<'_>, rank: usize, ask: Ask) -> Tried<Records> {
    let answer = session.ask(rank, ask)?;
    Ok(answer.and_then(|it| match it {
        Answer::Records(records) => Ok(records),
        _ => Err(REFUSED),
    }))
}
