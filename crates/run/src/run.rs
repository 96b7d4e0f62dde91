//! The run: loading, sessions, shutdown.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, LazyLock};

use blockstone_base::column::Schema;
use blockstone_base::units::Nanos;
use blockstone_base::{database, load};
use blockstone_measure::claim::ClaimError;
use blockstone_measure::{Observer, Session, SessionSpec, capability, evidence};
use blockstone_record::manifest::{End, Group};
use blockstone_record::parameters::RunParameters;
use blockstone_servers::live::{Answer, Teller};
use blockstone_servers::{Description, Target, without_password};
use blockstone_sys::file::BlockFile;
use blockstone_sys::thread;
use blockstone_workload::Parameters;
use blockstone_workload::noise::Areas;

use crate::error::RunError;
use crate::hold::{Load, Step, hold};
use crate::noise::beside;
use crate::prepare::Prepared;
use crate::scan::Plan;
use crate::{loading, manifest};

/// Series by kind of run: with or without sampling of the target's sessions, with or without noise.
static SERIES: [LazyLock<Vec<&Schema>>; 4] = [
    LazyLock::new(|| series(&[])),
    LazyLock::new(|| series(database::OF_SESSIONS)),
    LazyLock::new(|| series(&[&load::SERIES])),
    LazyLock::new(|| [series(database::OF_SESSIONS), vec![&load::SERIES]].concat()),
];

fn series(more: &[&'static Schema]) -> Vec<&'static Schema> {
    database::ALL.iter().chain(more).copied().collect()
}

/// Interval between two ticks. A tick reads every thread, so thousands of them are read less often.
const TICK: Nanos = Nanos::millis(100);
const TICK_OF_MANY: Nanos = Nanos::millis(1000);
/// From this number of sessions on, [`TICK_OF_MANY`] applies.
const MANY: u32 = 1000;
/// Number of database files whose content is examined.
const DATA_FILES: usize = 8;

#[derive(Clone, Copy)]
struct RunContext<'a> {
    target: &'a Arc<dyn Target>,
    /// Publishes the counters of this run to `watch --db run:…`.
    teller: Option<&'a Teller>,
}

impl Prepared<'_> {
    /// Runs and returns the directory of the recording. An interruption or an error after the
    /// recording was created is written into it and returns `Ok`, so that the measurements so far
    /// are kept.
    pub fn run(mut self, observer: &mut dyn Observer) -> Result<PathBuf, RunError> {
        let dir = self.settings.recording.path.clone();
        for orphan in self.remove_orphans() {
            observer.note(&format!("removed {}, left by a killed run", orphan.display()));
        }
        let devices = self.storage.devices.iter().map(|device| device.name.clone()).collect();
        let is_sampled = usize::from(self.entry.family.samples_sessions);
        let mut session = Session::start(SessionSpec {
            dir: &dir,
            manifest: manifest::begin(&self),
            devices,
            series: &SERIES[is_sampled + 2 * usize::from(self.noise.is_some())],
            through_page_cache: self.entry.family.through_page_cache,
            tick: if self.spec.sessions < MANY { TICK } else { TICK_OF_MANY },
        })?;
        let ran = self.all_phases(&mut session, observer);
        let interrupted = observer.interrupted();
        let end = match (ran, interrupted) {
            (_, Some(signal)) => End::Interrupted { signal: signal.to_owned() },
            (Ok(()), None) => End::Complete,
            (Err(error), None) => End::failed(&error),
        };
        if self.settings.storage.keep && end == End::Complete {
            for kept in self.files.keep()? {
                observer.note(&format!("kept {}", kept.display()));
            }
        }
        session.close(end)?;
        Ok(dir)
    }

    fn all_phases(
        &mut self,
        session: &mut Session,
        observer: &mut dyn Observer,
    ) -> Result<(), RunError> {
        // Before the database is set up, so that noise files are not fragmented by it.
        let noise = self.noise.take();
        let areas = noise.map(|spec| beside::lay_out(session, observer, spec)).transpose()?;
        let target = loading::load(session, observer, self.entry, &self.spec, &mut self.files)?;
        note_capabilities(session, target.as_ref());
        let described = note_description(session, observer, target.as_ref())?;
        session.watch_database(self.entry.family.name, &described.places);
        self.keep_evidence(session, observer, &described.files)?;
        let teller = self.teller(observer, &target)?;
        let context = RunContext { target: &target, teller: teller.as_ref() };
        if let Some(rank) = &self.settings.rank {
            rank.meet(session, observer);
        }
        let held = match &self.scan {
            Some(plan) => self.matrix(session, observer, context, plan),
            None => self.windows(session, observer, context, areas.as_ref()),
        };
        if matches!(held, Err(RunError::Claim(ClaimError::Stuck { .. }))) {
            // Hanging sessions still use the target, so it cannot be shut down.
            return held;
        }
        if held.is_ok() {
            note_plans_after(session, target.as_ref())?;
        }
        observer.phase("shut down");
        let shut_down = target.shutdown();
        held?;
        Ok(shut_down?)
    }

    /// Publishes this run while it is in progress. It is not fatal if that is impossible, for
    /// example if the directory of the recording does not support sockets.
    fn teller(
        &self,
        observer: &mut dyn Observer,
        target: &Arc<dyn Target>,
    ) -> Result<Option<Teller>, RunError> {
        let unmeasured = target.describe()?.unmeasured.into_iter();
        let about = Answer {
            target: without_password(&self.settings.target),
            pid: std::process::id(),
            unmeasured: unmeasured.map(|(p, c, why)| (p.to_owned(), c.to_owned(), why)).collect(),
            rows: Vec::new(),
        };
        let started = Teller::start(&self.settings.recording.path, about, Arc::downgrade(target));
        if let Err(error) = &started {
            observer.note(&format!("`watch --db run:last` cannot follow this run: {error}"));
        }
        Ok(started.ok())
    }

    /// Measures the method's sessions in one window, and with noise in a second one.
    fn windows(
        &self,
        session: &mut Session,
        observer: &mut dyn Observer,
        context: RunContext<'_>,
        areas: Option<&Areas>,
    ) -> Result<(), RunError> {
        let load = self.load(context, &self.parameters);
        let step = |label: &str, noise| Step {
            label: label.to_owned(),
            group: Group::Workload,
            load: None,
            noise,
        };
        let steps = match areas {
            None => vec![step("run", None)],
            Some(_) => vec![step("quiet", None), step("noisy", areas)],
        };
        let left = Nanos(load.longest().get() * steps.len() as u64);
        hold(session, observer, &load, &steps, left)
    }

    /// Measures the points of the direct-path matrix, each with its own sessions.
    fn matrix(
        &self,
        session: &mut Session,
        observer: &mut dyn Observer,
        context: RunContext<'_>,
        plan: &Plan,
    ) -> Result<(), RunError> {
        let points = plan.points(&self.spec, &without_password(&self.settings.target));
        let longest = self.load(context, &self.parameters).longest().get();
        for (index, (parameters, step)) in points.iter().enumerate() {
            let left = Nanos(longest * (points.len() - index) as u64);
            let load = self.load(context, parameters);
            hold(session, observer, &load, std::slice::from_ref(step), left)?;
            if observer.interrupted().is_some() {
                break;
            }
        }
        Ok(())
    }

    fn load<'a>(&self, context: RunContext<'a>, parameters: &'a Parameters) -> Load<'a> {
        let RunContext { target, teller } = context;
        let (run_time, block) = (self.settings.run_time(), self.spec.options.block_bytes);
        let is_rank = self.settings.rank.is_some();
        Load { target, parameters, run_time, block, teller, is_rank }
    }

    /// Records the extents of the disks' files and a sample of their data before they are measured.
    /// All disks are examined in parallel: a slow one takes seconds.
    fn keep_evidence(
        &self,
        session: &mut Session,
        observer: &mut dyn Observer,
        data_files: &[PathBuf],
    ) -> Result<(), RunError> {
        observer.phase("examine the disks");
        let seed = self.parameters.seed;
        let look = |path: &Path, ours: bool| {
            let file = BlockFile::open_found(path)?;
            evidence::examine(&file, ours, 0..file.size_bytes()?, seed)
        };
        // Files of a database that this user may not read are skipped; their cached pages stay
        // cached.
        let readable = data_files.iter().take(DATA_FILES);
        let readable = readable.filter_map(|path| look(path, false).ok());
        session.recorder().manifest().data_files = readable.collect();
        // Not the data directory of a server, and not a target that takes no space.
        let is_file =
            |path: &&PathBuf| blockstone_sys::path::look(path).is_ok_and(|found| !found.is_dir());
        let paths = self.spec.places.iter().map(|place| &place.path).filter(is_file);
        let paths: Vec<&PathBuf> = paths.collect();
        for found in thread::each("examine", &paths, |path| look(path, true)) {
            let found = found?;
            session.watch_pages(Path::new(&found.path));
            session.recorder().manifest().disk_files.push(found);
        }
        Ok(())
    }
}

/// Replaces the capabilities that were expected by those that the target reports.
fn note_capabilities(session: &mut Session, target: &dyn Target) {
    for (name, capability) in target.capabilities() {
        let known = &mut session.recorder().manifest().capabilities;
        known.retain(|known| known.name != name);
        known.push(capability::named(name, capability));
    }
}

/// Records product, settings and plans of the database and which columns it does not count, and
/// returns the description.
fn note_description(
    session: &mut Session,
    observer: &mut dyn Observer,
    target: &dyn Target,
) -> Result<Description, RunError> {
    let described = target.describe()?;
    described.notes.iter().for_each(|note| observer.note(note));
    let manifest = session.recorder().manifest();
    for (probe, column, why) in described.unmeasured.clone() {
        let infos = manifest.probes.iter_mut().filter(|info| info.probe == probe);
        let columns = infos.flat_map(|info| &mut info.columns);
        columns.filter(|info| info.name == column).for_each(|info| {
            info.unmeasured = Some(why.clone());
        });
    }
    if !described.server.is_empty() {
        manifest.set_parameters(&RunParameters {
            server: Some(described.server.clone()),
            server_settings: Some(described.settings.iter().cloned().collect()),
            plans: Some(plans(described.plans.clone())),
            ..RunParameters::default()
        });
    }
    Ok(described)
}

/// Records the plans again after the window: a changed plan means two different workloads.
fn note_plans_after(session: &mut Session, target: &dyn Target) -> Result<(), RunError> {
    let described = target.describe()?;
    if !described.server.is_empty() {
        let plans_after = Some(plans(described.plans));
        let after = RunParameters { plans_after, ..RunParameters::default() };
        session.recorder().manifest().set_parameters(&after);
    }
    Ok(())
}

fn plans(plans: Vec<(&'static str, String)>) -> BTreeMap<String, String> {
    plans.into_iter().map(|(kind, plan)| (kind.to_owned(), plan)).collect()
}
