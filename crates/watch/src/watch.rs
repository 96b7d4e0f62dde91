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
use crate::options::Kernel;
use crate::recorder::RecordingSink;
use crate::settings::{Destination, Settings};

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
    io::BY_PROCESS.probe,
];
/// Ticks between queries of the probes for columns that they cannot measure.
const ASK_EVERY: u64 = 10;

pub struct Watch {
    probes: Vec<Box<dyn Probe>>,
    rows: Vec<Row>,
    history: History,
    settings: Settings,
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
    /// Whether these are all processes.
    everybody: bool,
    /// Ticks taken, ticks missed, and time spent reading, in nanoseconds.
    own: [u64; 3],
}

impl Watch {
    /// Starts the watch. Nothing is read yet; the first tick is one interval away.
    pub fn start(settings: &Settings) -> Result<Self, WatchError> {
        let options = &settings.options;
        let roles = Roles::with(options.pid.clone(), options.group.clone());
        let scope = Scope::Host(roles.clone());
        let context = Context { root: Path::new("/").to_owned(), scope };
        let mut probes: Vec<_> =
            registry::of(&context).map(|entry| (entry.open)(&context)).collect();
        let wanted = Wanted::default();
        probes.extend(counters(settings, &roles, &wanted));
        if options.profile {
            probes.push(profile::open(sampled(options.profile_hz, roles.clone())));
        }
        let counted = settings.active_set.as_ref();
        probes.extend(counted.map(|devices| active_set::open(Path::new("/"), devices)));
        let origin_ns = clock::now_ns();
        let databases = Database::start_all(&settings.databases, options.sample_ns, origin_ns)?;
        // The first tick already tells their processes from those of other servers.
        if !databases.is_empty() {
            roles.report(databases.iter().flat_map(Database::members));
            if !settings.who {
                let all = databases.iter().flat_map(|it| &it.processes);
                wanted.set(all.map(|(it, _)| it.pid));
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
            settings: settings.clone(),
            recording,
            origin_ns,
            ticks: Ticks::start(&MonotonicClock, options.interval_ns),
            clocks: Clocks::now(),
            jumps: Vec::new(),
            listener: None,
            roles,
            databases,
            wanted,
            everybody: settings.who,
            own: [0; 3],
        })
    }

    /// Publishes each tick to `listener` from now on.
    pub fn tell(&mut self, listener: Listener) {
        self.listener = Some(listener);
    }

    /// Counts the I/O of all processes from now on.
    pub fn count_everybody(&mut self) {
        self.everybody = true;
        self.wanted.set([]);
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
        self.history.forget_before(t_ns.saturating_sub(self.settings.history.get()));
        Ok(())
    }

    /// Watches these databases too, from now on. Fails if others are watched already, or if a
    /// recording is written, whose series were fixed when it began.
    pub fn connect(&mut self, addresses: &[String]) -> Result<(), WatchError> {
        if !self.databases.is_empty() || self.recording.is_some() {
            return Err(WatchError::Fixed);
        }
        let samples = self.settings.options.sample_ns;
        let databases = Database::start_all(addresses, samples, self.origin_ns)?;
        for info in databases.iter().flat_map(Database::infos) {
            self.history.add_probe(info);
        }
        self.roles.report(databases.iter().flat_map(Database::members));
        self.databases = databases;
        Ok(())
    }

    /// Creates another recording of these series.
    pub(crate) fn begin_recording(
        &self,
        destination: &Destination,
        series: &[ProbeInfo],
    ) -> Result<RecordingSink, WatchError> {
        let Self { settings, databases, origin_ns, .. } = self;
        Ok(RecordingSink::begin(destination, settings, (databases, series), *origin_ns)?)
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
            if !self.everybody {
                self.wanted.set(processes.map(|(member, _)| member.pid));
            }
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

/// Opens the probes of I/O by role and file, and by process.
fn counters(settings: &Settings, roles: &Roles, wanted: &Wanted) -> Vec<Box<dyn Probe>> {
    let charged = settings.who.then(|| roles.clone());
    let kernel = settings.options.kernel();
    if kernel == Kernel::Off {
        let why = || Unmeasured::Off("--no-bpf: I/O is not counted by disk and file".to_owned());
        return charged.map(|roles| io::charged("/".into(), roles, why())).into_iter().collect();
    }
    let spec = kernel_io(kernel, roles.clone(), wanted);
    io::open_by_process(spec, charged).into_iter().flatten().collect()
}

fn kernel_io(kernel: Kernel, roles: Roles, wanted: &Wanted) -> IoSpec {
    IoSpec {
        system_calls: kernel == Kernel::Calls,
        wanted: wanted.clone(),
        resolve: Box::new(move |pid, thread, name| roles.of_any(Path::new("/"), pid, thread, name)),
        ..IoSpec::everybody()
    }
}

fn sampled(per_second: u32, roles: Roles) -> ProfileSpec {
    let root = Path::new("/");
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
