//! One possible outcome: a history that is cut, the content of its disks at that point, and the
//! cuts of the recoveries that follow. It is judged the same way each time.

use std::collections::BTreeSet;
use std::sync::Arc;

use super::history::{Choices, Event, History, Lost, Playback};
use super::image::{Image, SECTOR_BYTES, sectors};
use super::oracle::{Expected, Violation, same};
use super::rows::{Mark, ROWS, Row};
use super::setting::{BLOCK_BYTES, Recovered, Setting, block_of, parse};
use crate::block;
use crate::group::locate::Atlas;
use crate::spec::TornProtection;

/// Damage that was not caused by a write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Hurt {
    pub disk: u8,
    pub sector: u32,
    pub kind: HurtKind,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HurtKind {
    /// One bit is flipped.
    Rot(u32),
    /// Reads fail until it is written.
    Unreadable,
}

/// A power loss before event `cut` of a history.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Cut {
    pub cut: usize,
    pub lost: Vec<Lost>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Case {
    pub setting: Setting,
    pub history: Arc<History>,
    pub cut: Cut,
    pub hurt: Vec<Hurt>,
    /// Power losses of the recoveries, one after the other; the last recovery completes.
    pub recoveries: Vec<Cut>,
    /// Expectation at the start of the history.
    pub expected: Expected,
    /// Rows that earlier histories may have torn, until the instance opens.
    pub torn: BTreeSet<u32>,
    pub(super) atlas: Arc<Atlas>,
}

/// State after a power loss, and what the instance may report about it.
#[derive(Clone, Debug)]
pub struct Left {
    pub disks: Vec<Image>,
    /// Rows whose block may be damaged.
    pub may_be_damaged: BTreeSet<u32>,
    /// Whether the instance may refuse to open.
    pub may_refuse: bool,
}

impl Case {
    /// Judges the case. The error describes what is wrong with its outcome.
    ///
    /// # Panics
    /// If the case contradicts itself.
    pub fn run(&self) -> Result<Recovered, Violation> {
        let mut left = self.start();
        let mut expected = self.expected.clone();
        expected.follow(&self.history.events[..self.cut.cut]);
        let judge = self.judge(&expected);
        if self.recoveries.is_empty() {
            return judge.first(&left);
        }
        let reference = judge.recover(&left)?;
        let mut before = None;
        for cut in &self.recoveries {
            let recovered = before.as_ref().unwrap_or(&reference);
            let at = cut.cut.min(recovered.history.events.len());
            let playback = Playback::until(&recovered.history, at);
            judge.after_cut(&mut left, &playback, &cut.lost);
            before = Some(judge.recover(&left)?);
        }
        let last = before.expect("there is a recovery");
        judge.again(&left, &reference.rows, &last)?;
        Ok(last)
    }

    pub(super) fn judge<'a>(&'a self, expected: &'a Expected) -> Judge<'a> {
        let hurt = self.hurt_copies().collect();
        Judge { setting: self.setting, expected, atlas: &self.atlas, hurt, resyncs: true }
    }

    /// Returns the state after the first power loss.
    pub(super) fn start(&self) -> Left {
        let playback = Playback::until(&self.history, self.cut.cut);
        self.left(&playback, &playback.choices())
    }

    /// Returns that state if the history has already been followed up to the cut.
    pub(super) fn left(&self, playback: &Playback<'_>, choices: &Choices) -> Left {
        let mut disks = playback.image(choices, &self.cut.lost);
        let mut left = Left {
            may_be_damaged: torn(self.setting, &self.atlas, choices),
            may_refuse: false,
            disks: Vec::new(),
        };
        left.may_be_damaged.extend(self.torn_by_failures());
        for hurt in &self.hurt {
            let disk = &mut disks[usize::from(hurt.disk)];
            match hurt.kind {
                HurtKind::Rot(bit) => disk.rot(hurt.sector, bit),
                HurtKind::Unreadable => disk.make_unreadable(hurt.sector),
            }
        }
        if self.setting.copies == 1 {
            left.may_be_damaged.extend(self.hurt_copies().map(|(_, row)| row));
            // Damaged redo, and blocks that cannot be read, are reported when the instance is
            // opened.
            left.may_refuse = !self.hurt.is_empty();
        }
        left.disks = disks;
        left
    }

    /// Returns rows that failed writes before the cut may have torn for good.
    pub(super) fn torn_by_failures(&self) -> BTreeSet<u32> {
        let events = &self.history.events[..self.cut.cut];
        let opened = |event: &Event| matches!(event, Event::Mark(Mark::Opened { .. }));
        let mut torn = self.torn.clone();
        if events.iter().any(opened) {
            torn.clear();
        }
        if self.setting.protection != TornProtection::None {
            return torn;
        }
        let failed = events.iter().filter_map(|event| match event {
            Event::Written { write, failed: true } => Some(*write),
            _ => None,
        });
        for number in failed {
            let writes = events.iter().filter_map(|event| match event {
                Event::Write(write) if write.number == number => Some(write),
                _ => None,
            });
            let sectors = writes.flat_map(|write| {
                let disk = write.disk;
                sectors(write.offset, write.data.len()).map(move |sector| (disk, sector))
            });
            torn.extend(sectors.filter_map(|at| row_at(&self.atlas, at)));
        }
        torn
    }

    /// Returns the disks and rows of damaged copies.
    fn hurt_copies(&self) -> impl Iterator<Item = (usize, u32)> + '_ {
        let copy = |hurt: &Hurt| {
            Some((usize::from(hurt.disk), row_at(&self.atlas, (hurt.disk, hurt.sector))?))
        };
        self.hurt.iter().filter_map(copy)
    }
}

/// Judges the result of recoveries after a power loss.
#[derive(Clone, Debug)]
pub struct Judge<'a> {
    pub setting: Setting,
    pub expected: &'a Expected,
    pub(super) atlas: &'a Atlas,
    /// Disks and rows of copies that may be damaged until they are read.
    hurt: BTreeSet<(usize, u32)>,
    /// Whether absent disks are brought back after a recovery, which takes longer than the
    /// recovery.
    pub(super) resyncs: bool,
}

impl Judge<'_> {
    /// Recovers, and compares the result with the expectation. The error is the first oracle that
    /// is violated.
    pub fn recover(&self, left: &Left) -> Result<Recovered, Violation> {
        let recovered = self.setting.recover(left.disks.clone());
        let recovered = recovered.map_err(|error| Violation::new("opens", error))?;
        self.expected.check(&recovered.rows, &recovered.recovery, &left.may_be_damaged)?;
        Ok(recovered)
    }

    /// Like [`Judge::recover`], plus the conditions after a completed recovery: the copies are
    /// equal, and a second recovery finds the same.
    pub fn first(&self, left: &Left) -> Result<Recovered, Violation> {
        let recovered = match self.recover(left) {
            Err(Violation { oracle: "opens", .. }) if left.may_refuse => {
                return Ok(Recovered::refused());
            }
            other => other?,
        };
        self.copies(&recovered)?;
        if self.resyncs && recovered.offline.contains(&true) {
            let disks = self.setting.resync(recovered.disks.clone());
            let disks = disks.map_err(|error| Violation::new("resync", error))?;
            let offline = vec![false; disks.len()];
            let rows = recovered.rows.clone();
            self.copies(&Recovered { rows, disks, offline, ..Recovered::refused() })?;
        }
        let disks = recovered.disks.clone();
        let second = self.setting.recover(disks);
        let second = second.map_err(|error| Violation::new("opens again", error))?;
        same("second recovery", &recovered.rows, &second.rows, &BTreeSet::new())?;
        if second.recovery.records > 0 {
            let what = format!("it replayed {} records again", second.recovery.records);
            return Err(Violation::new("second recovery", what));
        }
        Ok(recovered)
    }

    /// Compares the result of a recovery, after others were cut, with that of the first one. The
    /// error is the difference.
    pub fn again(&self, left: &Left, first: &[Row], last: &Recovered) -> Result<(), Violation> {
        same("cut recovery", first, &last.rows, &left.may_be_damaged)?;
        self.copies(last)
    }

    /// Changes `left` to the state after a recovery that is cut.
    pub fn after_cut(&self, left: &mut Left, playback: &Playback<'_>, lost: &[Lost]) {
        let choices = playback.choices();
        left.disks = playback.image(&choices, lost);
        left.may_be_damaged.extend(torn(self.setting, self.atlas, &choices));
    }

    /// Checks that every copy of every row on an online disk equals the row that was served.
    fn copies(&self, recovered: &Recovered) -> Result<(), Violation> {
        if self.setting.copies == 1 {
            return Ok(());
        }
        let mut memory = vec![0; BLOCK_BYTES as usize];
        for key in 0..ROWS {
            let Row::Whole { state, scn } = &recovered.rows[key as usize] else { continue };
            let number = block_of(key);
            for (disk, offset) in self.atlas.copies("data", number * BLOCK_BYTES) {
                if recovered.offline[disk] || self.hurt.contains(&(disk, key as u32)) {
                    continue;
                }
                let read = recovered.disks[disk].read(offset, &mut memory);
                let whole =
                    read.is_ok() && block::check(&memory, block::instance(&memory), number).is_ok();
                let served = Row::Whole { state: *state, scn: *scn };
                if !whole || parse(key, &memory) != served {
                    let what =
                        format!("row {key}, block {number}: the copy on disk {disk} differs");
                    return Err(Violation::new("copies", what));
                }
            }
        }
        Ok(())
    }
}

/// Returns rows that a power loss may damage for good: without protection, those whose block was
/// being written.
fn torn(setting: Setting, atlas: &Atlas, choices: &Choices) -> BTreeSet<u32> {
    if setting.protection != TornProtection::None {
        return BTreeSet::new();
    }
    choices.keys().filter_map(|at| row_at(atlas, *at)).collect()
}

/// Returns the row in a sector of a disk.
fn row_at(atlas: &Atlas, (disk, sector): (u8, u32)) -> Option<u32> {
    let found = atlas.find(usize::from(disk), u64::from(sector) * SECTOR_BYTES as u64)?;
    let order = Setting::spec().order(0);
    (found.file == "data" && found.block < ROWS).then(|| order.origin(found.block) as u32)
}
