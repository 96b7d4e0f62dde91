//! Writes a made-up recording of `watch`: several days at an interval of one second, with the given
//! number of disks and process roles. Prints the value of each disk counter every twelve hours:
//! `hour disk column value`.
//!
//! `long_recording DIR DAYS DISKS ROLES`
#![allow(clippy::print_stdout, reason = "what it prints is what it is for")]

use std::path::PathBuf;

use blockstone_base::column::{Cell, Kind, Schema};
use blockstone_base::rng::Rng;
use blockstone_probe::{block, host, processes};
use blockstone_record::manifest::{End, Group, Manifest, Phase};
use blockstone_record::{Recorder, testing};

const SECOND_NS: u64 = 1_000_000_000;
const HOUR_S: u64 = 3600;
const DAY_S: u64 = 86_400;
/// Hours between two prints of the counters.
const EVERY: u64 = 12;
/// Seconds after which rows are written to disk, as in `watch`.
const SEGMENT_S: u64 = 300;
/// One column in three changes, as on a machine that is mostly idle.
const MOVING: u64 = 3;
const USAGE: &str = "usage: long_recording DIR DAYS DISKS ROLES";

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let [dir, numbers @ ..] = &std::env::args().skip(1).collect::<Vec<String>>()[..] else {
        return Err(USAGE.into());
    };
    let numbers: Vec<u64> = numbers.iter().map(|text| text.parse()).collect::<Result<_, _>>()?;
    let [days, disks, roles] = numbers[..] else { return Err(USAGE.into()) };
    let dir = PathBuf::from(dir);
    let schemas = [&host::SCHEMA, &block::SCHEMA, &processes::SCHEMA];
    let manifest = Manifest { verb: "watch".to_owned(), ..testing::manifest() };
    let mut recorder = Recorder::create(&dir, manifest, &schemas)?;
    let disks = (0..disks).map(|disk| Source::new(&block::SCHEMA, format!("nvme{disk}n1")));
    let roles = (0..roles).map(|role| Source::new(&processes::SCHEMA, format!("db/worker {role}")));
    let mut sources = vec![Source::new(&host::SCHEMA, String::new())];
    sources.extend(disks.chain(roles));
    let mut random = Rng::new(1, 0);
    let last_s = days * DAY_S;
    for second in 0..=last_s {
        for source in &mut sources {
            source.look(&mut random);
            let probe = source.schema.probe;
            recorder.row(probe, second * SECOND_NS, 0, &source.object, &source.cells)?;
            if second.is_multiple_of(EVERY * HOUR_S) && probe == block::SCHEMA.probe {
                source.print(second / HOUR_S);
            }
        }
        if second.is_multiple_of(SEGMENT_S) {
            recorder.end_segment()?;
        }
    }
    let end_ns = last_s * SECOND_NS;
    let phase = Phase {
        window_start_ns: 0,
        start_ns: 0,
        window_end_ns: end_ns,
        end_ns,
        ..testing::phase("watch", Group::Watch)
    };
    recorder.manifest().phases = vec![phase];
    recorder.close(End::Complete)?;
    Ok(())
}

/// An object and the current values of its columns.
struct Source {
    schema: &'static Schema,
    object: String,
    cells: Vec<Cell>,
}

impl Source {
    fn new(schema: &'static Schema, object: String) -> Self {
        let cell = |kind| match kind {
            Kind::State => Cell::Text("disk".to_owned()),
            Kind::Counter | Kind::Gauge => Cell::Value(0),
        };
        let cells = schema.columns.iter().map(|column| cell(column.kind)).collect();
        Self { schema, object, cells }
    }

    fn print(&self, hour: u64) {
        for (cell, column) in self.cells.iter().zip(self.schema.columns) {
            if let (Cell::Value(value), Kind::Counter) = (cell, column.kind) {
                println!("{hour} {} {} {value}", self.object, column.name);
            }
        }
    }

    fn look(&mut self, random: &mut Rng) {
        for (cell, column) in self.cells.iter_mut().zip(self.schema.columns) {
            let Cell::Value(value) = cell else { continue };
            if random.below(MOVING) == 0 {
                match column.kind {
                    Kind::Counter => *value += random.below(1 << 14) as i64,
                    _ => *value = random.below(64) as i64,
                }
            }
        }
    }
}
