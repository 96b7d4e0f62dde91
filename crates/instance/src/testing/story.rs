//! A case in readable form: which operations were in progress, and which parts of them survived.

use std::fmt::Write as _;

use super::case::{Case, HurtKind};
use super::history::{Choices, Event, Kept, Lost, Playback, Write};
use super::image::{SECTOR_BYTES, sectors};
use super::oracle::Violation;
use super::rows::Mark;
use crate::block::{self, get};

impl Case {
    /// Returns the operations of the case, one per line, and its outcome.
    pub fn story(&self, violation: &Violation) -> String {
        let mut out = String::new();
        let _ =
            writeln!(out, "{}: the power goes before event {}", self.setting.name(), self.cut.cut);
        let playback = Playback::until(&self.history, self.cut.cut);
        self.tell(&playback, &self.cut.lost, &mut out);
        for hurt in &self.hurt {
            let what = match hurt.kind {
                HurtKind::Rot(_) => "a bit has flipped",
                HurtKind::Unreadable => "cannot be read",
            };
            let _ = writeln!(out, "  {}: {what}", self.place(hurt.disk, hurt.sector));
        }
        if self.recoveries.is_empty() {
            let _ = writeln!(out, "recovery goes through");
        }
        self.tell_recoveries(&mut out);
        let _ = writeln!(out, "{violation}");
        out
    }

    /// Returns every event up to the cut, one per line.
    pub fn listing(&self) -> String {
        let mut out = String::new();
        for (index, event) in self.history.events[..self.cut.cut].iter().enumerate() {
            let _ = match event {
                Event::Write(write) => {
                    let Write { number, disk, offset, data, durable, by } = &**write;
                    let place = self.place(*disk, (offset / SECTOR_BYTES as u64) as u32);
                    let kind = if *durable { "durable write" } else { "write" };
                    let bytes = data.len();
                    writeln!(
                        out,
                        "{index} {kind} {number} of {by} to {place}, {bytes} bytes{}",
                        content(&place, data)
                    )
                }
                Event::Written { write, failed } => {
                    let end = if *failed { "failed" } else { "ended" };
                    writeln!(out, "{index} write {write} {end}")
                }
                Event::SyncBegins { disk } => writeln!(out, "{index} sync of disk {disk} begins"),
                Event::Synced { disk, since, failed } => {
                    let end = if *failed { "failed" } else { "ended" };
                    writeln!(out, "{index} sync of disk {disk} from {since} {end}")
                }
                Event::Mark(Mark::Opened { .. }) => writeln!(out, "{index} opened"),
                Event::Mark(mark) => writeln!(out, "{index} {mark:?}"),
            };
        }
        out
    }

    fn tell_recoveries(&self, out: &mut String) {
        let mut left = self.start();
        let mut expected = self.expected.clone();
        expected.follow(&self.history.events[..self.cut.cut]);
        let judge = self.judge(&expected);
        for cut in &self.recoveries {
            let Ok(recovered) = self.setting.recover(left.disks.clone()) else { return };
            let mut playback = Playback::new(&recovered.history);
            let at = cut.cut.min(recovered.history.events.len());
            playback.advance(at);
            let of = recovered.history.events.len();
            let _ = writeln!(out, "the power goes in the recovery before event {at} of {of}");
            self.tell(&playback, &cut.lost, out);
            judge.after_cut(&mut left, &playback, &cut.lost);
        }
        if !self.recoveries.is_empty() {
            let _ = writeln!(out, "the next recovery goes through");
        }
    }

    /// Describes the writes that lost something.
    fn tell(&self, playback: &Playback<'_>, lost: &[Lost], out: &mut String) {
        let choices = playback.choices();
        let mut arrived = 0;
        for (write, ended) in playback.pending() {
            let gone: Vec<&Lost> =
                lost.iter().filter(|lost| is_in(write, lost, &choices)).collect();
            if gone.is_empty() {
                arrived += 1;
                continue;
            }
            let all = write.data.len() / SECTOR_BYTES;
            let first = (write.offset / SECTOR_BYTES as u64) as u32;
            let state = if ended { "not durable" } else { "under way" };
            let Write { number, by, .. } = write;
            let place = self.place(write.disk, first);
            let _ = write!(out, "  write {number} of {by} to {place}, {all} sectors, {state}: ");
            let mut parts: Vec<String> = gone
                .chunk_by(|a, b| a.kept == b.kept && a.sector + 1 == b.sector)
                .map(|run| {
                    let from = run[0].sector - first;
                    let to = from + run.len() as u32 - 1;
                    let range = if from == to { from.to_string() } else { format!("{from}-{to}") };
                    format!("sector {range} holds {}", show_kept(run[0].kept))
                })
                .collect();
            if gone.len() < all {
                parts.push("the rest arrived".to_owned());
            }
            let _ = writeln!(out, "{}", parts.join(", "));
        }
        if arrived > 0 {
            let _ = writeln!(out, "  {arrived} other writes that were not durable arrived");
        }
    }

    fn place(&self, disk: u8, sector: u32) -> String {
        let offset = u64::from(sector) * SECTOR_BYTES as u64;
        match self.atlas.find(usize::from(disk), offset) {
            Some(found) => format!("disk {disk}, file {}, block {}", found.file, found.block),
            None => format!("disk {disk}, byte {offset} (header or map)"),
        }
    }
}

/// Describes redo and control blocks by their content.
fn content(place: &str, data: &[u8]) -> String {
    if place.contains("file redo") {
        let (address, first, index) = (get(data, 8), get(data, 16), get(data, 24));
        let (index, blocks) = (index as u32, index >> 32);
        format!(", address {address:#x}, first {first:#x}, block {index} of {blocks}")
    } else if place.contains("file control") {
        let word = |at: usize| get(data, at * 8);
        let (sequence, checkpoint, first) = (word(11), word(12), word(13));
        let (log, offset) = (word(14), word(15));
        format!(", {sequence}: checkpoint {checkpoint:#x}, mark {first:#x} at {log}:{offset:#x}")
    } else if place.contains("file d") {
        format!(", version {} of {:#x}", block::version(data), block::scn(data))
    } else {
        String::new()
    }
}

fn is_in(write: &Write, lost: &Lost, choices: &Choices) -> bool {
    write.disk == lost.disk
        && sectors(write.offset, write.data.len()).contains(&lost.sector)
        && choices.get(&(lost.disk, lost.sector)).is_some_and(|w| w.contains(&write.number))
}

fn show_kept(kept: Kept) -> String {
    match kept {
        Kept::Durable => "what was durable".to_owned(),
        Kept::Write(number) => format!("what write {number} put there"),
        Kept::Garbage(_) => "garbage".to_owned(),
    }
}
