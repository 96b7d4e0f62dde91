//! Many outcomes of one life: for a seed, cuts at many points, many images at each, and the
//! recoveries cut in turn.

use std::collections::BTreeSet;
use std::sync::Arc;

use blockstone_base::rng::Rng;

use super::case::{Case, Cut, Hurt, HurtKind, Left};
use super::history::{Choices, Event, Playback, draw};
use super::image::{Image, SECTOR_BYTES};
use super::live::live;
use super::oracle::{Expected, Violation};
use super::rows::{Mark, ROWS, Row, RowState};
use super::setting::{Recovered, Setting};
use crate::group::locate::Atlas;

/// Amount of work for one seed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Effort {
    /// Number of lives, each on the disks that the previous one left.
    pub lives: u32,
    pub cuts: u64,
    pub images: u64,
    /// Maximum number of operations at which a recovery is cut.
    pub recovery_cuts: usize,
}

/// Amount of work done.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    pub lives: u64,
    pub events: u64,
    pub acknowledged: u64,
    pub images: u64,
    pub recoveries: u64,
    pub recovery_cuts: u64,
    /// Recoveries that were cut at every operation.
    pub cut_everywhere: u64,
    pub replayed: u64,
    pub restored: u64,
    pub damaged: u64,
    pub refused: u64,
}

/// A case with a bad outcome.
#[derive(Clone, Debug)]
pub struct Failure {
    pub seed: u64,
    pub case: Box<Case>,
    pub violation: Violation,
}

impl Effort {
    /// Suitable for every change to the code.
    pub const SHORT: Self = Self { lives: 2, cuts: 5, images: 2, recovery_cuts: 6 };
    /// Cuts one recovery of each seed at every operation.
    pub const LONG: Self = Self { lives: 2, cuts: 8, images: 2, recovery_cuts: usize::MAX };
}

impl Tally {
    pub fn add(&mut self, other: &Self) {
        self.lives += other.lives;
        self.events += other.events;
        self.acknowledged += other.acknowledged;
        self.images += other.images;
        self.recoveries += other.recoveries;
        self.recovery_cuts += other.recovery_cuts;
        self.cut_everywhere += other.cut_everywhere;
        self.replayed += other.replayed;
        self.restored += other.restored;
        self.damaged += other.damaged;
        self.refused += other.refused;
    }
}

struct Explorer<'a> {
    setting: Setting,
    atlas: &'a Arc<Atlas>,
    rng: Rng,
    effort: Effort,
    tally: Tally,
    /// Whether a recovery has been cut at as many operations as the effort asks for.
    is_thorough: bool,
    /// Disks that have left the group at some time.
    left: BTreeSet<u8>,
}

/// Explores lives with many different ends. The error is the first case with a bad outcome.
pub fn explore(setting: Setting, seed: u64, effort: Effort) -> Result<Tally, Failure> {
    let ground = setting.ground();
    let mut explorer = Explorer {
        setting,
        atlas: &ground.atlas,
        rng: Rng::new(seed, 5),
        effort,
        tally: Tally::default(),
        is_thorough: false,
        left: BTreeSet::new(),
    };
    let rows = vec![RowState::default(); ROWS as usize];
    let mut start = (ground.disks.clone(), Expected::new(rows), BTreeSet::new());
    for life in 0..effort.lives {
        let found = explorer.life(start, seed * 64 + u64::from(life));
        let found = found.map_err(|(case, violation)| Failure { seed, case, violation })?;
        let Some(next) = found else { break };
        start = next;
    }
    Ok(explorer.tally)
}

type Bad = (Box<Case>, Violation);
/// Start of a life: disks, what may be found on them until the instance opens, and the rows that
/// the power loss may have torn.
type Start = (Vec<Image>, Expected, BTreeSet<u32>);
type Next = Option<Start>;
/// State after a recovery that was cut off: disks, and the rows that it may have torn.
type CutOff = (Vec<Image>, BTreeSet<u32>);

impl Explorer<'_> {
    fn life(&mut self, (disks, expected, torn): Start, seed: u64) -> Result<Next, Bad> {
        let lived = live(self.setting, disks, seed);
        let events = lived.history.events.len();
        self.left.extend(&lived.left);
        self.tally.lives += 1;
        self.tally.events += events as u64;
        let acknowledged = |event: &&Event| matches!(event, Event::Mark(Mark::Acknowledged { .. }));
        self.tally.acknowledged += lived.history.events.iter().filter(acknowledged).count() as u64;
        let mut cuts: Vec<usize> =
            (0..self.effort.cuts).map(|_| self.rng.below(events as u64 + 1) as usize).collect();
        cuts.push(events);
        cuts.sort_unstable();
        let case = Case {
            setting: self.setting,
            history: Arc::new(lived.history),
            cut: Cut::default(),
            hurt: Vec::new(),
            recoveries: Vec::new(),
            expected,
            torn,
            atlas: Arc::clone(self.atlas),
        };
        let mut next = None;
        let thorough = self.rng.below(self.effort.cuts) as usize;
        self.is_thorough &= self.effort.recovery_cuts == usize::MAX;
        for (index, cut) in cuts.into_iter().enumerate() {
            let found = self.cut(&case, cut, index >= thorough)?;
            next = if self.rng.below(2) == 0 { found.or(next) } else { next.or(found) };
        }
        Ok(next)
    }

    /// Tries images of one cut. Returns the state that one of them left, for the next life.
    fn cut(&mut self, case: &Case, cut: usize, thorough: bool) -> Result<Next, Bad> {
        let playback = Playback::until(&case.history, cut);
        let choices = playback.choices();
        let mut expected = case.expected.clone();
        expected.follow(&case.history.events[..cut]);
        let mut next = None;
        for _ in 0..self.effort.images {
            let lost = draw(&choices, self.setting.copies, &mut self.rng);
            let hurt = self.hurt(&playback, &choices);
            let case = Case { cut: Cut { cut, lost }, hurt, ..case.clone() };
            let left = case.left(&playback, &choices);
            let torn = left.may_be_damaged.clone();
            let recovered = self.first(&case, &expected, &left)?;
            let Some((recovered, disks)) = recovered else { continue };
            let most = if thorough && !self.is_thorough { self.effort.recovery_cuts } else { 2 };
            self.is_thorough |= thorough;
            let cut_off = self.cut_recovery((&case, &expected, left), &recovered, most)?;
            let is_whole = |row: &Row| matches!(row, Row::Whole { .. });
            if case.hurt.is_empty() && recovered.rows.iter().all(is_whole) {
                let cut_off = cut_off.filter(|_| self.rng.below(2) == 0);
                let (disks, torn) = cut_off.unwrap_or((disks, torn));
                next = Some((disks, expected.clone(), torn));
            }
        }
        Ok(next)
    }

    fn first(
        &mut self,
        case: &Case,
        expected: &Expected,
        left: &Left,
    ) -> Result<Option<(Recovered, Vec<Image>)>, Bad> {
        self.tally.images += 1;
        self.tally.recoveries += 2;
        let mut judge = case.judge(expected);
        judge.resyncs = self.rng.below(4) == 0;
        match judge.first(left) {
            Err(violation) => Err((Box::new(case.clone()), violation)),
            Ok(recovered) if recovered.rows.is_empty() => {
                self.tally.refused += 1;
                Ok(None)
            }
            Ok(recovered) => {
                self.tally.replayed += recovered.recovery.records;
                self.tally.restored += recovered.recovery.blocks_restored;
                let damaged = recovered.rows.iter().filter(|row| matches!(row, Row::Damaged(_)));
                self.tally.damaged += damaged.count() as u64;
                let disks = recovered.history.base.clone();
                Ok(Some((recovered, disks)))
            }
        }
    }

    /// Cuts a recovery at `most` of its operations, and also some of the recoveries that follow.
    /// Returns the state that one of them left.
    fn cut_recovery(
        &mut self,
        (case, expected, start): (&Case, &Expected, Left),
        recovered: &Recovered,
        most: usize,
    ) -> Result<Option<CutOff>, Bad> {
        let (mut cut_off, mut seen) = (None, 0);
        let judge = case.judge(expected);
        let cuts = recovered.history.cuts();
        let step = cuts.len().div_ceil(most.max(1)).max(1);
        self.tally.cut_everywhere += u64::from(step == 1);
        let first = self.rng.below(step as u64) as usize;
        let mut playback = Playback::new(&recovered.history);
        for &cut in cuts.iter().skip(first).step_by(step) {
            playback.advance(cut);
            self.tally.recovery_cuts += 1;
            let choices = playback.choices();
            let lost = draw(&choices, self.setting.copies, &mut self.rng);
            let mut left = start.clone();
            judge.after_cut(&mut left, &playback, &lost);
            let mut cuts = vec![Cut { cut, lost }];
            let mut ended = judge.recover(&left);
            self.tally.recoveries += 1;
            if let Ok(second) = &ended
                && self.rng.below(4) == 0
            {
                let cut = self.rng.below(second.history.events.len() as u64 + 1) as usize;
                let playback = Playback::until(&second.history, cut);
                let lost = draw(&playback.choices(), self.setting.copies, &mut self.rng);
                judge.after_cut(&mut left, &playback, &lost);
                cuts.push(Cut { cut, lost });
                ended = judge.recover(&left);
                self.tally.recoveries += 1;
            }
            let judged = ended.and_then(|last| judge.again(&left, &recovered.rows, &last));
            if let Err(violation) = judged {
                return Err((Box::new(Case { recoveries: cuts, ..case.clone() }), violation));
            }
            seen += 1;
            if self.rng.below(seen) == 0 {
                cut_off = Some((left.disks, left.may_be_damaged));
            }
        }
        Ok(cut_off)
    }

    /// Draws damage not caused by a write, in sectors that are durable: on one disk at most.
    fn hurt(&mut self, playback: &Playback<'_>, choices: &Choices) -> Vec<Hurt> {
        let rng = &mut self.rng;
        if rng.below(6) > 0 {
            return Vec::new();
        }
        let disk = rng.below(self.setting.copies as u64) as u8;
        let image = &playback.durable()[usize::from(disk)];
        let mirrored = self.setting.copies > 1;
        let gone = self.left.len() + usize::from(!self.left.contains(&disk));
        if mirrored && gone >= self.setting.copies {
            return Vec::new();
        }
        let pages: Vec<usize> = image.pages().map(|(number, _)| number).collect();
        let mut hurt = Vec::new();
        for _ in 0..=rng.below(if mirrored { 12 } else { 2 }) {
            let page = pages[rng.below(pages.len() as u64) as usize] as u32;
            // A disk that has lost both its header and the copy at the end is not recognised, but
            // replaced.
            if (page + 1) * 8 == (image.size_bytes() / SECTOR_BYTES as u64) as u32 {
                continue;
            }
            let sector = page * 8 + rng.below(8) as u32;
            let found = self.atlas.find(usize::from(disk), u64::from(sector) * SECTOR_BYTES as u64);
            let file = found.map(|found| found.file);
            // Without a mirror, redo that rots at its end cannot be distinguished from redo that
            // was never written, and double writes have only one copy.
            let redo = file.is_some_and(|file| file.starts_with("redo"));
            let allowed = mirrored
                || file == Some("data")
                || redo && hurt.is_empty() && is_followed(playback, self.atlas, sector);
            if redo && !mirrored && !hurt.is_empty() {
                break;
            }
            if allowed && !choices.contains_key(&(disk, sector)) {
                let rots = rng.below(3) > 0;
                let bit = rng.below(4096) as u32;
                let kind = if rots { HurtKind::Rot(bit) } else { HurtKind::Unreadable };
                hurt.push(Hurt { disk, sector, kind });
            }
            if redo && !mirrored {
                break;
            }
        }
        hurt
    }
}

/// Whether the redo in a sector of the only disk is followed by durable redo.
fn is_followed(playback: &Playback<'_>, atlas: &Atlas, sector: u32) -> bool {
    let offset = u64::from(sector) * SECTOR_BYTES as u64;
    let redo = playback.past().filter(|write| {
        let found = atlas.find(usize::from(write.disk), write.offset);
        found.is_some_and(|found| found.file.starts_with("redo"))
    });
    let numbers: Vec<(bool, u64)> = redo
        .map(|write| {
            let end = write.offset + write.data.len() as u64;
            // Position of the first record in its chunk.
            ((write.offset..end).contains(&offset), crate::block::get(&write.data, 16))
        })
        .collect();
    let last = numbers.iter().map(|(_, first)| *first).max();
    let holds = numbers.iter().rev().find(|(holds, _)| *holds).map(|(_, first)| *first);
    holds.is_some_and(|first| last.is_some_and(|last| first < last))
}
