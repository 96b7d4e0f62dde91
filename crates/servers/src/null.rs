//! A target that does nothing: all of a run's time is then the cost of the workload itself.

#![allow(clippy::unnecessary_wraps, reason = "the registry's functions may fail, these cannot")]

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use blockstone_base::column::{Cell, Reading};
use blockstone_base::database::INSTANCE;
use blockstone_base::units::Bytes;

use crate::family::{Family, IoRefused};
use crate::spec::TargetSpec;
use crate::target::{
    Demand, Executed, Operation, Progress, Statement, TableStep, Target, TargetError, TargetSession,
};

pub const FAMILY: Family = Family {
    name: "null",
    in_process: true,
    samples_sessions: false,
    through_page_cache: false,
    io_bounded: None,
    io: |_, _| IoRefused::of("it reads and writes nothing", "omit --io"),
    options: &[],
    durable_settings: &[],
};

pub fn demand(spec: &TargetSpec) -> Result<Demand, TargetError> {
    Ok(Demand { places: vec![Bytes(0); spec.places.len()] })
}

pub fn open(
    spec: &TargetSpec,
    _progress: &mut Progress<'_>,
) -> Result<Arc<dyn Target>, TargetError> {
    let counted = Arc::new(Counted::default());
    Ok(Arc::new(Null {
        counted,
        rows: spec.rows,
        scan_rows: spec.scan_rows,
        block: spec.options.block_bytes,
    }))
}

#[derive(Debug, Default)]
struct Counted {
    rows: AtomicU64,
    commits: AtomicU64,
}

impl Counted {
    fn add(&self, executed: Executed) -> Executed {
        self.rows.fetch_add(executed.rows, Ordering::Relaxed);
        self.commits.fetch_add(executed.commits, Ordering::Relaxed);
        executed
    }
}

#[derive(Debug)]
struct Null {
    counted: Arc<Counted>,
    rows: u64,
    scan_rows: u64,
    block: Bytes,
}

impl Target for Null {
    fn load(&self, _progress: &mut Progress<'_>) -> Result<(), TargetError> {
        Ok(())
    }

    fn session(&self, _index: u32) -> Result<Box<dyn TargetSession>, TargetError> {
        let Self { rows, scan_rows, block, .. } = *self;
        let counted = Arc::clone(&self.counted);
        Ok(Box::new(NullSession { counted, rows, scan_rows, block }))
    }

    fn sample(&self, _exact: bool, readings: &mut Vec<Reading>) {
        let cells = INSTANCE.columns.iter().map(|column| match column.name {
            "logical_reads" => Cell::from(self.counted.rows.load(Ordering::Relaxed)),
            "commits" => Cell::from(self.counted.commits.load(Ordering::Relaxed)),
            _ => Cell::Value(0),
        });
        let cells = cells.collect();
        readings.push(Reading { probe: INSTANCE.probe, object: String::new(), cells });
    }

    fn shutdown(&self) -> Result<(), TargetError> {
        Ok(())
    }
}

struct NullSession {
    counted: Arc<Counted>,
    rows: u64,
    scan_rows: u64,
    block: Bytes,
}

impl TargetSession for NullSession {
    fn execute(&mut self, operation: &Operation) -> Result<Executed, TargetError> {
        let executed = match *operation {
            Operation::Select { rows, .. } => {
                Executed { rows: rows.into(), commits: 0, ..Executed::default() }
            }
            Operation::Update { rows, .. } => {
                Executed { rows: rows.into(), commits: 1, ..Executed::default() }
            }
            Operation::Scan { .. } => {
                Executed { rows: self.scan_rows, commits: 0, ..Executed::default() }
            }
        };
        Ok(self.counted.add(executed))
    }

    fn transact(&mut self, statements: &[Statement]) -> Result<Executed, TargetError> {
        let rows = statements.iter().map(|statement| match *statement {
            Statement::Select { rows, .. } => rows.into(),
            Statement::Orders { count, .. } => count.into(),
            Statement::Update { .. } | Statement::Insert { .. } | Statement::Delete { .. } => 1,
        });
        let writes = statements.iter().any(Statement::writes);
        let (rows, commits) = (rows.sum(), writes.into());
        Ok(self.counted.add(Executed { rows, commits, ..Executed::default() }))
    }

    fn write_table(&mut self, step: &TableStep) -> Result<Executed, TargetError> {
        let bytes = self.rows * self.block.get();
        let executed = match step {
            TableStep::Create { .. } => Executed { rows: self.rows, commits: 1, bytes },
            TableStep::Flush { .. } | TableStep::Drop { .. } => Executed::default(),
        };
        Ok(self.counted.add(executed))
    }
}
