//! A life of the instance with real threads: recorded once, explored afterwards.

use std::collections::BTreeSet;
use std::thread;
use std::time::Duration;

use blockstone_base::rng::Rng;

use super::history::{Event, History};
use super::image::Image;
use super::machine::{Faults, Machine};
use super::rows::{Mark, ROWS, Row, RowState, SESSIONS, Step, rows_of};
use super::setting::{Setting, rows};
use crate::error::InstanceError;
use crate::files::Files;
use crate::group::{DiskGroup, DiskState};
use crate::instance::Instance;
use crate::session::{RedoStress, Session};

/// Result of a life.
#[derive(Debug)]
pub struct Lived {
    pub history: History,
    /// Disks that left the group, temporarily or for good.
    pub left: BTreeSet<u8>,
}

/// Runs the instance on `disks` from an opening to a crash or a shutdown, possibly twice.
pub fn live(setting: Setting, disks: Vec<Image>, seed: u64) -> Lived {
    let mut rng = Rng::new(seed, 21);
    let machine = Machine::with(disks, seed, true);
    let mut left = BTreeSet::new();
    for _ in 0..=rng.below(2) {
        let away = plan(&machine, setting, &mut rng, &mut left);
        // Any error is reflected in the history; the next opening recovers.
        let _ = life(setting, &machine, &mut rng, away);
    }
    let history = machine.take_history();
    left.extend(history.events.iter().filter_map(|event| match event {
        Event::Synced { disk, failed: true, .. } => Some(*disk),
        Event::Written { write, failed: true } => disk_of(&history, *write),
        _ => None,
    }));
    Lived { history, left }
}

fn disk_of(history: &History, number: u32) -> Option<u8> {
    history.events.iter().find_map(|event| match event {
        Event::Write(write) if write.number == number => Some(write.disk),
        _ => None,
    })
}

/// Draws the faults of a life. Returns the disk that leaves temporarily, if any; it and one that
/// dies are added to `left`.
fn plan(
    machine: &Machine,
    setting: Setting,
    rng: &mut Rng,
    left: &mut BTreeSet<u8>,
) -> Option<usize> {
    let at = 20 + rng.below(500);
    let mirrored = setting.copies > 1;
    let fault = rng.below(12);
    let disk = rng.below(setting.copies as u64) as usize;
    let none = Faults::default();
    machine.set_faults(match fault {
        0 | 5 => Faults { change_fails_at: Some(at), ..none },
        1 | 2 => Faults { sync_fails_at: Some(1 + rng.below(40)), ..none },
        3 if mirrored => Faults { dies: vec![(disk, at)], ..none },
        _ => none,
    });
    if mirrored && matches!(fault, 3 | 4) {
        left.insert(disk as u8);
    }
    (mirrored && fault == 4).then_some(disk)
}

fn life(
    setting: Setting,
    machine: &Machine,
    rng: &mut Rng,
    away: Option<usize>,
) -> Result<(), InstanceError> {
    let group = DiskGroup::open_on(machine.disks())?;
    let instance = Instance::open(&group, &setting.open_spec())?;
    let files = Files::open(&group, Setting::spec().redo_logs)?;
    let identity = instance.identity();
    let found = rows(&files, identity).into_iter().map(|row| match row {
        Row::Whole { state, .. } => Some(state),
        Row::Damaged(_) | Row::Wrong(_) => None,
    });
    let found: Option<Vec<RowState>> = found.collect();
    // A lost row was already lost before, which is detected by the checks of that earlier state.
    let Some(rows) = found else { return Ok(()) };
    machine.mark(Mark::Opened { rows });
    let (rounds, seed) = (4 + rng.below(28), rng.next_u64());
    let returns = setting.copies > 1 && rng.below(4) > 0;
    let result = thread::scope(|scope| {
        let run = |number| {
            let thread = thread::Builder::new().name(format!("session-{number}"));
            let (instance, machine) = (&instance, machine);
            let work = move || {
                let mut session = instance.session(number)?;
                let rng = Rng::new(seed, u64::from(number));
                work(&mut session, number, rng, rounds, (instance, machine))
            };
            thread.spawn_scoped(scope, work).expect("a thread starts")
        };
        let runs: Vec<_> = (0..SESSIONS).map(run).collect();
        if let Some(disk) = away {
            thread::sleep(Duration::from_millis(2));
            let _ = group.offline(disk);
        }
        if returns {
            while !runs.iter().all(thread::ScopedJoinHandle::is_finished) {
                thread::sleep(Duration::from_millis(3));
                bring_back(&group, machine);
            }
        }
        let ends = runs.into_iter().map(|run| run.join().expect("a session does not panic"));
        ends.fold(Ok(()), Result::and)
    });
    if result.is_ok() && returns && rng.below(3) == 0 {
        // A disk may fail when the last blocks are made durable, and return before any more are
        // written.
        machine.set_faults(Faults { sync_fails_at: Some(1 + rng.below(4)), ..Faults::default() });
        instance.checkpoint()?;
        bring_back(&group, machine);
    }
    if result.is_ok() && rng.below(3) == 0 {
        instance.shutdown()?;
        machine.mark(Mark::Closed);
        return Ok(());
    }
    instance.crash();
    result
}

/// Brings back every disk that has left, while the sessions continue.
fn bring_back(group: &DiskGroup, machine: &Machine) {
    for (number, (disk, seen)) in machine.disks().iter().zip(group.counters()).enumerate() {
        if seen.state == DiskState::Offline {
            // A disk that fails again stays offline.
            let _ = group.online_and_resync_on(number, disk);
        }
    }
}

fn work(
    session: &mut Session,
    number: u32,
    mut rng: Rng,
    rounds: u64,
    (instance, machine): (&Instance, &Machine),
) -> Result<(), InstanceError> {
    let own = rows_of(number);
    for commit in 1..=rounds {
        let mut steps = Vec::new();
        let mut calls = Vec::new();
        for _ in 0..=rng.below(2) {
            let (heavy, count) = (rng.below(3) == 0, 1 + rng.below(5));
            let first = own.start as u64 + rng.below(own.len() as u64 - count + 1);
            let changes = first..first + count;
            steps.extend(changes.map(|row| Step::Change { row: row as u32, heavy }));
            calls.push((first, count, heavy));
        }
        steps.push(Step::Commit { number: commit });
        machine.mark(Mark::Issued { session: number, steps });
        for (first, count, heavy) in calls {
            let stress = if heavy { RedoStress::Heavy } else { RedoStress::Lite };
            session.update(0, first, count, stress)?;
        }
        let end = session.commit()?;
        machine.mark(Mark::Acknowledged { session: number, number: commit, end: end.0 });
        match rng.below(24) {
            0 => instance.checkpoint()?,
            1..4 => {
                session.select(0, rng.below(ROWS - 8), 8)?;
            }
            _ => {}
        }
    }
    Ok(())
}
