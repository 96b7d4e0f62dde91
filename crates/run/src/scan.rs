//! The direct-path matrix: its points, and the table that is loaded for them once, divided into as
//! many parts as the point with most sessions has sessions.

use std::collections::BTreeSet;

use blockstone_base::load::{Access, LoadSpec, Op, Pacing};
use blockstone_base::units::{Bytes, Nanos};
use blockstone_record::manifest::Group;
use blockstone_target::registry::Entry;
use blockstone_target::{DirectScan, SCAN_READ_MAX, TargetSpec};
use blockstone_workload::{Parameters, Population, Scale};

use crate::error::RunError;
use crate::hold::Step;
use crate::settings::ScanMatrix;

/// The table is never larger than this unless asked for.
pub const SIZE: Bytes = Bytes::gib(1);
/// Default read sizes in blocks; the largest possible read is added.
const MULTIBLOCK: [u32; 3] = [4, 8, 16];
/// A part of the table begins at a multiple of this: no read crosses an allocation unit.
const ALIGNED: Bytes = Bytes::mib(1);
/// Least rows of the first table of a schema, which the matrix does not read.
const ROWS: u64 = 64;
/// The longest that evaluating a row may take.
const ROW_COST_MAX: Nanos = Nanos::millis(10);
/// Most reads outstanding over all sessions: each takes a thread.
const OUTSTANDING: u64 = 4096;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Plan {
    /// Blocks of a read, in the order asked for.
    pub multiblock: Vec<u32>,
    /// Sessions, in the order asked for.
    pub parallel: Vec<u32>,
    /// Reads outstanding a session.
    pub slots: u32,
    /// Processor time for each row.
    pub row_cost: Nanos,
    /// Blocks of each part of the table.
    part: u64,
    seed: u64,
}

impl Plan {
    /// The plan for `matrix` over a table of `size` in blocks of `block`. Fails when it names what
    /// cannot be measured.
    pub fn new(
        matrix: &ScanMatrix,
        entry: &Entry,
        size: Scale,
        block: Bytes,
        seed: u64,
    ) -> Result<Self, RunError> {
        if !entry.direct_scans {
            return Err(RunError::NoDirectScan { target: entry.name.to_owned() });
        }
        let most = (SCAN_READ_MAX.get() / block.get()).max(1) as u32;
        let usual = || MULTIBLOCK.into_iter().filter(|&blocks| blocks < most).chain([most]);
        let multiblock = matrix.multiblock.clone().unwrap_or_else(|| usual().collect());
        let parallel = matrix.parallel.clone();
        check(&multiblock, &parallel, most, block)?;
        let slots = matrix.slots;
        let sessions = parallel.iter().copied().max().unwrap_or(1);
        let outstanding = u64::from(slots) * u64::from(sessions);
        if slots == 0 || outstanding > OUTSTANDING {
            return Err(RunError::Matrix {
                what: format!("--slots {slots} with {sessions} sessions"),
                why: format!("1 to {OUTSTANDING} reads can be outstanding, not {outstanding}"),
                hint: "databases keep 2 to 32 outstanding per session",
            });
        }
        let blocks = size.blocks(block) / u64::from(sessions);
        let aligned = (ALIGNED.get() / block.get()).max(1);
        let part = blocks / aligned * aligned;
        let largest = multiblock.iter().copied().max().unwrap_or(1);
        let least = u64::from(largest) * u64::from(slots);
        if part < least {
            return Err(RunError::ScanSize {
                size: Bytes(size.blocks(block).saturating_mul(block.get())),
                parallel: sessions,
                least: Bytes(least.max(aligned) * block.get()),
            });
        }
        let row_cost = matrix.row_cost;
        if row_cost > ROW_COST_MAX {
            return Err(RunError::Matrix {
                what: format!("--row-cost {row_cost}"),
                why: format!("a row takes at most {ROW_COST_MAX}, or the scan never ends"),
                hint: "counting the rows of an 8K block takes 5us to 50us",
            });
        }
        Ok(Self { multiblock, parallel, slots, row_cost, part, seed })
    }

    /// Parts of the table, each in a schema of its own.
    fn schemas(&self) -> u32 {
        self.parallel.iter().copied().max().unwrap_or(1)
    }

    pub fn bytes(&self, block: Bytes) -> Bytes {
        Bytes(u64::from(self.schemas()) * self.part * block.get())
    }

    pub fn parameters(&self, block: Bytes) -> Parameters {
        self.point(1, self.schemas(), block)
    }

    fn point(&self, multiblock: u32, parallel: u32, block: Bytes) -> Parameters {
        Parameters {
            population: Population::Scanning { sessions: parallel, schemas: self.schemas() },
            rows: ROWS.max(ALIGNED.get() / block.get()),
            work_unit: 1,
            update_work_unit: 1,
            update_pct: 0,
            scan_pct: 100,
            scan_rows: self.part,
            direct_scan: Some(DirectScan {
                multiblock,
                slots: self.slots,
                row_cost: self.row_cost,
            }),
            seed: self.seed,
            ..Parameters::default()
        }
    }

    /// The points in the order in which they are measured: all read sizes of one number of sessions
    /// follow each other, so that drift affects them alike.
    pub fn points(&self, spec: &TargetSpec, target: &str) -> Vec<(Parameters, Step<'static>)> {
        let grid = self.parallel.iter().flat_map(|&parallel| {
            self.multiblock.iter().map(move |&multiblock| (multiblock, parallel))
        });
        let point = |(multiblock, parallel): (u32, u32)| {
            let load = LoadSpec {
                engine: target.to_owned(),
                op: Op::Read,
                read_pct: None,
                access: Access::Sequential,
                block_bytes: u64::from(multiblock) * spec.block.get(),
                workers: parallel,
                depth_per_worker: self.slots,
                span_bytes: self.bytes(spec.block).get(),
                offset_bytes: 0,
                sync: None,
                direct: spec.direct,
                pacing: Pacing::Closed,
                seed: self.seed,
            };
            let step = Step {
                label: format!("scan/m{multiblock}p{parallel}"),
                group: Group::Scan,
                load: Some(load),
                noise: None,
            };
            (self.point(multiblock, parallel, spec.block), step)
        };
        grid.map(point).collect()
    }
}

fn check(multiblock: &[u32], parallel: &[u32], most: u32, block: Bytes) -> Result<(), RunError> {
    let lists = [
        ("--multiblock", multiblock, "write it as in --multiblock 4,8,16"),
        ("--parallel", parallel, "write it as in --parallel 1,16"),
    ];
    for (option, list, hint) in lists {
        let text: Vec<String> = list.iter().map(ToString::to_string).collect();
        let refuse = |why: &str| {
            let (what, why) = (format!("{option} {}", text.join(",")), why.to_owned());
            Err(RunError::Matrix { what, why, hint })
        };
        if list.is_empty() || list.contains(&0) {
            return refuse("nothing would be read");
        }
        if list.iter().collect::<BTreeSet<_>>().len() < list.len() {
            return refuse("a number is listed twice");
        }
    }
    match multiblock.iter().find(|&&blocks| blocks > most) {
        Some(blocks) => Err(RunError::Matrix {
            what: format!("--multiblock {blocks} in blocks of {block}"),
            why: format!("a read is at most {SCAN_READ_MAX}, which is {most} blocks"),
            hint: "use fewer blocks per read, or a smaller --block-size",
        }),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use blockstone_target::registry;

    use super::*;

    const BLOCK: Bytes = Bytes::kib(8);

    fn matrix(multiblock: &[u32], parallel: &[u32], slots: u32) -> ScanMatrix {
        let multiblock = (!multiblock.is_empty()).then(|| multiblock.to_vec());
        ScanMatrix { multiblock, parallel: parallel.to_vec(), slots, row_cost: Nanos(0) }
    }

    fn plan(matrix: &ScanMatrix, size: Bytes) -> Result<Plan, RunError> {
        let instance = registry::find("instance").unwrap();
        Plan::new(matrix, instance, Scale::Bytes(size), BLOCK, 1)
    }

    #[test]
    fn every_size_meets_every_number_of_sessions_on_one_load() {
        let plan = plan(&matrix(&[4, 128], &[1, 16], 2), Bytes::gib(1)).unwrap();
        let spec = TargetSpec { block: BLOCK, ..TargetSpec::default() };
        let points = plan.points(&spec, "instance");
        let labels: Vec<&str> = points.iter().map(|(_, step)| step.label.as_str()).collect();
        assert_eq!(labels, ["scan/m4p1", "scan/m128p1", "scan/m4p16", "scan/m128p16"]);
        for (parameters, step) in &points {
            parameters.check().unwrap();
            assert_eq!(parameters.population.schemas(), 16);
            assert_eq!(parameters.scan_rows, 8192);
            assert_eq!(parameters.rows * BLOCK.get() % (1 << 20), 0, "reads keep to units");
            assert_eq!(step.load.as_ref().unwrap().span_bytes, 1 << 30);
        }
        assert_eq!(points[3].1.load.as_ref().unwrap().in_flight(), 32);
    }

    #[test]
    fn the_usual_sizes_end_at_the_largest_read() {
        let usual = |block: Bytes| {
            let instance = registry::find("instance").unwrap();
            let matrix = matrix(&[], &[1], 2);
            let size = Scale::Bytes(Bytes::gib(1));
            Plan::new(&matrix, instance, size, block, 1).unwrap().multiblock
        };
        assert_eq!(usual(Bytes::kib(4)), [4, 8, 16, 256]);
        assert_eq!(usual(Bytes::kib(8)), [4, 8, 16, 128]);
        assert_eq!(usual(Bytes::kib(32)), [4, 8, 16, 32]);
    }

    #[test]
    fn what_cannot_be_measured_is_refused() {
        let gib = Bytes::gib(1);
        let cases = [
            (matrix(&[0], &[1], 2), gib, "nothing would be read"),
            (matrix(&[4, 4], &[1], 2), gib, "twice"),
            (matrix(&[129], &[1], 2), gib, "at most 1 MiB, which is 128 blocks"),
            (matrix(&[4], &[0], 2), gib, "--parallel 0"),
            (matrix(&[4], &[1, 1], 2), gib, "--parallel 1,1"),
            (matrix(&[4], &[], 2), gib, "nothing would be read"),
            (matrix(&[4], &[1], 0), gib, "not 0"),
            (matrix(&[4], &[1024], 8), gib, "not 8192"),
            (matrix(&[128], &[16], 2), Bytes::mib(16), "each has less than the 2 MiB"),
        ];
        let slow = ScanMatrix { row_cost: Nanos::millis(11), ..matrix(&[4], &[1], 2) };
        let cases = cases.into_iter().chain([(slow, gib, "--row-cost 11 ms")]);
        for (matrix, size, expected) in cases {
            let error = plan(&matrix, size).unwrap_err().to_string();
            assert!(error.contains(expected) && error.contains("\nhint: "), "{error}");
        }
        let null = registry::find("null").unwrap();
        let refused = Plan::new(&matrix(&[4], &[1], 2), null, Scale::Bytes(gib), BLOCK, 1);
        assert!(refused.unwrap_err().to_string().contains("scan null past the buffer cache"));
    }
}
