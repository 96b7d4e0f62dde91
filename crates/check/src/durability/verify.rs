//! Compares the remains after a cut with what the witness knows.

use std::collections::BTreeMap;
use std::path::Path;

use crate::durability::findings::{
    Description, DurabilityFindings, Pattern, Points, Stage, Stream, StreamFindings, Testimony,
};
use blockstone_measure::Observer;

use super::chain::Chain;
use super::client::Client;
use super::examine::of_chain;
use super::fates::{self, Known, Observed};
use super::found::{self, Content};
use super::layout::{self, BLOCK_MAX, WINDOW};
use super::ledger::{CONCLUSIVE, LOST};
use super::medium::{Medium, StreamReader, stamp_of};
use crate::CheckError;

/// Compares what is on `path` with what the witness knows, reports the outcome to it, and removes
/// what was written to a directory. Fails if the witness cannot be reached, or nothing on the path
/// can belong to a run that it knows.
pub fn verify(
    path: &Path,
    witness: &str,
    observer: &mut dyn Observer,
) -> Result<DurabilityFindings, CheckError> {
    let chain = Chain::of(Path::new("/"), path)?;
    let medium = Medium::find(Path::new(&chain.target.path), chain.is_device())?;
    let mut client = Client::connect(witness)?;
    let found = medium.run()?;
    let testimony = match (found, client.ask(found.unwrap_or(0))?) {
        (Some(_), Some(known)) => newest(known, &mut client, &chain)?,
        (Some(_), None) => return Err(CheckError::UnknownRun { path: path.to_owned() }),
        (None, Some(last)) if is_of_device(&last, &chain) => last,
        (None, _) => return Err(CheckError::NoTrace { path: path.to_owned() }),
    };
    observer.phase("verify");
    let mut notes = Vec::new();
    if found != Some(testimony.run) {
        notes.push(format!(
            "Not even the mark of the run was there, which was flushed before it, unless this is \
             another device: what follows is compared with the last run that the witness knows, \
             which wrote to {}.",
            testimony.description.path
        ));
    }
    let mut streams = Vec::new();
    let mut unreadable = None;
    for (number, (stream, points)) in
        (0..).zip(testimony.description.streams.iter().zip(&testimony.points))
    {
        if observer.interrupted().is_some() {
            break;
        }
        let reader = StreamReader::new(&medium, number)?;
        let one = One { run: testimony.run, number, stream: *stream, points };
        streams.push(one.judge(reader, &mut unreadable));
    }
    notes.extend(unreadable.map(|why| format!("Some blocks could not be read: {why}.")));
    let conclusive = fates::classify(&mut streams);
    let mut findings = of_chain(Stage::Verified, path, chain);
    findings.signal = observer.interrupted().map(str::to_owned);
    if findings.signal.is_none() {
        let lost = streams.iter().any(StreamFindings::is_broken);
        // A loss counts whatever the controls say.
        let bits = if lost { CONCLUSIVE | LOST } else { u64::from(conclusive) * CONCLUSIVE };
        client.outcome(testimony.run, bits)?;
        findings.cuts = client.ask(testimony.run)?.map(|it| it.cuts).unwrap_or_default();
        if let Err(error) = medium.remove() {
            notes.push(format!("What was written could not be removed: {error}."));
        }
    }
    findings.streams = streams;
    findings.notes = notes;
    Ok(findings)
}

/// Returns the newest run of this path. Each is marked, and the mark flushed, before the witness
/// knows of it: if an older mark is found, that of the newer one was lost.
fn newest(found: Testimony, client: &mut Client, chain: &Chain) -> Result<Testimony, CheckError> {
    if found.newest == found.run {
        return Ok(found);
    }
    let is_here = |it: &Testimony| {
        let Description { host, path, device_bytes, .. } = &it.description;
        (host, path, *device_bytes) == (&chain.hostname, &chain.target.path, bytes_of(chain))
    };
    Ok(client.ask(found.newest)?.filter(is_here).unwrap_or(found))
}

/// Returns whether a device without a mark can be the one of this run.
fn is_of_device(testimony: &Testimony, chain: &Chain) -> bool {
    let bytes = testimony.description.device_bytes;
    bytes.is_some() && bytes == bytes_of(chain)
}

fn bytes_of(chain: &Chain) -> Option<u64> {
    chain.is_device().then_some(chain.target.free_bytes)
}

struct One<'a> {
    run: u64,
    number: u16,
    stream: Stream,
    points: &'a Points,
}

impl One<'_> {
    fn judge(
        &self,
        mut reader: StreamReader<'_>,
        unreadable: &mut Option<String>,
    ) -> StreamFindings {
        let hashes: BTreeMap<u64, u64> = self.points.newest.iter().copied().collect();
        let (pattern, last) = (self.stream.pattern, self.points.last);
        let observe = |sequence: u64| {
            let mut place = layout::place(self.number, pattern, sequence);
            let stamp = stamp_of(self.run, self.number, &place, sequence);
            let mut block_bytes = place.bytes;
            if pattern == Pattern::Rename {
                // The file may belong to a later write of a different size.
                place.bytes = BLOCK_MAX as u64;
            }
            let content = match reader.read(&place) {
                Ok(bytes) => {
                    if pattern == Pattern::Rename
                        && let Some(found) = found::sequence(bytes)
                    {
                        block_bytes = layout::block_bytes(found);
                    }
                    found::content(bytes, block_bytes as usize, &stamp)
                }
                Err(error) => {
                    let text = error.to_string();
                    unreadable.get_or_insert(text.lines().next().unwrap_or_default().to_owned());
                    Content::Nothing
                }
            };
            Observed { sequence, hash: hashes.get(&sequence).copied(), content }
        };
        let blocks: Vec<Observed> =
            (layout::first_checked(pattern, last)..=last).map(observe).collect();
        let known = Known { last, started: last.saturating_add(WINDOW + 1) };
        fates::judge(self.stream, known, &blocks)
    }
}

#[cfg(test)]
mod tests {
    use crate::durability::findings::Method;

    use super::super::medium::StreamWriter;
    use super::*;

    #[test]
    fn writes_that_the_witness_did_not_hear_of_are_no_damage() {
        for pattern in Pattern::ALL {
            let dir = tempfile::tempdir().unwrap();
            let medium = Medium::begin(dir.path(), None, 7).unwrap();
            let stream = Stream { method: Method::Fsync, pattern: *pattern };
            let mut writer = StreamWriter::prepare(&medium, 7, (0, stream)).unwrap();
            let mut newest = Vec::new();
            for sequence in 1..=9 {
                let hash = writer.write(sequence).unwrap();
                let points = Points { last: sequence - 1, newest: newest.clone() };
                newest.push((sequence, hash));
                let reader = StreamReader::new(&medium, 0).unwrap();
                let one = One { run: 7, number: 0, stream, points: &points };
                let found = one.judge(reader, &mut None);
                let bad = found.lost + found.torn + found.misplaced + found.torn_in_flight;
                assert_eq!(bad, 0, "{sequence}: {}", found.evidence);
            }
        }
    }
}
