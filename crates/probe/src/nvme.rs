//! `NVMe` controllers: what the device itself counts, for the host's requests and for its media,
//! and its wear and health. docs/nvme.md says what is requested, how often, and what it means.
//!
//! A device that hangs would hold up all other probes, so a separate thread sends the requests.

pub mod log;

use std::collections::BTreeMap;
use std::fmt;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender};
use std::thread;
use std::time::Duration;

use blockstone_base::column::{Column, Origin, Unit};
use blockstone_sys::clock;
use blockstone_sys::nvme::{self, Controller, Log, NvmeError, Page};

use self::log::{Health, OcpHealth};
use crate::source::all_unmeasured;
use crate::{Cell, Context, Probe, Row, Schema, Scope, Unmeasured};

pub const SCHEMA: Schema = Schema {
    probe: "nvme",
    doc: "Each NVMe controller of the host, as of the last reading; they are read every ten \
          seconds. The device's counters cover its whole life.",
    columns: &[
        SYS.state("model", "What the device calls itself."),
        SYS.state("subsystem", "Controllers of one subsystem are ways to the same storage."),
        SYS.state("disks", "Its block devices, separated by blanks."),
        Origin("Blockstone").time("read_at_ns", "When it was read, on the monotonic clock."),
        HEALTH.bytes(
            "host_read_bytes",
            "Bytes that the host read (kept in units of 512,000); empty where not reported.",
        ),
        HEALTH.bytes(
            "host_written_bytes",
            "Bytes that the host wrote (kept in units of 512,000); empty where not reported.",
        ),
        HEALTH.count("host_read_commands", "Reads that the host sent."),
        HEALTH.count("host_write_commands", "Writes that the host sent."),
        HEALTH.time("controller_busy_ns", "Time busy with I/O commands (kept in minutes)."),
        OCP.bytes("media_written_bytes", "Bytes written to the media, for whatever reason."),
        OCP.bytes("media_read_bytes", "Bytes read from the media, for whatever reason."),
        HEALTH.state("critical_warning", "What the device warns of; `none` if of nothing."),
        HEALTH.level("temperature_kelvin", Unit::Count, "Temperature of the controller."),
        HEALTH.level("used_ppm", Unit::Ppm, "Life used, as its vendor estimates; may pass 100 %."),
        HEALTH.level("available_spare_ppm", Unit::Ppm, "Spare capacity that is left."),
        HEALTH.level("spare_threshold_ppm", Unit::Ppm, "Spare below which the device warns."),
        HEALTH.level("media_errors", Unit::Count, "Data that could not be read back or verified."),
        HEALTH.level("error_log_entries", Unit::Count, "Entries in the error log, ever."),
        HEALTH.level("unsafe_shutdowns", Unit::Count, "Losses of power without notice."),
        HEALTH.level("power_cycles", Unit::Count, "Times it was switched on."),
        HEALTH.level("power_on_hours", Unit::Count, "Hours it was on."),
    ],
};

const SYS: Origin = Origin("/sys/class/nvme/*");
const HEALTH: Origin = Origin("NVMe log page 02h (SMART)");
const OCP: Origin = Origin("NVMe log page C0h (OCP)");
/// Number of columns of [`SYS`].
const STATES: usize = 3;

/// Interval at which devices are read. Some stop other commands for a moment while they answer.
pub const READ_EVERY: Duration = Duration::from_secs(10);
/// Maximum time to wait for the first reading.
const FIRST_WAIT: Duration = Duration::from_millis(500);
const PERCENT_PPM: u64 = 10_000;
const MINUTE_NS: u64 = 60_000_000_000;

/// The source of log pages.
pub trait Logs: Send {
    fn read(&mut self, controller: &str, log: Log) -> Result<Page, NvmeError>;
}

/// The devices below this root.
struct Devices(PathBuf);

impl Logs for Devices {
    fn read(&mut self, controller: &str, log: Log) -> Result<Page, NvmeError> {
        nvme::read(&self.0, controller, log)
    }
}

pub fn open(context: &Context) -> Box<dyn Probe> {
    match context.scope {
        Scope::Host(_) => open_with(&context.root, Box::new(Devices(context.root.clone()))),
        Scope::Target(_) | Scope::Pages(_) => Box::new(Nvme::default()),
    }
}

/// Opens the probe with another source of log pages; the controllers are those of /sys below
/// `root`.
pub fn open_with(root: &Path, logs: Box<dyn Logs>) -> Box<dyn Probe> {
    let controllers = nvme::controllers(root);
    if controllers.is_empty() {
        return Box::new(Nvme::default());
    }
    let (sender, readings) = mpsc::channel();
    let (stop, stopped) = mpsc::channel();
    let mut reader = Reader { logs, refused: BTreeMap::new() };
    let asked = controllers.clone();
    let work = move || {
        loop {
            let seen = asked.iter().map(|it| reader.read(&it.name)).collect();
            let ended = sender.send(seen).is_err();
            if ended || stopped.recv_timeout(READ_EVERY) != Err(RecvTimeoutError::Timeout) {
                return;
            }
        }
    };
    // If the thread cannot be started, everything stays unknown, as with a device that does not
    // answer.
    let _ = thread::Builder::new().name("nvme".to_owned()).spawn(work);
    let first = readings.recv_timeout(FIRST_WAIT).unwrap_or_default();
    Box::new(Nvme { controllers, last: first, readings: Some(readings), _stop: Some(stop) })
}

#[derive(Default)]
struct Nvme {
    controllers: Vec<Controller>,
    /// Readings of each controller, in the same order; empty before the first.
    last: Vec<Reading>,
    readings: Option<Receiver<Vec<Reading>>>,
    /// Dropped to end the thread, which is not joined: its device may hang.
    _stop: Option<Sender<()>>,
}

/// The answer of a controller, or the reason why there is none.
#[derive(Debug)]
struct Reading {
    at_ns: u64,
    health: Result<Health, Unmeasured>,
    ocp: Result<OcpHealth, Unmeasured>,
}

impl fmt::Debug for Nvme {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { controllers, last, .. } = self;
        let mut fields = f.debug_struct("Nvme");
        fields.field("controllers", controllers).field("last", last).finish_non_exhaustive()
    }
}

impl Probe for Nvme {
    fn schema(&self) -> &'static Schema {
        &SCHEMA
    }

    fn sample(&mut self, rows: &mut Vec<Row>) {
        if let Some(last) = self.readings.as_ref().and_then(|all| all.try_iter().last()) {
            self.last = last;
        }
        let all = self.controllers.iter().enumerate();
        rows.extend(all.map(|(index, controller)| row(controller, self.last.get(index))));
    }

    fn unmeasured(&self) -> Vec<(&'static str, Unmeasured)> {
        if self.controllers.is_empty() {
            let why = "no NVMe controller in /sys/class/nvme".to_owned();
            return all_unmeasured(&SCHEMA, &Unmeasured::NotInVersion(why));
        }
        let why = |(index, column): (usize, &Column)| {
            let of = |at: usize| why(&self.controllers[at], self.last.get(at), index, column);
            // A column counts as unmeasured if no controller has it.
            let reasons = (0..self.controllers.len()).map(of);
            Some((column.name, reasons.collect::<Option<Vec<_>>>()?.into_iter().next()?))
        };
        SCHEMA.columns.iter().enumerate().filter_map(why).collect()
    }
}

fn row(controller: &Controller, reading: Option<&Reading>) -> Row {
    let text = |text: Option<String>| text.map_or(Cell::Unmeasured, Cell::Text);
    let Controller { name, model, subsystem, disks } = controller.clone();
    let mut cells = vec![text(model), text(subsystem), Cell::Text(disks.join(" "))];
    let health = reading.and_then(|reading| reading.health.as_ref().ok());
    let ocp = reading.and_then(|reading| reading.ocp.as_ref().ok());
    let percent = |of: fn(&Health) -> u8| health.map(|it| u64::from(of(it)) * PERCENT_PPM);
    let count = |of: fn(&Health) -> u64| health.map(of);
    let any = health.is_some() || ocp.is_some();
    let counters = [
        reading.filter(|_| any).map(|reading| reading.at_ns),
        health.and_then(|it| it.read_bytes),
        health.and_then(|it| it.written_bytes),
        count(|it| it.read_commands),
        count(|it| it.write_commands),
        health.map(|it| it.busy_minutes.saturating_mul(MINUTE_NS)),
        ocp.map(|it| it.media_written_bytes),
        ocp.map(|it| it.media_read_bytes),
    ];
    let levels = [
        health.and_then(|it| it.temperature_kelvin.map(u64::from)),
        percent(|it| it.used_percent),
        percent(|it| it.available_spare_percent),
        percent(|it| it.spare_threshold_percent),
        count(|it| it.media_errors),
        count(|it| it.error_log_entries),
        count(|it| it.unsafe_shutdowns),
        count(|it| it.power_cycles),
        count(|it| it.power_on_hours),
    ];
    cells.extend(counters.map(Cell::from));
    cells.push(text(health.map(|it| log::warnings(it.critical_warning))));
    cells.extend(levels.map(Cell::from));
    Row { object: name, cells }
}

/// Returns why a column of a controller is empty; `None` if it is not.
fn why(
    controller: &Controller,
    reading: Option<&Reading>,
    index: usize,
    column: &Column,
) -> Option<Unmeasured> {
    if row(controller, reading).cells[index] != Cell::Unmeasured {
        return None;
    }
    let name = &controller.name;
    let Some(reading) = reading else {
        return Some(if index < STATES {
            Unmeasured::NotInVersion(format!("no {} in /sys/class/nvme/{name}", column.name))
        } else {
            Unmeasured::NoEvidence(format!("{name} has not answered yet"))
        });
    };
    let refusal = match column.source {
        source if source == OCP.0 => reading.ocp.as_ref().err(),
        _ => reading.health.as_ref().err(),
    };
    let absent = || {
        Unmeasured::NotInVersion(format!(
            "{name} does not report {} ({})",
            column.name, column.source
        ))
    };
    Some(refusal.cloned().unwrap_or_else(absent))
}

struct Reader {
    logs: Box<dyn Logs>,
    /// Controllers that have no OCP log, and why: each further request would be logged as an error.
    refused: BTreeMap<String, Unmeasured>,
}

impl Reader {
    fn read(&mut self, name: &str) -> Reading {
        let page = self.logs.read(name, Log::Health);
        let at_ns = clock::now_ns();
        let short = || Unmeasured::NoEvidence(format!("{name}: its SMART log is too short"));
        let health = page.map_err(|error| reason(&error));
        let health = health.and_then(|page| log::health(&page).ok_or_else(short));
        // A device that does not answer this request gets no others.
        let ocp = match (&health, self.refused.get(name)) {
            (Err(why), _) | (Ok(_), Some(why)) => Err(why.clone()),
            (Ok(_), None) => self.read_ocp(name),
        };
        Reading { at_ns, health, ocp }
    }

    fn read_ocp(&mut self, name: &str) -> Result<OcpHealth, Unmeasured> {
        let page = self.logs.read(name, Log::OcpHealth);
        let other = || {
            let why = format!("log page C0h of {name} is not OCP's but its vendor's own");
            Unmeasured::NotInVersion(why)
        };
        let read = page.map_err(|error| reason(&error));
        let read = read.and_then(|page| log::ocp_health(&page).ok_or_else(other));
        if let Err(why @ Unmeasured::NotInVersion(_)) = &read {
            self.refused.insert(name.to_owned(), why.clone());
        }
        read
    }
}

fn reason(error: &NvmeError) -> Unmeasured {
    let why = error.to_string();
    match error {
        NvmeError::Refused { .. } => Unmeasured::NotInVersion(why),
        NvmeError::Open { source, .. } | NvmeError::Send { source, .. } => match source.kind() {
            io::ErrorKind::PermissionDenied => Unmeasured::NotPermitted(format!("{why}; root may")),
            io::ErrorKind::NotFound => Unmeasured::NotInVersion(why),
            _ => Unmeasured::NoEvidence(why),
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Controllers `nvme0` with the OCP log, `nvme1` without that log, `nvme2` that may not be
    /// opened.
    struct Three;

    const OCP_GUID: [u8; 16] = [
        0xC5, 0xAF, 0x10, 0x28, 0xEA, 0xBF, 0xF2, 0xA4, 0x9C, 0x4F, 0x6F, 0x7C, 0xC9, 0x14, 0xD5,
        0xAF,
    ];

    impl Logs for Three {
        fn read(&mut self, controller: &str, log: Log) -> Result<Page, NvmeError> {
            let path = format!("/dev/{controller}");
            let mut page = [0; nvme::PAGE_BYTES];
            match (controller, log) {
                ("nvme2", _) => {
                    let source = io::ErrorKind::PermissionDenied.into();
                    return Err(NvmeError::Open { path, source });
                }
                ("nvme1", Log::OcpHealth) => {
                    return Err(NvmeError::Refused { path, number: 0xC0, status: 0x109 });
                }
                (_, Log::OcpHealth) => {
                    page[..2].copy_from_slice(&7919_u16.to_le_bytes());
                    page[496..].copy_from_slice(&OCP_GUID);
                }
                (_, Log::Health) => {
                    page[..6].copy_from_slice(&[2, 0x37, 0x01, 97, 11, 3]);
                    (page[48], page[64]) = (13, 7);
                    page[128] = 17;
                }
            }
            Ok(page)
        }
    }

    /// Returns the rows and the reasons of these controllers.
    fn look(controllers: &[&str]) -> (Vec<Row>, BTreeMap<&'static str, Unmeasured>) {
        let root = tempfile::tempdir().unwrap();
        for name in controllers {
            let directory = root.path().join("sys/class/nvme").join(name);
            std::fs::create_dir_all(&directory).unwrap();
            std::fs::write(directory.join("model"), "Disk\n").unwrap();
            std::fs::write(directory.join("subsysnqn"), format!("nqn.{name}\n")).unwrap();
        }
        let mut probe = open_with(root.path(), Box::new(Three));
        let mut rows = Vec::new();
        probe.sample(&mut rows);
        (rows, probe.unmeasured().into_iter().collect())
    }

    fn cell(row: &Row, name: &str) -> Cell {
        row.cells[SCHEMA.columns.iter().position(|column| column.name == name).unwrap()].clone()
    }

    #[test]
    fn a_controller_of_ocp_tells_all_but_what_it_does_not_report() {
        let (rows, why) = look(&["nvme0"]);
        for (column, expected) in [
            ("host_written_bytes", 13 * 512_000),
            ("media_written_bytes", 7919),
            ("temperature_kelvin", 311),
            ("used_ppm", 30_000),
            ("available_spare_ppm", 970_000),
            ("spare_threshold_ppm", 110_000),
            ("power_on_hours", 17),
        ] {
            assert_eq!(cell(&rows[0], column), Cell::Value(expected), "{column}");
        }
        assert_eq!(cell(&rows[0], "critical_warning"), Cell::Text("temperature".into()));
        let reasons: Vec<&str> = why.keys().copied().collect();
        assert_eq!(reasons, ["host_read_bytes"], "{why:?}");
    }

    #[test]
    fn without_the_log_of_ocp_the_media_are_unknown_and_the_reason_is_the_devices() {
        let (rows, why) = look(&["nvme1"]);
        assert_eq!(cell(&rows[0], "media_written_bytes"), Cell::Unmeasured);
        assert_eq!(cell(&rows[0], "host_written_bytes"), Cell::Value(13 * 512_000));
        let Unmeasured::NotInVersion(why) = &why["media_written_bytes"] else { panic!("{why:?}") };
        assert!(why.contains("C0h of /dev/nvme1") && why.contains("status 0x109"), "{why}");
    }

    #[test]
    fn a_user_who_may_not_open_the_device_is_told_who_may() {
        let (rows, why) = look(&["nvme2"]);
        assert_eq!(cell(&rows[0], "model"), Cell::Text("Disk".into()));
        assert_eq!(cell(&rows[0], "used_ppm"), Cell::Unmeasured);
        let Unmeasured::NotPermitted(why) = &why["used_ppm"] else { panic!("{why:?}") };
        assert!(why.contains("open /dev/nvme2") && why.ends_with("root may"), "{why}");
    }

    #[test]
    fn what_one_controller_has_is_measured_and_a_host_without_any_says_so() {
        let (rows, why) = look(&["nvme0", "nvme1", "nvme2"]);
        assert_eq!(rows.len(), 3);
        assert!(!why.contains_key("media_written_bytes") && !why.contains_key("used_ppm"));
        let (rows, why) = look(&[]);
        assert_eq!((rows.len(), why.len()), (0, SCHEMA.columns.len()));
        assert!(format!("{why:?}").contains("no NVMe controller"), "{why:?}");
    }

    #[test]
    fn a_device_that_refuses_is_asked_for_that_log_once() {
        struct Counted(u32);
        impl Logs for Counted {
            fn read(&mut self, controller: &str, log: Log) -> Result<Page, NvmeError> {
                self.0 += u32::from(log == Log::OcpHealth);
                assert!(self.0 < 2, "asked again");
                Three.read(controller, log)
            }
        }
        let mut reader = Reader { logs: Box::new(Counted(0)), refused: BTreeMap::new() };
        for _ in 0..3 {
            assert!(reader.read("nvme1").ocp.is_err());
        }
    }
}
