//! Events on a machine, and what its disks may hold if power is lost at any point.
//!
//! A sync makes durable everything written before it began, and nothing else. Each of the other
//! sectors independently holds either the durable content or any later one, in whatever order: a
//! volatile cache is written back as the disk likes. A sector that was being written may be
//! garbage.

use std::collections::{BTreeMap, BTreeSet};
use std::iter;
use std::sync::Arc;

use blockstone_base::rng::{self, Rng};

use super::image::{Image, SECTOR_BYTES, sectors};
use super::rows::Mark;

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Event {
    /// A write begins; it is numbered among all writes.
    Write(Arc<Write>),
    /// The write ended. A failed one left some part of itself, which is what its data is.
    Written {
        write: u32,
        failed: bool,
    },
    SyncBegins {
        disk: u8,
    },
    /// A sync that started at event number `since` ended. A failed one dropped the data it covered:
    /// it may or may not be there, and no later sync makes it durable.
    Synced {
        disk: u8,
        since: u32,
        failed: bool,
    },
    /// Information about the sessions.
    Mark(Mark),
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Write {
    pub number: u32,
    pub disk: u8,
    pub offset: u64,
    pub data: Vec<u8>,
    /// Whether it is durable once it has ended.
    pub durable: bool,
    /// Name of the thread that wrote.
    pub by: String,
}

/// One life of a machine: the content of its disks at power-on, and all events since.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct History {
    pub base: Vec<Image>,
    pub events: Vec<Event>,
}

/// Content, after a power loss, of a sector that does not hold its newest content.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kept {
    /// The durable content.
    Durable,
    /// The content written by this write.
    Write(u32),
    /// Bytes drawn from this seed.
    Garbage(u64),
}

/// A sector whose newest content was not written to the medium.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Lost {
    pub disk: u8,
    pub sector: u32,
    pub kept: Kept,
}

/// The contents that each sector may have, newest last: the writes since it was last durable.
pub type Choices = BTreeMap<(u8, u32), Vec<u32>>;

impl History {
    /// Returns the events before which a power loss can have a different outcome than before the
    /// previous event: all except those after the end of a write that is not durable in itself, and
    /// after the beginning of a sync.
    pub fn cuts(&self) -> Vec<usize> {
        let mut volatile = BTreeSet::new();
        let changes = |event: &Event| match event {
            Event::Write(write) if write.durable => true,
            Event::Write(write) => volatile.insert(write.number),
            Event::Written { write, .. } => !volatile.contains(write),
            Event::SyncBegins { .. } | Event::Mark(_) => false,
            Event::Synced { .. } => true,
        };
        let each = self.events.iter().map(changes);
        let behind: Vec<usize> =
            each.zip(1..).filter_map(|(changes, at)| changes.then_some(at)).collect();
        iter::once(0).chain(behind).collect()
    }
}

/// A history followed up to some event.
#[derive(Debug)]
pub struct Playback<'a> {
    history: &'a History,
    at: usize,
    durable: Vec<Image>,
    /// Number of the durable write, by disk and sector; zero for none, as writes count from one.
    versions: Vec<Vec<u32>>,
    pending: Vec<Pending>,
}

#[derive(Debug)]
struct Pending {
    write: Arc<Write>,
    ended: Option<usize>,
    dropped: bool,
}

impl<'a> Playback<'a> {
    pub fn new(history: &'a History) -> Self {
        let versions = |image: &Image| vec![0; image.size_bytes() as usize / SECTOR_BYTES];
        Self {
            history,
            at: 0,
            durable: history.base.clone(),
            versions: history.base.iter().map(versions).collect(),
            pending: Vec::new(),
        }
    }

    /// Follows `history` up to a power loss before event `cut`.
    pub fn until(history: &'a History, cut: usize) -> Self {
        let mut playback = Self::new(history);
        playback.advance(cut);
        playback
    }

    /// Continues up to a power loss before event `cut`.
    pub fn advance(&mut self, cut: usize) {
        while self.at < cut {
            let at = self.at;
            self.at += 1;
            match &self.history.events[at] {
                Event::Write(write) => {
                    let write = Arc::clone(write);
                    self.pending.push(Pending { write, ended: None, dropped: false });
                }
                Event::Written { write, .. } => self.end(*write, at),
                Event::Synced { disk, since, failed } => {
                    let covered = |pending: &Pending| {
                        pending.write.disk == *disk
                            && !pending.dropped
                            && pending.ended.is_some_and(|ended| ended < *since as usize)
                    };
                    if *failed {
                        let dropped = self.pending.iter_mut().filter(|pending| covered(pending));
                        dropped.for_each(|pending| pending.dropped = true);
                    } else {
                        let done: Vec<Pending> =
                            self.pending.extract_if(.., |pending| covered(pending)).collect();
                        for pending in &done {
                            self.make_durable(&pending.write);
                        }
                    }
                }
                Event::SyncBegins { .. } | Event::Mark(_) => {}
            }
        }
    }

    fn end(&mut self, write: u32, at: usize) {
        let found = self.pending.iter().position(|pending| pending.write.number == write);
        let index = found.expect("a write ends once, after it began");
        if self.pending[index].write.durable {
            let pending = self.pending.remove(index);
            self.make_durable(&pending.write);
        } else {
            self.pending[index].ended = Some(at);
        }
    }

    fn make_durable(&mut self, write: &Write) {
        let disk = usize::from(write.disk);
        let range = sectors(write.offset, write.data.len());
        let versions = &mut self.versions[disk][range.start as usize..range.end as usize];
        if versions.iter().all(|version| *version < write.number) {
            versions.fill(write.number);
            self.durable[disk].write(write.offset, &write.data);
            return;
        }
        for ((sector, bytes), version) in parts(write).zip(versions) {
            if *version < write.number {
                *version = write.number;
                self.durable[disk].write_sector(sector, bytes);
            }
        }
    }

    /// Returns every sector whose content is uncertain, with the writes that it may hold instead of
    /// the durable content.
    pub fn choices(&self) -> Choices {
        let mut choices = Choices::new();
        for Pending { write, .. } in &self.pending {
            for (sector, _) in parts(write) {
                if self.versions[usize::from(write.disk)][sector as usize] < write.number {
                    choices.entry((write.disk, sector)).or_default().push(write.number);
                }
            }
        }
        choices
    }

    /// Returns the writes that are not durable, and whether each had ended.
    pub fn pending(&self) -> impl Iterator<Item = (&Write, bool)> {
        self.pending.iter().map(|pending| (&*pending.write, pending.ended.is_some()))
    }

    /// Returns the writes that are durable.
    pub fn past(&self) -> impl Iterator<Item = &Write> {
        let started = self.history.events[..self.at].iter().filter_map(|event| match event {
            Event::Write(write) => Some(&**write),
            _ => None,
        });
        started.filter(|write| !self.pending.iter().any(|p| p.write.number == write.number))
    }

    /// Returns the content that is durable in any case.
    pub fn durable(&self) -> &[Image] {
        &self.durable
    }

    /// Returns the disks after the power loss: the newest content everywhere except in the sectors
    /// `lost`.
    pub(super) fn image(&self, choices: &Choices, lost: &[Lost]) -> Vec<Image> {
        let mut disks = self.durable.clone();
        let by_number: BTreeMap<u32, &Write> =
            self.pending.iter().map(|pending| (pending.write.number, &*pending.write)).collect();
        let content = |number: u32, sector: u32| {
            let write = by_number[&number];
            let first = (write.offset / SECTOR_BYTES as u64) as u32;
            let at = (sector - first) as usize * SECTOR_BYTES;
            &write.data[at..at + SECTOR_BYTES]
        };
        let mut lost: Vec<&Lost> = lost.iter().collect();
        lost.sort_unstable_by_key(|lost| (lost.disk, lost.sector));
        for ((disk, sector), writes) in choices {
            let at = lost.binary_search_by_key(&(*disk, *sector), |l| (l.disk, l.sector));
            let newest = writes.last().expect("a sector in doubt has a write");
            let image = &mut disks[usize::from(*disk)];
            match at.map_or(Kept::Write(*newest), |at| lost[at].kept) {
                Kept::Durable => {}
                // At an earlier cut than the one it was drawn for, the write may not have started.
                Kept::Write(number) if !writes.contains(&number) => {}
                Kept::Write(number) => image.write_sector(*sector, content(number, *sector)),
                Kept::Garbage(seed) => {
                    let mut bytes = [0; SECTOR_BYTES];
                    rng::fill(seed, &mut bytes);
                    image.write_sector(*sector, &bytes);
                }
            }
        }
        disks
    }
}

fn parts(write: &Write) -> impl Iterator<Item = (u32, &[u8])> {
    sectors(write.offset, write.data.len()).zip(write.data.chunks_exact(SECTOR_BYTES))
}

/// How a power loss treats writes that are not durable.
#[derive(Clone, Copy, Debug)]
enum Temper {
    /// All of them arrive, or none.
    All(bool),
    /// Each write arrives or does not.
    Writes,
    /// Each sector arrives or does not.
    Sectors,
    /// The latest writes arrive, the earlier ones do not.
    Latest,
    /// One disk loses everything, the others lose nothing.
    Disk,
    /// One write is torn, all others arrive.
    Torn,
}

/// Draws the sectors whose newest content does not arrive.
pub fn draw(choices: &Choices, disks: usize, rng: &mut Rng) -> Vec<Lost> {
    let temper = match rng.below(16) {
        0 => Temper::All(true),
        1 => Temper::All(false),
        2..6 => Temper::Writes,
        6..9 => Temper::Sectors,
        9..11 => Temper::Latest,
        11..13 => Temper::Disk,
        _ => Temper::Torn,
    };
    let (salt, garbage) = (rng.next_u64(), rng.below(4) == 0);
    let writes: Vec<u32> = {
        let mut writes: Vec<u32> = choices.values().flatten().copied().collect();
        writes.sort_unstable();
        writes.dedup();
        writes
    };
    let Some(&pivot) = writes.get(rng.below(writes.len().max(1) as u64) as usize) else {
        return Vec::new();
    };
    let unlucky = rng.below(disks as u64) as u8;
    let mut lost = Vec::new();
    for ((disk, sector), candidates) in choices {
        let arrives = |write: u32, draw: u64| match temper {
            Temper::All(all) => all,
            Temper::Writes => rng::mix(salt ^ u64::from(write)) & 1 == 0,
            Temper::Sectors => draw & 1 == 0,
            Temper::Latest => write >= pivot,
            Temper::Disk => *disk != unlucky,
            Temper::Torn => write != pivot || draw & 1 == 0,
        };
        let newest = candidates.len() - 1;
        let found = candidates.iter().rposition(|write| arrives(*write, rng.next_u64()));
        if found == Some(newest) {
            continue;
        }
        let kept = found.map_or(Kept::Durable, |at| Kept::Write(candidates[at]));
        let torn = garbage && rng.below(8) == 0;
        let kept = if torn { Kept::Garbage(rng.next_u64()) } else { kept };
        lost.push(Lost { disk: *disk, sector: *sector, kept });
    }
    lost
}
