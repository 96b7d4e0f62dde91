//! Checks that `check durability` reports nothing as lost that a disk must have after any flush. A
//! machine emulated by QEMU writes to a disk whose requests QEMU logs, in the format of the
//! kernel's dm-log-writes. Meanwhile the lengths of that log and of the witness's log are recorded:
//! whatever the witness knows at that time was flushed before. Then the disk is rebuilt from the
//! log, first as it was after the last flush before that time, then with some of the writes that
//! followed; each is verified against what the witness knew.

use std::fs::{self, OpenOptions};
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::thread::sleep;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use blockstone_base::Bytes;
use blockstone_base::rng::Rng;
use blockstone_testkit::{DeviceSpec, Guest, GuestDisk, LoopDevice, Power};

use super::Lab;
use super::measure::Product;
use super::power_cut::Witness;
use crate::goals::{Column, Goal, Point, Results, column};
use crate::packages;

const SIZE: Bytes = Bytes::mib(32);
/// Number of places in the log that are tried.
const PLACES: usize = 30;
/// Length of its log, in bytes, from which the witness knows of a run and of some writes.
const BEGUN: u64 = 2048;
const PATIENCE: Duration = Duration::from_mins(3);

const COLUMNS: &[Column] = &[
    column("disks", "disks\nbuilt", 0),
    column("checked", "flushed blocks\nchecked", 0),
    column("missing", "of these lost\nor torn", 0),
    column("unflushed", "not flushed,\nand lost", 0),
];

pub fn run(lab: &Lab) -> Result<Results> {
    packages::guest()?;
    let product = Product::build(lab)?;
    product.begin("a machine writes")?;
    let log = product.scratch().join("log");
    let (requests, places) = write(&product, &log)?;
    let known = fs::read(&log).context("read the log of the witness")?;
    let flushes = requests.iter().filter(|it| it.is_flush()).count();
    eprintln!("    {} requests, {flushes} of them flushes", requests.len());
    let disk = LoopDevice::create(DeviceSpec { size: SIZE, ..DeviceSpec::default() })?;
    let device = disk.device();
    let medium = OpenOptions::new().write(true).open(device).context("open the disk")?;
    let put = |at: u64, data: &[u8]| medium.write_all_at(data, at).context("write to the disk");
    let mut rng = Rng::new(1, 0);
    let (mut exact, mut between) = (Found::default(), Found::default());
    let mut done = 0;
    for place in places {
        product.begin("verify")?;
        let (flush, next) = place.around(&requests);
        for request in &requests[done..flush] {
            put(request.at, &request.data)?;
        }
        done = flush;
        exact.add(&product, device, &known[..place.known])?;
        for request in &requests[flush..next] {
            for (at, sector) in (request.at..).step_by(512).zip(request.data.chunks(512)) {
                if rng.below(2) == 0 {
                    put(at, sector)?;
                }
            }
        }
        between.add(&product, device, &known[..place.known])?;
    }
    let goals = vec![
        Goal::at_least("disks built", exact.disks, PLACES as f64 / 2.0),
        Goal::within("missing after a flush", exact.missing, 0.0, 0.0),
        Goal::within("missing between two flushes", between.missing, 0.0, 0.0),
        Goal::at_least("not flushed, and lost", exact.unflushed, 1.0),
    ];
    let points = vec![exact.point("after a flush"), between.point("between two flushes")];
    Ok(Results { columns: COLUMNS, points, goals })
}

/// A write, or a flush if there is no data.
struct Request {
    /// Offset of the entry in the log.
    logged_at: u64,
    at: u64,
    data: Vec<u8>,
}

impl Request {
    fn is_flush(&self) -> bool {
        self.data.is_empty()
    }
}

/// Bytes that the witness had written to its log, and bytes that QEMU had written to the disk's log
/// at that time or later.
struct LogPosition {
    known: usize,
    logged: u64,
}

impl LogPosition {
    /// Returns the last flush that was logged by then, and the next one.
    fn around(&self, requests: &[Request]) -> (usize, usize) {
        let then = requests.partition_point(|it| it.logged_at < self.logged);
        let flush = requests[..then].iter().rposition(Request::is_flush).unwrap_or(0);
        let next = requests[then..].iter().position(Request::is_flush);
        (flush, next.map_or(requests.len(), |after| then + after))
    }
}

/// Has a machine write for some seconds, and records the places.
fn write(product: &Product<'_>, log: &Path) -> Result<(Vec<Request>, Vec<LogPosition>)> {
    let guest = Guest::create(SIZE, GuestDisk::Logged)?;
    let witness = Witness::start(product, log)?;
    let methods = "fsync,fdatasync,dsync,direct-dsync,direct-none";
    let job = format!(
        "blockstone check durability --witness $HOST:{} --methods {methods} --for 5s \
         --destroy $DISK $DISK\n",
        witness.port
    );
    guest.install(&job, &[product.binary()])?;
    guest.power(Power::On)?;
    let mut places = Vec::new();
    let until = Instant::now() + PATIENCE;
    while guest.runs() {
        if Instant::now() > until {
            bail!("it did not end:\n{}", guest.console());
        }
        // In this order: the disk's log may be ahead of what the witness can know, but never
        // behind.
        let known = fs::metadata(log).map_or(0, |found| found.len());
        let logged = fs::metadata(guest.requests()).map_or(0, |found| found.len());
        if known > BEGUN {
            places.push(LogPosition { known: known as usize, logged });
        }
        sleep(Duration::from_millis(1));
    }
    places.dedup_by_key(|place| place.known);
    let each = places.len().div_ceil(PLACES).max(1);
    let places = places.into_iter().step_by(each).collect();
    let bytes = fs::read(guest.requests()).context("read what QEMU logged")?;
    let requests = parse(&bytes).with_context(|| guest.console())?;
    Ok((requests, places))
}

/// Parses the format of Linux, drivers/md/dm-log-writes.c: little-endian; the first sector
/// describes the log, then each entry takes one sector, followed by its data.
fn parse(log: &[u8]) -> Result<Vec<Request>> {
    const MAGIC: u64 = 0x006a_7366_7773_6872;
    const DISCARD: u64 = 4;
    let number = |at: usize| {
        let bytes = log.get(at..at + 8).and_then(|bytes| bytes.try_into().ok());
        bytes.map(u64::from_le_bytes).context("the log ends early")
    };
    ensure!(number(0)? == MAGIC, "this is not a log of writes");
    let (entries, sector) = (number(16)?, number(24)? as u32 as usize);
    let (mut requests, mut at) = (Vec::new(), sector);
    for _ in 0..entries {
        let [to, sectors, flags] = [number(at)?, number(at + 8)?, number(at + 16)?];
        let length = if flags & DISCARD == 0 { sectors as usize * sector } else { 0 };
        let data = log.get(at + sector..at + sector + length).context("the log ends early")?;
        if flags & DISCARD == 0 {
            let (logged_at, data) = (at as u64, data.to_vec());
            requests.push(Request { logged_at, at: to * sector as u64, data });
        }
        at += sector + length;
    }
    Ok(requests)
}

#[derive(Default)]
struct Found {
    disks: f64,
    checked: f64,
    missing: f64,
    unflushed: f64,
}

impl Found {
    /// Verifies a disk with a witness that knows no more than this.
    fn add(&mut self, product: &Product<'_>, device: &Path, known: &[u8]) -> Result<()> {
        let log = product.scratch().join("known");
        fs::write(&log, known).context("write what the witness knew")?;
        let witness = Witness::start(product, &log)?;
        let mut check = std::process::Command::new(product.binary());
        check.args(["check", "durability", "--verify", "--json", "--witness"]);
        check.arg(format!("127.0.0.1:{}", witness.port)).arg(device);
        let document = product.document(&mut check)?;
        self.disks += 1.0;
        let streams = document["tables"]["durability-streams"].as_array();
        for stream in streams.with_context(|| format!("find the writers in {document:#}"))? {
            let of = |key: &str| stream[key].as_f64().unwrap_or_default();
            let missing = of("lost") + of("torn") + of("misplaced");
            if stream["control"] == true {
                self.unflushed += missing;
            } else {
                self.checked += of("checked");
                self.missing += missing;
            }
        }
        Ok(())
    }

    fn point(&self, name: &str) -> Point {
        let values = vec![self.disks, self.checked, self.missing, self.unflushed];
        Point { name: name.to_owned(), values }
    }
}
