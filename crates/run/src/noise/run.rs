//! The run: laying out the areas, the phases, and their recording.

use std::path::PathBuf;

use blockstone_base::column::Schema;
use blockstone_base::load;
use blockstone_base::units::Nanos;
use blockstone_measure::{Layout, Observer, Opening, Session, SessionSpec};
use blockstone_record::Parameters as _;
use blockstone_record::manifest::{End, Group, Manifest};
use blockstone_record::parameters::{NoiseParameters, stored};
use blockstone_sys::clock;
use blockstone_watch::Database;
use blockstone_workload::noise::{Areas, NoisePlace};

use super::error::NoiseError;
use super::hold::{self, Step};
use super::places::Devices;
use super::prepare::Prepared;
use super::settings::NoiseOptions;

/// Interval between two ticks; longer with a database, so that it is queried less often.
const TICK: Nanos = Nanos::millis(100);
const TICK_OF_DATABASE: Nanos = Nanos::millis(250);
/// Sampling interval of the database's sessions, long enough that they are not sampled.
const SAMPLES: Nanos = Nanos::millis(3_600_000);
/// Duration of a run without an end, longer than anyone would wait.
const ENDLESS: Nanos = Nanos::millis(365 * 24 * 3_600_000);
/// Longest warm-up if the noise never pauses; otherwise it is one part in `WARM_UP_SHARE` of a
/// phase.
const WARM_UP: Nanos = Nanos::millis(2_000);
const WARM_UP_SHARE: u64 = 4;

impl Prepared<'_> {
    /// Makes noise and returns the directory of the recording. An interruption or an error after
    /// the recording was created is written into it and returns `Ok`, so that everything measured
    /// so far is kept.
    pub fn run(self, observer: &mut dyn Observer) -> Result<PathBuf, NoiseError> {
        let dir = self.settings.recording.path.clone();
        let origin_ns = clock::now_ns();
        let database = self.settings.database.as_ref();
        let database = database.map(|at| Database::start(at, SAMPLES, origin_ns)).transpose()?;
        let of_database = database.iter().flat_map(|database| database.series().iter().copied());
        let series: Vec<&'static Schema> = [&load::SERIES].into_iter().chain(of_database).collect();
        for orphan in self.remove_orphans() {
            observer.note(&format!("removed {}, left by a killed run", orphan.display()));
        }
        let devices = self.target.devices.iter().map(|device| device.name.clone()).collect();
        let mut session = Session::start(SessionSpec {
            dir: &dir,
            manifest: self.manifest(database.as_ref()),
            devices,
            series: &series,
            through_page_cache: false,
            tick: if database.is_some() { TICK_OF_DATABASE } else { TICK },
        })?;
        let made = self.all_phases(&mut session, observer, database.as_ref());
        let end = match (made, observer.interrupted()) {
            (_, Some(signal)) => End::Interrupted { signal: signal.to_owned() },
            (Ok(()), None) => End::Complete,
            (Err(error), None) => End::failed(&error),
        };
        session.close(end)?;
        Ok(dir)
    }

    fn manifest(&self, database: Option<&Database>) -> Manifest {
        let Self { settings, spec, .. } = self;
        let server = database.map(Database::server);
        let options = NoiseOptions {
            writers: Some(spec.writers),
            phase_ns: settings.options.phase(),
            ..settings.options.clone()
        };
        let facts = NoiseParameters {
            mode: Some(spec.mode.name().to_owned()),
            server: server.map(|server| format!("{} {}", server.product, server.version)),
            ..NoiseParameters::default()
        };
        let mut stored = stored(&options);
        stored.retain(|_, value| !value.is_null());
        stored.extend(facts.settings());
        Opening {
            id: &settings.recording.id,
            verb: "noise",
            argv: &settings.argv,
            settings: stored,
            seed: settings.seed,
            rank: None,
            host: &self.host,
            target: &self.target,
            capabilities: &self.capabilities,
        }
        .manifest()
    }

    fn all_phases(
        &self,
        session: &mut Session,
        observer: &mut dyn Observer,
        database: Option<&Database>,
    ) -> Result<(), NoiseError> {
        let claimed = self.spec.places.iter().filter_map(|place| match place {
            NoisePlace::Device(path) => Some(path.clone()),
            NoisePlace::NewFile(_) => None,
        });
        let devices = Devices(claimed.collect());
        let layout = Layout::begin(session, observer, "write the areas once");
        let areas = Areas::lay_out(self.spec.clone(), &mut |written, total| {
            layout.shown(observer, written, total)
        })?;
        let ends_ns = session.now_ns() + self.settings.options.duration().unwrap_or(ENDLESS).get();
        let mut done = 0_u32;
        let context = hold::Context { areas: &areas, database, ends_ns };
        while let Some(step) = self.step(done) {
            let ended = hold::hold(session, observer, context, &step)?;
            done += 1;
            if ended || observer.interrupted().is_some() {
                break;
            }
        }
        drop(areas);
        // Only now does nothing hold the devices.
        drop(devices);
        Ok(())
    }

    /// Returns the phase after `done` others: as many pairs as fit, each without and then with
    /// noise.
    fn step(&self, done: u32) -> Option<Step> {
        let options = &self.settings.options;
        let duration = options.duration().unwrap_or(ENDLESS);
        let Some(phase) = options.phase() else {
            let step = Step { group: Group::Noise, repeat: 0, warm_up: WARM_UP, length: duration };
            return (done == 0).then_some(step);
        };
        let pairs = duration.get() / phase.get() / 2;
        let group = if done.is_multiple_of(2) { Group::Quiet } else { Group::Noise };
        let warm_up = Nanos(phase.get() / WARM_UP_SHARE);
        let step = Step { group, repeat: done / 2, warm_up, length: phase };
        (u64::from(step.repeat) < pairs).then_some(step)
    }
}
