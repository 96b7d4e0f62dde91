//! The miniature database instance as a target.

mod samples;

use std::io::ErrorKind;
use std::ops::ControlFlow;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use blockstone_base::Capability;
use blockstone_base::column::{Cell, Reading};
use blockstone_base::database::{DIRECT_READ, DISK, EVENT, INSTANCE, ROLE};
use blockstone_base::load::Op;
use blockstone_base::units::{Bytes, format_ns};
use blockstone_instance::disk::DiskError;
use blockstone_instance::group::{DiskGroup, DiskSpec, FileSpec, GroupError, GroupSpec};
use blockstone_instance::wait::{Event, Role, Transfers};
use blockstone_instance::{
    Instance, InstanceError, InstanceSpec, OpenSpec, Recovery, RedoStress, Scan, Session, Snapshot,
};
use blockstone_sys::thread::scoped;
use blockstone_sys::usage::ThreadUsage;
use parking_lot::{Mutex, RwLock};

use crate::family::Family;
use crate::options::Io;
use crate::spec::{Kept, TargetSpec};
use crate::sql::error::SqlError;
use crate::target::{
    Demand, Description, DirectScan, Executed, Latencies, Loading, Operation, Progress, ScanHow,
    Statement, TableStep, Target, TargetError, TargetSession, unless,
};

/// Number of redo logs, written in rotation.
const REDO_LOGS: u32 = 3;
/// Bytes per read of a scan, as in databases.
const MULTIBLOCK: Bytes = Bytes::mib(1);
/// The processor time of each session is read from its own file. That takes at most this fraction
/// of the time: 1 ÷ 200.
const PROCESSOR_SHARE: u32 = 200;
const TELL: Duration = Duration::from_millis(50);

pub const FAMILY: Family = Family {
    name: "instance",
    in_process: true,
    samples_sessions: true,
    through_page_cache: false,
    io_bounded: None,
    // The spec sets it.
    io: |_, _| Ok(Vec::new()),
    options: &[],
    durable_settings: &[],
};

pub fn demand(spec: &TargetSpec) -> Result<Demand, TargetError> {
    let (made, opened, group) = specs(spec);
    let files = made.files()?;
    opened.check(&made, spec.sessions)?;
    if spec.reuse {
        return Ok(Demand { places: vec![Bytes(0); spec.places.len()] });
    }
    let places = DiskGroup::requirements(&group, &files)?;
    Ok(Demand { places })
}

/// Returns the contents of the group at `places`; `None` if there is no group.
pub fn kept(places: &[PathBuf]) -> Result<Option<Kept>, TargetError> {
    let group = match DiskGroup::open(places, true) {
        Ok(group) => group,
        Err(GroupError::NotADisk { .. }) => return Ok(None),
        // The file is shorter than the header of a disk.
        Err(GroupError::Disk(DiskError { offset: 0, ref source, .. }))
            if source.kind() == ErrorKind::UnexpectedEof =>
        {
            return Ok(None);
        }
        Err(error) => return Err(error.into()),
    };
    let (made, loaded) = Instance::inspect(&group)?;
    Ok(Some(Kept {
        schemas: loaded,
        rows: made.rows,
        scan_rows: made.scan_blocks,
        block: made.block,
        obfuscate: f64::from(made.random_percent) / 100.0,
        redo: made.redo,
        redundancy: group.redundancy(),
        allocation_unit: group.allocation_unit(),
        seed: made.seed,
    }))
}

/// Creates a disk group with an empty instance and opens it, or opens an existing one.
pub fn open(
    spec: &TargetSpec,
    progress: &mut Progress<'_>,
) -> Result<Arc<dyn Target>, TargetError> {
    let (made, opened, group) = specs(spec);
    let paths: Vec<PathBuf> = spec.places.iter().map(|place| place.path.clone()).collect();
    let (group, instance) = if spec.reuse {
        let group = DiskGroup::open(&paths, spec.options.io != Some(Io::Buffered))?;
        let instance = Instance::open(&group, &opened)?;
        (group, instance)
    } else {
        let files = made.files()?;
        let group = lay_out(&group, &files, spec.options.block_bytes, progress)?;
        let instance =
            Instance::create(&made, &group).and_then(|()| Instance::open(&group, &opened));
        match instance {
            Ok(instance) => (group, instance),
            Err(error) => {
                // If opening a target fails, its places are left as they were.
                drop(group);
                let _ = DiskGroup::remove(&paths);
                return Err(error.into());
            }
        }
    };
    // In the order of disk numbers, which may differ from the order in which the user named them.
    let named = |path: String| {
        let place = spec.places.iter().find(|place| place.path.as_os_str() == path.as_str());
        place.map_or(path, |place| place.name.clone())
    };
    let recovered = recovered(instance.recovery()).filter(|_| spec.reuse);
    Ok(Arc::new(InstanceTarget {
        names: group.disk_names().into_iter().map(named).collect(),
        direct: group.direct(),
        instance: RwLock::new(Some(instance)),
        recovered,
        orders: Orders {
            first_key: spec.rows.saturating_sub(spec.order_rows),
            blocks: spec.order_rows,
        },
        redo_stress: spec.redo_stress,
        multiblock: (MULTIBLOCK.get() / spec.options.block_bytes.get()) as u32,
        processor: Mutex::new(Processor {
            due: Instant::now(),
            readings: Vec::new(),
            each: Vec::new(),
        }),
        samples_due: Mutex::new(Instant::now()),
        counts_due: Mutex::new(Instant::now()),
    }))
}

fn recovered(recovery: &Recovery) -> Option<String> {
    let redo = Bytes(recovery.to.0.saturating_sub(recovery.from.0));
    let mut notes = Vec::new();
    if recovery.records > 0 {
        notes.push(format!(
            "recovered the files of an earlier run: {redo} of redo, {} blocks written in {}",
            recovery.blocks_written,
            format_ns(recovery.elapsed_ns as f64)
        ));
    }
    if let Some(lost) = recovery.lost {
        notes.push(format!(
            "lost all commits of the earlier run behind redo position {}: {} intact ones up to {}, \
             and those in the damaged part before them",
            lost.from, lost.commits, lost.to
        ));
    }
    for (what, blocks) in [
        ("not intact, so reads of them fail", &recovery.damaged),
        ("older than the redo continues, so their last updates are lost", &recovery.stale),
    ] {
        if let Some(first) = blocks.first() {
            notes.push(format!("blocks {what}: {}, from block {first} on", blocks.len()));
        }
    }
    (!notes.is_empty()).then(|| notes.join("; "))
}

fn specs(spec: &TargetSpec) -> (InstanceSpec, OpenSpec, GroupSpec) {
    let made = InstanceSpec {
        block: spec.options.block_bytes,
        schemas: spec.schemas,
        rows: spec.rows,
        // Created tables are stored consecutively in the second table.
        scan_blocks: spec
            .scan_rows
            .saturating_add(u64::from(spec.copies).saturating_mul(spec.rows)),
        redo_logs: REDO_LOGS,
        redo: spec.options.redo_log(),
        seed: spec.seed,
        random_percent: (spec.obfuscate.clamp(0.0, 1.0) * 100.0).round() as u8,
    };
    let opened = OpenSpec {
        cache: spec.options.cache_bytes,
        writers: spec.options.database_writers,
        protection: spec.options.torn_protection,
        accept_loss: spec.options.accept_loss,
        ..OpenSpec::default()
    };
    let disks = spec.places.iter().map(|place| DiskSpec {
        path: place.path.clone(),
        failure_group: place.failure_group.clone(),
    });
    let group = GroupSpec {
        disks: disks.collect(),
        redundancy: spec.options.redundancy,
        allocation_unit: spec.options.allocation_unit_bytes,
        direct: spec.options.io != Some(Io::Buffered),
    };
    (made, opened, group)
}

/// Creates the group on another thread and reports progress from this one.
fn lay_out(
    spec: &GroupSpec,
    files: &[FileSpec],
    block: Bytes,
    progress: &mut Progress<'_>,
) -> Result<DiskGroup, TargetError> {
    let (done, total) = (AtomicU64::new(0), AtomicU64::new(0));
    let aborted = AtomicBool::new(false);
    let report = |bytes: u64, of: u64| {
        done.fetch_max(bytes, Ordering::Relaxed);
        total.store(of, Ordering::Relaxed);
        unless(aborted.load(Ordering::Relaxed))
    };
    thread::scope(|scope| {
        let worker = scoped(scope, "layout", || DiskGroup::create(spec, files, &report));
        let worker = worker.map_err(|error| SqlError::no_thread(&error))?;
        while !worker.is_finished() {
            thread::sleep(TELL);
            let blocks = |bytes: &AtomicU64| bytes.load(Ordering::Relaxed) / block.get();
            let loading = Loading { done: blocks(&done), total: blocks(&total) };
            if progress(loading).is_break() {
                aborted.store(true, Ordering::Relaxed);
            }
        }
        let group = worker.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
        let group = group?;
        if !aborted.load(Ordering::Relaxed) {
            return Ok(group);
        }
        drop(group);
        let paths: Vec<_> = spec.disks.iter().map(|disk| disk.path.clone()).collect();
        DiskGroup::remove(&paths)?;
        Err(TargetError::Interrupted)
    })
}

#[derive(Debug)]
struct InstanceTarget {
    /// `None` after shutdown.
    instance: RwLock<Option<Instance>>,
    names: Vec<String>,
    direct: Capability,
    recovered: Option<String>,
    orders: Orders,
    redo_stress: RedoStress,
    multiblock: u32,
    processor: Mutex<Processor>,
    /// Time of the next sample of the sessions.
    samples_due: Mutex<Instant>,
    /// Time of the next read of the sessions' counters.
    counts_due: Mutex<Instant>,
}

/// Processor time and run queue time of each role at the last read, which takes long with thousands
/// of sessions.
#[derive(Debug)]
struct Processor {
    due: Instant,
    readings: Vec<Reading>,
    /// The same for each process, in the instance's order.
    each: Vec<ThreadUsage>,
}

impl InstanceTarget {
    fn sample_processor(&self, instance: &Instance, exact: bool, readings: &mut Vec<Reading>) {
        let mut processor = self.processor.lock();
        let started = Instant::now();
        if exact || started >= processor.due {
            let mut of_roles = [ThreadUsage::default(); Role::ALL.len()];
            processor.each.clear();
            instance.each_process(|process| {
                let used = process.processor();
                let sum = &mut of_roles[process.role as usize];
                sum.cpu_ns += used.cpu_ns;
                sum.run_queue_ns += used.run_queue_ns;
                processor.each.push(used);
            });
            processor.readings.clear();
            for (role, used) in Role::ALL.iter().zip(of_roles) {
                let both = [("CPU", used.cpu_ns), ("run queue", used.run_queue_ns)];
                processor.readings.extend(both.map(|(event, ns)| Reading {
                    probe: EVENT.probe,
                    object: format!("{}/{event}", role.name()),
                    cells: vec![Cell::Value(0), Cell::from(ns)],
                }));
            }
            processor.due = started + started.elapsed() * PROCESSOR_SHARE;
        }
        readings.extend(processor.readings.iter().cloned());
    }

    fn sample_sessions(&self, instance: &Instance, exact: bool, readings: &mut Vec<Reading>) {
        let (mut due, now) = (self.samples_due.lock(), Instant::now());
        if exact || now >= *due {
            let sessions = samples::look(instance, readings);
            *due = now + samples::PAUSE_PER_SESSION * sessions;
        }
        let mut due = self.counts_due.lock();
        if exact || now >= *due {
            let counted = samples::count(instance, &self.processor.lock().each, exact, readings);
            *due = now + samples::PAUSE_PER_ROW * counted;
        }
    }

    fn sample_disks(&self, instance: &Instance, readings: &mut Vec<Reading>) {
        for (name, disk) in self.names.iter().zip(instance.group().counters()) {
            let moved = Transfers {
                read_ios: disk.reads,
                read_bytes: disk.read_bytes,
                read_ns: disk.read_ns,
                write_ios: disk.writes,
                write_bytes: disk.write_bytes,
                write_ns: disk.write_ns,
            };
            let mut reading = transfers(DISK.probe, name, &moved);
            reading.cells.extend([disk.errors, disk.offline_ns].map(Cell::from));
            readings.push(reading);
        }
    }
}

impl Target for InstanceTarget {
    fn load(&self, progress: &mut Progress<'_>) -> Result<(), TargetError> {
        let instance = self.instance.read();
        let instance = instance.as_ref().ok_or_else(stopped)?;
        let mut flow = ControlFlow::Continue(());
        let mut notes = |done, total| {
            if flow.is_continue() {
                flow = progress(Loading { done, total });
                if flow.is_break() {
                    instance.abandon();
                }
            }
        };
        let loaded = instance.load(instance.spec().schemas, &mut notes);
        if flow.is_break() { Err(TargetError::Interrupted) } else { Ok(loaded?) }
    }

    fn session(&self, index: u32) -> Result<Box<dyn TargetSession>, TargetError> {
        let instance = self.instance.read();
        let instance = instance.as_ref().ok_or_else(stopped)?;
        let (session, block_bytes) = (instance.session(index)?, instance.spec().block.get());
        let scan = Scan::Cached { multiblock: self.multiblock };
        let (orders, redo_stress) = (self.orders, self.redo_stress);
        Ok(Box::new(InstanceSession { orders, block_bytes, session, redo_stress, scan }))
    }

    fn count_sessions(&self, readings: &mut Vec<Reading>) {
        if let Some(instance) = self.instance.read().as_ref() {
            samples::count(instance, &self.processor.lock().each, false, readings);
        }
    }

    fn sample(&self, exact: bool, readings: &mut Vec<Reading>) {
        let instance = self.instance.read();
        let Some(instance) = instance.as_ref() else { return };
        let snapshot = instance.snapshot();
        readings.push(statistics(&snapshot));
        for &role in Role::ALL {
            readings.push(transfers(ROLE.probe, role.name(), &snapshot.transfers(role)));
            for &event in Event::ALL {
                let waits = snapshot.waits(role, event);
                // Zeros are recorded only at an exact look: an event without waits may still occur
                // before the next.
                if exact || waits.count > 0 {
                    let object = format!("{}/{}", role.name(), event.name());
                    let cells = vec![Cell::from(waits.count), Cell::from(waits.time_ns)];
                    readings.push(Reading { probe: EVENT.probe, object, cells });
                }
            }
        }
        self.sample_processor(instance, exact, readings);
        self.sample_disks(instance, readings);
        self.sample_sessions(instance, exact, readings);
    }

    fn take_latencies(&self) -> Vec<Latencies> {
        let instance = self.instance.read();
        let Some(instance) = instance.as_ref() else { return Vec::new() };
        let latencies = instance.take_histograms().into_iter().map(|(role, event, histogram)| {
            let name = format!("{}/{}", role.name(), event.name());
            Latencies { name, op: direction(event), histogram }
        });
        let histogram = instance.take_direct_reads();
        let direct = Latencies { name: DIRECT_READ.to_owned(), op: Op::Read, histogram };
        latencies.chain([direct].into_iter().filter(|of| of.histogram.count() > 0)).collect()
    }

    fn describe(&self) -> Result<Description, TargetError> {
        let notes = self.recovered.iter().cloned().collect();
        Ok(Description { notes, unmeasured: samples::unmeasured(), ..Description::default() })
    }

    fn take_news(&self) -> Vec<String> {
        self.instance.read().as_ref().map_or_else(Vec::new, Instance::take_news)
    }

    fn capabilities(&self) -> Vec<(&'static str, Capability)> {
        let mut capabilities = vec![("direct-io", self.direct.clone())];
        if let Some(instance) = self.instance.read().as_ref() {
            capabilities.push(("background-priority", instance.favoured()));
        }
        capabilities
    }

    fn shutdown(&self) -> Result<(), TargetError> {
        let instance = self.instance.write().take();
        instance.map_or(Ok(()), |instance| Ok(instance.shutdown()?))
    }
}

fn stopped() -> TargetError {
    InstanceError::Stopped.into()
}

fn statistics(snapshot: &Snapshot) -> Reading {
    let cells = INSTANCE.columns.iter().map(|column| match column.name {
        "dirty_blocks" => Cell::from(snapshot.dirty_blocks),
        name => Cell::from(snapshot.statistic_named(name)),
    });
    Reading { probe: INSTANCE.probe, object: String::new(), cells: cells.collect() }
}

fn transfers(probe: &'static str, object: &str, transfers: &Transfers) -> Reading {
    let cells = transfers.values().map(Cell::from).into();
    Reading { probe, object: object.to_owned(), cells }
}

/// Maps an event to an operation of a recording's histograms: a commit, a write or a read.
fn direction(event: Event) -> Op {
    match event {
        Event::LogFileSync => Op::Commit,
        Event::DbFileParallelWrite
        | Event::LogFileParallelWrite
        | Event::ControlFileParallelWrite
        | Event::FreeBufferWaits
        | Event::WriteCompleteWaits
        | Event::LogBufferSpace
        | Event::LogFileSwitch
        | Event::LatchRedoAllocation
        | Event::DirectPathWrite
        | Event::DirectPathSync => Op::Write,
        Event::DbFileSequentialRead
        | Event::DbFileScatteredRead
        | Event::DirectPathRead
        | Event::BufferBusyWaits
        | Event::ReadByOtherSession
        | Event::LatchCacheBuffersChains => Op::Read,
    }
}

/// Orders per block, about the density of tables in databases.
const ORDERS_PER_BLOCK: u64 = 12;

/// Location of orders: their own blocks at the end of a schema, filled one after the other and then
/// reused from the first.
#[derive(Clone, Copy, Debug)]
struct Orders {
    first_key: u64,
    blocks: u64,
}

impl Orders {
    fn key(&self, number: u64) -> u64 {
        self.first_key + number / ORDERS_PER_BLOCK % self.blocks.max(1)
    }
}

struct InstanceSession {
    orders: Orders,
    block_bytes: u64,
    session: Session,
    redo_stress: RedoStress,
    scan: Scan,
}

impl TargetSession for InstanceSession {
    fn execute(&mut self, operation: &Operation) -> Result<Executed, TargetError> {
        let session = &mut self.session;
        match *operation {
            Operation::Select { schema, first_key, rows } => {
                let rows = session.select(schema, first_key, rows.into())?;
                Ok(Executed { rows, commits: 0, ..Executed::default() })
            }
            Operation::Update { schema, first_key, rows } => {
                let stress = self.redo_stress;
                let rows = session.update(schema, first_key, rows.into(), stress)?;
                session.commit()?;
                Ok(Executed { rows, commits: 1, ..Executed::default() })
            }
            Operation::Scan { schema } => {
                let rows = session.scan(schema, self.scan)?;
                Ok(Executed { rows, commits: 0, ..Executed::default() })
            }
        }
    }

    /// The instance locks blocks while it changes them, but not rows: a transaction is a series of
    /// row accesses and a commit.
    fn transact(&mut self, statements: &[Statement]) -> Result<Executed, TargetError> {
        let (session, orders, stress) = (&mut self.session, self.orders, self.redo_stress);
        let mut rows = 0;
        for statement in statements {
            rows += match *statement {
                Statement::Select { schema, first_key, rows } => {
                    session.select(schema, first_key, rows.into())?
                }
                Statement::Update { schema, key } => session.update(schema, key, 1, stress)?,
                Statement::Insert { schema, number } | Statement::Delete { schema, number } => {
                    session.update(schema, orders.key(number), 1, stress)?
                }
                Statement::Orders { schema, first, count } => {
                    let numbers = first..first + u64::from(count);
                    let mut keys: Vec<u64> = numbers.map(|number| orders.key(number)).collect();
                    keys.dedup();
                    keys.iter()
                        .map(|&key| session.select(schema, key, 1))
                        .sum::<Result<u64, _>>()?
                }
            };
        }
        let writes = statements.iter().any(Statement::writes);
        if writes {
            session.commit()?;
        }
        Ok(Executed { rows, commits: writes.into(), ..Executed::default() })
    }

    /// The instance has no catalogue: a new table takes the blocks of the last one dropped.
    fn write_table(&mut self, step: &TableStep) -> Result<Executed, TargetError> {
        let session = &mut self.session;
        match *step {
            TableStep::Create { schema, table } => {
                let rows = session.copy_rows(schema, table)?;
                session.commit()?;
                Ok(Executed { rows, commits: 1, bytes: rows * self.block_bytes })
            }
            TableStep::Flush { .. } => {
                session.flush_tables()?;
                Ok(Executed::default())
            }
            TableStep::Drop { .. } => Ok(Executed::default()),
        }
    }

    fn arrange_scans(&mut self, how: ScanHow) -> Result<(), TargetError> {
        let ScanHow::Direct(DirectScan { multiblock, slots, row_cost }) = how else {
            return Err(TargetError::NoScan { how });
        };
        self.scan = Scan::Direct { multiblock, slots, row_cost };
        Ok(())
    }

    fn set_stop_flag(&mut self, stop: &Arc<AtomicBool>) {
        self.session.set_stop_flag(Arc::clone(stop));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_of_any_size_that_is_no_disk_was_not_kept_and_stays_as_it_is() {
        let dir = tempfile::tempdir().unwrap();
        for len in [0, 1, 1344, 4096, 5000, 1 << 20] {
            let path = dir.path().join(len.to_string());
            let text = b"root:x:0:0::/root\n".repeat(len / 18 + 1);
            std::fs::write(&path, &text[..len]).unwrap();
            assert_eq!(kept(std::slice::from_ref(&path)).unwrap().map(|kept| kept.rows), None);
            assert_eq!(std::fs::read(&path).unwrap(), &text[..len]);
        }
    }
}
