//! Tests whether several writers of one file wait for each other.
//!
//! File systems take a lock of the file around direct writes, and what is written decides whether
//! several writers may share it. Rates do not show that: they also depend on the device and on
//! other load. So the time that writers wait for this very lock is counted inside the kernel, next
//! to that of the same writers with separate files.

mod classify;
pub mod findings;
mod load;
mod scratch;
mod witness;

use std::path::Path;
use std::time::{Duration, Instant};

use crate::order::findings::{Cell, Class, Mode, OrderFindings};
use blockstone_base::identity::PathKind;
use blockstone_measure::{Observer, claim};
use blockstone_sys::cached;
use blockstone_sys::survey;

use crate::CheckError;
use classify::{ModeEvidence, classify};
use load::{Totals, run};
use scratch::{Files, Sharing};
use witness::Witness;

/// Modes, numbers of writers and times to try.
#[derive(Clone, Copy, Debug)]
pub struct Plan<'a> {
    pub modes: &'a [Mode],
    /// Numbers of writers to try.
    pub writers: &'a [u32],
    /// Time per round for each mode with one file, and with separate files.
    pub time: Duration,
    /// Number of rounds; each tries every mode both ways.
    pub rounds: u32,
    /// Whether I/O goes through the page cache.
    pub is_buffered: bool,
    /// Whether a device may be overwritten, for which it has to be named twice; none if devices are
    /// not tried.
    pub destroy: Option<bool>,
    /// Nothing starts after this time.
    pub limit: Duration,
}

impl Plan<'_> {
    /// A plan that takes seconds.
    pub const QUICK: Self = Self {
        modes: &[
            Mode::Overwrite,
            Mode::Unwritten,
            Mode::Hole,
            Mode::Append,
            Mode::SubBlock,
            Mode::Straddle,
            Mode::Readers,
        ],
        writers: &[4],
        time: Duration::from_millis(60),
        rounds: 1,
        is_buffered: false,
        destroy: None,
        limit: Duration::from_millis(2_500),
    };
}

/// Tries every mode on scratch files in a directory, or the modes for devices on a device; on a
/// file tries nothing, and says why. `id` names the scratch files. Fails if the path cannot be
/// used; a refusal by the kernel is a finding.
pub fn of_path(
    path: &Path,
    id: u64,
    plan: &Plan<'_>,
    observer: &mut dyn Observer,
) -> Result<OrderFindings, CheckError> {
    let target = survey::target(Path::new("/"), path)?;
    let (kind, options) =
        target.file_system.map_or_else(Default::default, |found| (found.kind, found.options));
    let mut findings = OrderFindings {
        subject: path.display().to_string(),
        file_system: kind,
        mount_options: options,
        is_device: target.kind == PathKind::BlockDevice,
        is_buffered: plan.is_buffered,
        writers: plan.writers.iter().copied().max().unwrap_or_default(),
        kernel: blockstone_base::Capability::Full,
        not_tried: None,
        cells: Vec::new(),
        unfinished: false,
        signal: None,
    };
    let (is_device, is_buffered) = (findings.is_device, plan.is_buffered);
    let place = scratch::Scratch { path: Path::new(&target.path), id, is_device, is_buffered };
    let mut claimed = None;
    findings.not_tried = match (target.kind, plan.destroy) {
        (PathKind::File, _) | (PathKind::BlockDevice, None) => {
            Some("files and devices are not written to".to_owned())
        }
        (PathKind::BlockDevice, Some(destroy)) => {
            claimed = Some(scratch::Claimed::new(place.path, destroy)?);
            None
        }
        (PathKind::Directory, _) => {
            claim::directory(path)?;
            scratch::remove_orphans(place.path);
            let is_in_memory = scratch::is_in_memory(&place, cached::is_in_memory)?;
            is_in_memory.then(|| "the file system keeps its files in memory".to_owned())
        }
    };
    if findings.not_tried.is_some() {
        return Ok(findings);
    }
    let modes = if is_device { Mode::OF_DEVICES } else { plan.modes };
    let mut witness = Witness::start();
    let mut trials = Vec::new();
    for &mode in modes {
        trials.extend(plan.writers.iter().map(|&writers| Trial::new(mode, writers)));
    }
    let tried = rounds(&place, plan, &mut trials, &mut witness, observer);
    drop(claimed);
    findings.unfinished = !tried?;
    findings.cells = trials.iter().filter_map(|trial| trial.cell(&place, &mut witness)).collect();
    findings.kernel = witness.capability();
    findings.signal = observer.interrupted().map(str::to_owned);
    Ok(findings)
}

/// Returns whether there was time for all.
fn rounds(
    place: &scratch::Scratch<'_>,
    plan: &Plan<'_>,
    trials: &mut [Trial],
    witness: &mut Witness,
    observer: &mut dyn Observer,
) -> Result<bool, CheckError> {
    let until = Instant::now() + plan.limit;
    for round in 0..plan.rounds {
        for trial in &mut *trials {
            observer.phase(trial.mode.name());
            // The order alternates from round to round.
            let mut sides = [Sharing::OneFile, Sharing::OwnFiles];
            sides.rotate_left(round as usize % 2);
            let has_files = |it: &Sharing| !place.is_device || *it == Sharing::OneFile;
            for sharing in sides.into_iter().filter(has_files) {
                if observer.interrupted().is_some() {
                    return Ok(true);
                }
                if Instant::now() > until {
                    return Ok(false);
                }
                let interrupted = || observer.interrupted().is_some();
                trial.side(place, plan.time, sharing, witness, &interrupted)?;
            }
        }
    }
    Ok(true)
}

/// One mode with a number of writers, and its results so far.
#[derive(Debug)]
struct Trial {
    mode: Mode,
    writers: u32,
    one_file: Totals,
    own_files: Totals,
    waited_at: Vec<u64>,
    held_at: Vec<u64>,
}

impl Trial {
    fn new(mode: Mode, writers: u32) -> Self {
        let (one_file, own_files) = (Totals::default(), Totals::default());
        let (waited_at, held_at) = (Vec::new(), Vec::new());
        Self { mode, writers, one_file, own_files, waited_at, held_at }
    }

    fn side(
        &mut self,
        place: &scratch::Scratch<'_>,
        time: Duration,
        sharing: Sharing,
        witness: &mut Witness,
        interrupted: &dyn Fn() -> bool,
    ) -> Result<(), CheckError> {
        let files = Files::prepared(place, self.mode, sharing, self.writers)?;
        let Some(files) = files else { return Ok(()) };
        witness.watch(&files.watched());
        let seen = run(&files, self.mode, self.writers, time, interrupted)?;
        // Nothing is known about an interrupted run.
        let Some(mut seen) = seen else { return Ok(()) };
        seen.waits = witness.waits(self.mode != Mode::Readers);
        if sharing == Sharing::OneFile && self.waited_at.is_empty() {
            self.waited_at = witness.first_stack();
            self.held_at = witness.first_holder();
        }
        witness.forget();
        match sharing {
            Sharing::OneFile => self.one_file.add(&seen),
            Sharing::OwnFiles => self.own_files.add(&seen),
        }
        Ok(())
    }

    /// Returns `None` if this file system does not support such files, or there was no time.
    fn cell(&self, place: &scratch::Scratch<'_>, witness: &mut Witness) -> Option<Cell> {
        let own_files = self.own_files.is_tried().then(|| self.own_files.side());
        if !self.one_file.is_tried() || (own_files.is_none() && !place.is_device) {
            return None;
        }
        let one_file = self.one_file.side();
        let error = self.one_file.error.or(self.own_files.error);
        let seen = ModeEvidence {
            writers: self.writers,
            is_of_readers: self.mode == Mode::Readers,
            is_buffered: place.is_buffered,
            error,
            one_file,
            own_files,
            dropped: witness.dropped(),
            unseen: witness.why().to_owned(),
        };
        let (class, evidence) = classify(&seen);
        let (waited_in, held_in) = match class {
            Class::Serialises => (witness.names(&self.waited_at), witness.names(&self.held_at)),
            _ => Default::default(),
        };
        Some(Cell {
            mode: self.mode,
            writers: self.writers,
            class,
            evidence,
            error: error.map(crate::evidence::name_of),
            one_file,
            own_files,
            waited_in,
            held_in,
        })
    }
}
