//! Visibility of a truncation to others.

use crate::coherence::findings::{Class, ReadMode, WriteMode};
use blockstone_base::units::format_ns;
use blockstone_sys::clock::now_ns;

use super::ask::{Ask, BLOCKS};
use super::data::{LATE_ROUNDS, no_writer};
use super::history::INITIAL;
use super::session::{Outcome, Session};
use super::stamp::Content;
use crate::CheckError;

/// Has one rank cut off a block with the end of the file and restore the length of the file: does
/// another rank still read what was there?
pub fn all(session: &mut Session<'_>) -> Result<(), CheckError> {
    let ranks = session.opened.clone();
    for &read in ReadMode::ALL {
        if session.is_over() {
            return Ok(());
        }
        let case = format!("truncate/{}", read.name());
        session.observer.phase(&case);
        let outcome = session.both_ways(&ranks, |session, pair| cut_off(session, read, pair))?;
        session.push(case, outcome.unwrap_or_else(no_writer));
    }
    Ok(())
}

pub fn cut_off(
    session: &mut Session<'_>,
    read: ReadMode,
    (writer, reader): (usize, usize),
) -> Result<Outcome, CheckError> {
    if let Err(outcome) = session.open_pair(writer, reader)? {
        return Ok(outcome);
    }
    let block = BLOCKS - 1;
    let rounds = session.rounds.clamp(2, 2 * LATE_ROUNDS) / 2;
    let mut worst: Option<(Class, u64)> = None;
    let (mut lags, mut late) = (Vec::new(), 0);
    for _ in 0..rounds {
        let version = session.versions(1);
        if let Err(errno) = session.write(writer, WriteMode::Fdatasync, block, version)? {
            return Ok(Outcome::failed("write", writer, errno));
        }
        // The reader may later read again what it caches now.
        let _ = session.ask(reader, Ask::Drop { block })?;
        match session.read(reader, read, block)? {
            Ok((Content::Whole(found), _)) if found == version => {}
            Ok(_) => {
                let evidence = format!("rank {reader} did not read what was to be cut off");
                return Ok(Outcome::new(Class::Unknown, evidence));
            }
            Err(errno) => return Ok(Outcome::failed("read", reader, errno)),
        }
        if let Err(errno) = session.ask(writer, Ask::Cut)? {
            return Ok(Outcome::failed("truncate", writer, errno));
        }
        let mut is_torn = false;
        let waited = session.wait_to_see(read, now_ns(), &mut |session, mode| {
            let found = session.read(reader, mode, block)?;
            Ok(found.map(|(content, _)| {
                let is_known = [version, INITIAL].map(Content::Whole).contains(&content);
                is_torn |= !is_known;
                is_torn || content == Content::Whole(INITIAL)
            }))
        })?;
        let (class, waited) = match waited {
            Ok(found) => found,
            Err(errno) => return Ok(Outcome::failed("read", reader, errno)),
        };
        late += waited.late;
        lags.extend(waited.lag_ns);
        let class = if is_torn { Class::Torn } else { class };
        if worst.is_none_or(|(known, _)| class > known) {
            worst = Some((class, waited.lag_ns.unwrap_or(session.patience.as_nanos() as u64)));
        }
        if class >= Class::Never {
            break;
        }
    }
    let (class, ns) = worst.unwrap_or((Class::Unknown, 0));
    let after = format_ns(ns as f64);
    let what = match class {
        Class::Linearizable => format!("{rounds} times a direction zeros were read at once"),
        Class::Reopen => "what was cut off was read until the file was opened again".to_owned(),
        Class::Never => format!("what was cut off was still read after {after}"),
        Class::Torn => "neither zeros nor what was cut off was read".to_owned(),
        _ => format!("what was cut off was read for {after}"),
    };
    let evidence = match class {
        Class::Linearizable => what,
        _ => format!("rank {writer} to {reader}: {what}"),
    };
    let lags = if class == Class::Never { Vec::new() } else { lags };
    let operations = u64::from(rounds) * 2 + late;
    Ok(Outcome { operations, stale: late, lags, ..Outcome::new(class, evidence) })
}
