//! The recording of an import: one phase, with rows at the instants of the other tool.

use std::collections::BTreeMap;

use blockstone_base::capability::Capability;
use blockstone_base::column::{Cell, Kind, Reading, Schema, Unmeasured};
use blockstone_base::database::OF_LOAD;
use blockstone_base::identity::{DirectIo, PathKind, StorageTarget};
use blockstone_measure::Opening;
use blockstone_probe::{block, host, registry};
use blockstone_record::manifest::{End, ProbeInfo, Stop};
use blockstone_record::parameters::WatchParameters;
use blockstone_record::{Parameters, RecordError, Recorder};
use jiff::Timestamp;

use super::{Import, Snapshot};
use crate::recorder::{PHASE, whole_phase};
use crate::settings::Destination;

/// Rows in a segment: some 20 MB in memory.
const SEGMENT: usize = 100_000;

/// Contents of a file, determined before anything is written.
#[derive(Clone, Debug, Default)]
pub struct Contents {
    /// Number of instants with readings.
    pub instants: u64,
    /// The first instant, in nanoseconds since 1970.
    pub first_ns: u64,
    pub last_ns: u64,
    /// For each probe, the columns that ever had a value.
    measured: BTreeMap<&'static str, Vec<bool>>,
}

impl Contents {
    pub fn add(&mut self, snapshot: &Snapshot) {
        if self.instants == 0 {
            self.first_ns = snapshot.at_ns;
        }
        let is_new = self.instants == 0 || snapshot.at_ns > self.last_ns;
        self.instants += u64::from(is_new && self.is_tick(snapshot));
        self.last_ns = snapshot.at_ns;
        for reading in &snapshot.readings {
            let known = self.measured.entry(reading.probe).or_default();
            known.resize(reading.cells.len(), false);
            for (known, cell) in known.iter_mut().zip(&reading.cells) {
                *known |= *cell != Cell::Unmeasured;
            }
        }
    }

    /// Whether an instant is a tick. Where the host has rows, one without such a row only shows
    /// what is unknown between two ticks.
    fn is_tick(&self, snapshot: &Snapshot) -> bool {
        let host = host::SCHEMA.probe;
        !self.has(host) || snapshot.readings.iter().any(|reading| reading.probe == host)
    }

    pub fn has(&self, probe: &str) -> bool {
        self.measured.contains_key(probe)
    }

    /// Adds the contents of a later file.
    pub fn extend(&mut self, later: &Self) {
        if self.instants == 0 {
            self.first_ns = later.first_ns;
        }
        self.instants += later.instants;
        self.last_ns = later.last_ns;
        for (probe, columns) in &later.measured {
            let known = self.measured.entry(probe).or_default();
            known.resize(columns.len(), false);
            known.iter_mut().zip(columns).for_each(|(known, column)| *known |= column);
        }
    }

    /// Returns the time from the first instant to the last.
    pub fn length_ns(&self) -> u64 {
        self.last_ns - self.first_ns
    }

    /// Returns the series of the recording. Its ticks are those of the host, which is always
    /// present.
    pub fn series(&self) -> Vec<&'static Schema> {
        let wanted =
            |s: &&Schema| s.probe == host::SCHEMA.probe || self.measured.contains_key(s.probe);
        schemas().filter(wanted).collect()
    }

    /// Notes the reason for empty columns that were not in the import.
    pub fn mark(&self, probes: &mut [ProbeInfo], tool: &str) {
        for info in probes {
            let known = self.measured.get(info.probe.as_str());
            let is_known = |index: usize| known.is_some_and(|known| known[index]);
            let mut lacking: Vec<_> = info.columns.iter_mut().enumerate().collect();
            lacking.retain(|(index, _)| !is_known(*index));
            let names: Vec<String> = lacking.iter().map(|(_, c)| c.name.clone()).collect();
            let why = Unmeasured::not_imported(tool, &names);
            for (_, column) in lacking {
                column.unmeasured = Some(why.clone());
            }
        }
    }
}

/// Returns the schemas that can be imported.
fn schemas() -> impl Iterator<Item = &'static Schema> {
    let probes = registry::ALL.iter().map(|entry| entry.schema);
    probes.chain([&block::TOGETHER]).chain(OF_LOAD.iter().copied())
}

pub struct Writer<'a> {
    contents: &'a Contents,
    recorder: Recorder,
    /// The instant of the current rows; `has_host` is whether the host is among them.
    at_ns: Option<u64>,
    has_host: bool,
    /// Probe and object of the rows of this instant.
    objects: Vec<(&'static str, String)>,
    rows: usize,
}

impl<'a> Writer<'a> {
    pub fn begin(
        to: &Destination,
        argv: &[String],
        import: &'a Import,
    ) -> Result<Self, RecordError> {
        let contents = &import.contents;
        let file = Some(import.imported.file.clone());
        let parameters = WatchParameters { import: file, ..WatchParameters::default() };
        let opening = Opening {
            id: &to.id,
            verb: "watch",
            argv,
            settings: parameters.settings(),
            seed: 0,
            rank: None,
            host: &import.host,
            target: &elsewhere(),
            capabilities: &[],
        };
        let mut manifest = opening.manifest();
        manifest.started_at = instant(contents.first_ns);
        manifest.ended_at = Some(instant(contents.last_ns));
        manifest.imported = Some(import.imported.clone());
        let mut recorder = Recorder::create(&to.dir, manifest, &contents.series())?;
        contents.mark(&mut recorder.manifest().probes, &import.imported.tool);
        let objects = Vec::new();
        Ok(Self { contents, recorder, at_ns: None, has_host: false, objects, rows: 0 })
    }

    pub fn add(&mut self, snapshot: &Snapshot) -> Result<(), RecordError> {
        if self.at_ns != Some(snapshot.at_ns) {
            self.end_instant()?;
            self.at_ns = Some(snapshot.at_ns);
            self.objects.clear();
        }
        let t_ns = snapshot.at_ns - self.contents.first_ns;
        for reading in &snapshot.readings {
            self.has_host |= reading.probe == host::SCHEMA.probe;
            self.rows += 1;
            self.recorder.row(reading.probe, t_ns, PHASE, &reading.object, &reading.cells)?;
            self.objects.push((reading.probe, reading.object.clone()));
        }
        Ok(())
    }

    /// Marks the time from the last instant to this one as unknown.
    pub fn interrupt(&mut self, until_ns: u64) -> Result<(), RecordError> {
        let Some(last_ns) = self.at_ns else { return Ok(()) };
        let objects = std::mem::take(&mut self.objects).into_iter();
        let empty = objects.filter_map(|(probe, object)| {
            let cells = empty_row(schemas().find(|schema| schema.probe == probe)?);
            Some(Reading { probe, object, cells })
        });
        let readings = empty.collect();
        self.add(&Snapshot { at_ns: last_ns + (until_ns - last_ns) / 2, readings })
    }

    pub fn close(mut self, end: End) -> Result<(), RecordError> {
        self.end_instant()?;
        let phase = whole_phase(0, self.contents.length_ns(), Stop::WorkDone);
        self.recorder.manifest().phases = vec![phase];
        self.recorder.close(end)
    }

    /// Ends an instant. Each needs a row of the host, which makes it a tick, unless that series has
    /// rows of its own.
    fn end_instant(&mut self) -> Result<(), RecordError> {
        let Some(at_ns) = self.at_ns else { return Ok(()) };
        if !std::mem::take(&mut self.has_host) && !self.contents.has(host::SCHEMA.probe) {
            let t_ns = at_ns - self.contents.first_ns;
            let cells = empty_row(&host::SCHEMA);
            self.recorder.row(host::SCHEMA.probe, t_ns, PHASE, "", &cells)?;
        }
        if self.rows >= SEGMENT {
            self.rows = 0;
            self.recorder.end_segment()?;
        }
        Ok(())
    }
}

/// Formats wall-clock time as RFC 3339.
fn instant(at_ns: u64) -> String {
    let at = Timestamp::from_nanosecond(i128::from(at_ns)).unwrap_or(Timestamp::UNIX_EPOCH);
    at.to_string()
}

/// Returns the storage of the imported machine, about which nothing is known.
fn elsewhere() -> StorageTarget {
    let why = "imported: the storage of that machine is unknown";
    StorageTarget {
        path: "/".to_owned(),
        kind: PathKind::Directory,
        file_system: None,
        devices: Vec::new(),
        direct_io: DirectIo {
            capability: Capability::degraded(why),
            offset_align_bytes: 512,
            memory_align_bytes: 512,
            source: "not asked".to_owned(),
        },
        caps: Vec::new(),
        free_bytes: 0,
    }
}

pub fn empty_row(schema: &Schema) -> Vec<Cell> {
    vec![Cell::Unmeasured; schema.columns.len()]
}

pub fn is_state(schema: &Schema, index: usize) -> bool {
    schema.columns[index].kind == Kind::State
}
