//! Reads every layer, tick by tick.

use std::path::Path;

use blockstone_base::column::{Cell, Origin, Reading, Schema, Unmeasured};
use blockstone_base::database::{SESSION, SESSION_EVENT, SESSION_STATISTICS, STATEMENT_TEXT};
use blockstone_measure::Ticks;
use blockstone_probe::io::{self, IoSpec, Wanted};
use blockstone_probe::profile::{self, ProfileSpec};
use blockstone_probe::{Context, Probe, Roles, Row, Scope, registry};
use blockstone_probe::{active_set, cached_files};
use blockstone_record::manifest::{End, ProbeInfo};
use blockstone_servers::monitor::Server;
use blockstone_sys::clock::{self, MonotonicClock};
use blockstone_view::History;
use jiff::tz::TimeZone;

use crate::WatchError;
use crate::clocks::{Clocks, Jump};
use crate::database::{Answer, Database};
use crate::listen::Listener;
use crate::recorder::RecordingSink;
use crate::settings::{Kernel, Settings};

pub const SCHEMA: Schema = Schema {
    probe: "watch",
    doc: "The watching itself: ticks, those that were missed, and how long looking took.",
    columns: &[
        OWN.count("ticks", "Ticks taken."),
        OWN.count("missed_ticks", "Ticks whose time had passed before they could be taken."),
        OWN.time("look_ns", "Time in which probes were read; databases are asked meanwhile."),
    ],
};

const OWN: Origin = Origin("Blockstone");
/// Probes whose rows are single sessions, statements, functions or files: not exported to
/// Prometheus, which gets the paths of files only on request.
const SAMPLED: &[&str] = &[
    SESSION.probe,
    SESSION_STATISTICS.probe,
    SESSION_EVENT.probe,
    STATEMENT_TEXT.probe,
    profile::SCHEMA.probe,
    active_set::SCHEMA.probe,
    cached_files::SCHEMA.probe,
];
/// Ticks between queries of the probes for columns that they cannot measure.
const ASK_EVERY: u64 = 10;

pub struct Watch {
    probes: Vec<Box<dyn Probe>>,
    rows: Vec<Row>,
    history: History,
    keep_ns: u64,
    recording: Option<RecordingSink>,
    origin_ns: u64,
    ticks: Ticks,
    clocks: Clocks,
    jumps: Vec<Jump>,
    listener: Option<Listener>,
    roles: Roles,
    databases: Vec<Database>,
    /// The processes whose I/O the kernel counts.
    wanted: Wanted,
    /// Ticks taken, ticks missed, and time spent reading, in nanoseconds.
    own: [u64; 3],
}

impl Watch {
    /// Starts the watch. Nothing is read yet; the first tick is one interval away.
    pub fn start(settings: &Settings) -> Result<Self, WatchError> {
        let scope = Scope::Host(settings.roles.clone());
        let context = Context { root: Path::new("/").to_owned(), scope };
        let mut probes: Vec<_> =
            registry::of(&context).map(|entry| (entry.open)(&context)).collect();
        let wanted = Wanted::default();
        if settings.kernel != Kernel::Off {
            probes.push(io::open(kernel_io(settings, &wanted)));
        }
        probes
            .extend(settings.profile_per_second.map(|rate| profile::open(sampled(settings, rate))));
        let counted = settings.active_set.as_ref();
        probes.extend(counted.map(|devices| active_set::open(Path::new("/"), devices)));
        let origin_ns = clock::now_ns();
        let databases = Database::start_all(&settings.databases, settings.samples, origin_ns)?;
        match databases.as_slice() {
            [only] if only.server().is_local => settings.roles.await_report(),
            [] | [_] => {}
            // The first tick already has the names of all of them.
            several => {
                let members = several.iter().flat_map(Database::members);
                settings.roles.report(members);
                wanted.set(several.iter().flat_map(|it| &it.processes).map(|(it, _)| it.pid));
            }
        }
        let own = probes.iter().map(|probe| probe.schema()).chain([&SCHEMA]).map(ProbeInfo::of);
        let series: Vec<ProbeInfo> =
            own.chain(databases.iter().flat_map(Database::infos)).collect();
        let begin = |to| RecordingSink::begin(to, settings, (&databases, &series), origin_ns);
        let recording = settings.record.as_ref().map(begin).transpose()?;
        Ok(Self {
            history: History::new(series).in_zone(TimeZone::system()),
            probes,
            rows: Vec::new(),
            keep_ns: settings.keep.get(),
            recording,
            origin_ns,
            ticks: Ticks::start(&MonotonicClock, settings.interval),
            clocks: Clocks::now(),
            jumps: Vec::new(),
            listener: None,
            roles: settings.roles.clone(),
            databases,
            wanted,
            own: [0; 3],
        })
    }

    /// Publishes each tick to `listener` from now on.
    pub fn tell(&mut self, listener: Listener) {
        self.listener = Some(listener);
    }

    /// Returns the readings so far, as far back as they are kept.
    pub fn history(&self) -> &History {
        &self.history
    }

    /// Returns the time since 1970 at an instant of the history, as the wall clock was set at the
    /// last tick.
    pub fn realtime_ns(&self, t_ns: u64) -> i128 {
        self.clocks.realtime_ns(self.origin_ns + t_ns)
    }

    /// Returns the time of the next tick, on the monotonic clock.
    pub fn due_ns(&self) -> u64 {
        self.ticks.deadline_ns()
    }

    /// Returns the jumps of the clocks at the last tick.
    pub fn jumps(&self) -> impl Iterator<Item = &str> {
        self.jumps.iter().map(|jump| jump.detail.as_str())
    }

    /// Returns why a database does not answer; `None` if all do.
    pub fn silent(&self) -> Option<&str> {
        self.databases.iter().find_map(|database| database.silent.as_deref())
    }

    pub fn servers(&self) -> impl Iterator<Item = &Server> {
        self.databases.iter().map(Database::server)
    }

    /// Sleeps until the next tick is due and takes it.
    pub fn wait_and_look(&mut self) -> Result<(), WatchError> {
        clock::sleep_until_ns(self.due_ns());
        self.look_when_due()
    }

    /// Takes the tick that is due.
    pub fn look_when_due(&mut self) -> Result<(), WatchError> {
        let missed = self.ticks.pass(&MonotonicClock);
        if let Some(recording) = &mut self.recording {
            recording.missed(SCHEMA.probe, missed);
        }
        self.own[1] += missed;
        self.look()
    }

    /// Reads everything now.
    pub fn look(&mut self) -> Result<(), WatchError> {
        let begin_ns = clock::now_ns();
        let t_ns = begin_ns - self.origin_ns;
        for database in &self.databases {
            database.ask(t_ns);
        }
        for index in 0..self.probes.len() {
            let mut rows = std::mem::take(&mut self.rows);
            let probe = &mut self.probes[index];
            rows.clear();
            probe.sample(&mut rows);
            let name = probe.schema().probe;
            for Row { object, cells } in rows.drain(..) {
                self.add(name, t_ns, &object, cells)?;
            }
            self.rows = rows;
        }
        if self.own[0].is_multiple_of(ASK_EVERY) {
            self.ask();
        }
        self.own[0] += 1;
        self.own[2] += clock::now_ns() - begin_ns;
        self.drain_answers()?;
        self.add(SCHEMA.probe, t_ns, "", self.own.map(Cell::from).into())?;
        self.jumps = self.clocks.look();
        self.history.set_clock(t_ns, self.clocks.realtime_ns(self.origin_ns));
        if let Some(recording) = &mut self.recording {
            for jump in &self.jumps {
                recording.event(t_ns, jump.kind, &jump.detail)?;
            }
            recording.ticked(t_ns)?;
        }
        if let Some(listener) = &mut self.listener {
            listener.publish(&self.history, SAMPLED)?;
        }
        self.history.forget_before(t_ns.saturating_sub(self.keep_ns));
        Ok(())
    }

    /// Ends the watch and its recording.
    pub fn close(self, end: End) -> Result<(), WatchError> {
        Ok(self.recording.map_or(Ok(()), |recording| recording.close(end))?)
    }

    /// Processes the answers of the databases. They had the time of the probes to answer, and share
    /// a short additional wait.
    fn drain_answers(&mut self) -> Result<(), WatchError> {
        let until = Database::patience();
        let mut reports = false;
        for index in 0..self.databases.len() {
            for answer in self.databases[index].answers(until) {
                reports |= answer.processes.is_some();
                self.take(index, answer)?;
            }
        }
        if reports {
            let processes = self.databases.iter().flat_map(|database| &database.processes);
            self.wanted.set(processes.map(|(member, _)| member.pid));
            self.roles.report(self.databases.iter().flat_map(Database::members));
        }
        Ok(())
    }

    fn take(&mut self, index: usize, answer: Answer) -> Result<(), WatchError> {
        for Reading { probe, object, cells } in answer.readings {
            let series = self.databases[index].series_of(probe);
            self.add(&series, answer.t_ns, &object, cells)?;
        }
        let database = &mut self.databases[index];
        for (probe, column, why) in &answer.unmeasured {
            let series = database.series_of(probe);
            note(&mut self.history, &mut self.recording, &series, column, why);
        }
        if let Some(processes) = answer.processes {
            database.processes = processes;
        }
        let was_answering = database.silent.is_none();
        let name = database.name().map_or(String::new(), |name| format!("{name}: "));
        database.silent = answer.error.map(|why| format!("{name}{why}"));
        if let (Some(why), Some(recording), true) =
            (&database.silent, &mut self.recording, was_answering)
        {
            recording.event(answer.t_ns, "database-gone", why)?;
        }
        Ok(())
    }

    fn add(
        &mut self,
        probe: &str,
        t_ns: u64,
        object: &str,
        cells: Vec<Cell>,
    ) -> Result<(), WatchError> {
        if let Some(recording) = &mut self.recording {
            recording.row(probe, t_ns, object, &cells)?;
        }
        self.history.push(probe, t_ns, object, cells);
        Ok(())
    }

    /// Asks the probes for columns that they cannot measure, and notes the reasons with the
    /// figures.
    fn ask(&mut self) {
        for probe in &self.probes {
            let name = probe.schema().probe;
            for (column, why) in probe.unmeasured() {
                note(&mut self.history, &mut self.recording, name, column, &why);
            }
        }
    }
}

fn kernel_io(settings: &Settings, wanted: &Wanted) -> IoSpec {
    let roles = settings.roles.clone();
    IoSpec {
        system_calls: settings.kernel == Kernel::Calls,
        wanted: wanted.clone(),
        resolve: Box::new(move |pid, thread, name| roles.of_any(Path::new("/"), pid, thread, name)),
        ..IoSpec::everybody()
    }
}

fn sampled(settings: &Settings, per_second: u32) -> ProfileSpec {
    let (root, roles) = (Path::new("/"), settings.roles.clone());
    ProfileSpec {
        root: root.to_owned(),
        per_second,
        resolve: Box::new(move |pid, thread, name| roles.of_program(root, pid, thread, name)),
    }
}

fn note(
    history: &mut History,
    recording: &mut Option<RecordingSink>,
    probe: &str,
    column: &str,
    why: &Unmeasured,
) {
    history.unmeasured(probe, column, why);
    if let Some(recording) = recording {
        recording.unmeasured(probe, column, why);
    }
}
