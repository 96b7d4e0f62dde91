//! The matrix of scans: its points, and the table that is loaded once for all of them, divided into
//! parts that each session scans one after the other.

use std::collections::BTreeSet;

use blockstone_base::load::{Access, LoadSpec, Op, Pacing};
use blockstone_base::units::{Bytes, Nanos};
use blockstone_record::manifest::Group;
use blockstone_servers::registry::Entry;
use blockstone_servers::{DirectScan, Io, ReadSize, SCAN_READ_MAX, ScanHow, Scans, TargetSpec};
use blockstone_workload::{Parameters, Population, Scale};

use crate::error::RunError;
use crate::hold::Step;
use crate::settings::FormOptions;

/// Largest table unless a size is requested.
pub const SIZE: Bytes = Bytes::gib(1);
/// Default read sizes in blocks; the largest possible read is added.
const MULTIBLOCK: [u32; 3] = [4, 8, 16];
/// Alignment of the parts of the table, so that no read crosses an allocation unit.
const ALIGNED: Bytes = Bytes::mib(1);
/// Fewest rows of the first table of a schema, which the matrix does not read.
const ROWS: u64 = 64;
/// Longest time that evaluating a row may take.
const ROW_COST_MAX: Nanos = Nanos::millis(10);
/// Maximum number of reads outstanding over all sessions: each takes a thread.
const OUTSTANDING: u64 = 4096;
/// Default number of reads that a session keeps outstanding past the buffer cache.
const SLOTS: u32 = 2;
/// Size of the parts of a table that statements scan, so that many scans end in a window.
const PART: Bytes = Bytes::mib(16);
/// Such a part is also larger than this share of the cache: PostgreSQL keeps a smaller table in it.
const CACHE_SHARE: u64 = 4;
/// Maximum number of parts for each session.
const PARTS: u64 = 64;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Plan {
    /// Blocks per read, in the order requested; empty if they cannot be chosen.
    pub multiblock: Vec<u32>,
    /// Numbers of sessions, in the order requested.
    pub parallel: Vec<u32>,
    /// Outstanding reads per session, and processor time for each row, past the buffer cache;
    /// `None` if statements scan.
    pub direct: Option<(u32, Nanos)>,
    /// Setting that a private server needs for its reads.
    pub setting: Option<(&'static str, u32)>,
    /// Number of parts of the table, each in its own schema.
    schemas: u32,
    /// Blocks of each part of the table.
    part: u64,
    seed: u64,
}

impl Plan {
    /// Creates the plan for a matrix over a table of `size` on a target of `spec`. Fails when the
    /// matrix names something that cannot be measured.
    pub fn new(
        form: &FormOptions,
        entry: &Entry,
        size: Scale,
        spec: &TargetSpec,
        seed: u64,
    ) -> Result<Self, RunError> {
        let name = || entry.name.to_owned();
        let sessions = form.parallel().iter().copied().max().unwrap_or(1).max(1);
        match (entry.scans)(spec)? {
            Scans::Never => Err(RunError::NoScan { target: name() }),
            Scans::Direct => Self::direct(form, size, spec.options.block_bytes, seed),
            Scans::Statement(read_size) => {
                let refused = |option, why: &str, hint| RunError::ScanOption {
                    target: name(),
                    option,
                    why: why.to_owned(),
                    hint,
                };
                if form.scan_slots.is_some() {
                    let why = "the database decides how many reads it keeps in flight";
                    return Err(refused("--slots", why, "omit --slots, or use --target instance"));
                }
                if form.scan_row_cost_ns.is_some() {
                    let why = "its rows cost what they cost, which is measured";
                    let hint = "omit --row-cost, or use --target instance";
                    return Err(refused("--row-cost", why, hint));
                }
                let (most, setting) = match read_size {
                    ReadSize::Most { blocks, allowed_by } => (blocks, allowed_by),
                    ReadSize::Fixed(why) if form.scan_multiblock.is_some() => {
                        let hint = "omit --multiblock, or use --target instance";
                        return Err(refused("--multiblock", &why, hint));
                    }
                    ReadSize::Fixed(_) => (0, None),
                };
                let usual = || usual(most).filter(|&blocks| blocks > 0);
                let multiblock = form.scan_multiblock.clone().unwrap_or_else(|| usual().collect());
                check(&multiblock, form, most.max(1), spec.options.block_bytes)?;
                let largest = multiblock.iter().copied().max().unwrap_or(1);
                let blocks = size.blocks(spec.options.block_bytes) / u64::from(sessions);
                let share = Bytes(spec.options.cache_bytes.get() / CACHE_SHARE + ALIGNED.get());
                let wanted = PART.max(share).get() / spec.options.block_bytes.get();
                // Each session has the same number of parts, so that no two scan the same one.
                let parts = (blocks / wanted.max(1)).clamp(1, PARTS);
                let part = checked_part(
                    blocks / parts,
                    largest,
                    size,
                    sessions,
                    spec.options.block_bytes,
                )?;
                Ok(Self {
                    multiblock,
                    parallel: form.parallel().to_vec(),
                    direct: None,
                    setting: setting.map(|setting| (setting, largest)),
                    schemas: sessions.saturating_mul(parts as u32),
                    part,
                    seed,
                })
            }
        }
    }

    fn direct(form: &FormOptions, size: Scale, block: Bytes, seed: u64) -> Result<Self, RunError> {
        let most = (SCAN_READ_MAX.get() / block.get()).max(1) as u32;
        let multiblock = form.scan_multiblock.clone().unwrap_or_else(|| usual(most).collect());
        check(&multiblock, form, most, block)?;
        let slots = form.scan_slots.unwrap_or(SLOTS);
        let sessions = form.parallel().iter().copied().max().unwrap_or(1);
        let outstanding = u64::from(slots) * u64::from(sessions);
        if slots == 0 || outstanding > OUTSTANDING {
            return Err(RunError::Matrix {
                what: format!("--slots {slots} with {sessions} sessions"),
                why: format!("1 to {OUTSTANDING} reads can be outstanding, not {outstanding}"),
                hint: "databases keep 2 to 32 outstanding per session",
            });
        }
        let blocks = size.blocks(block) / u64::from(sessions);
        let largest = multiblock.iter().copied().max().unwrap_or(1);
        let part = checked_part(blocks, largest * slots, size, sessions, block)?;
        let row_cost = form.scan_row_cost_ns.unwrap_or(Nanos(0));
        if row_cost > ROW_COST_MAX {
            return Err(RunError::Matrix {
                what: format!("--row-cost {row_cost}"),
                why: format!("a row takes at most {ROW_COST_MAX}, or the scan never ends"),
                hint: "counting the rows of an 8K block takes 5us to 50us",
            });
        }
        let parallel = form.parallel().to_vec();
        let direct = Some((slots, row_cost));
        Ok(Self { multiblock, parallel, direct, setting: None, schemas: sessions, part, seed })
    }

    /// Returns the outstanding reads per session, if that number can be chosen.
    pub fn slots(&self) -> Option<u32> {
        self.direct.map(|(slots, _)| slots)
    }

    pub fn bytes(&self, block: Bytes) -> Bytes {
        Bytes(u64::from(self.schemas) * self.part * block.get())
    }

    pub fn parameters(&self, block: Bytes) -> Parameters {
        let most = self.parallel.iter().copied().max().unwrap_or(1);
        self.point(None, most, block)
    }

    fn point(&self, multiblock: Option<u32>, parallel: u32, block: Bytes) -> Parameters {
        let how = match self.direct {
            Some((slots, row_cost)) => {
                ScanHow::Direct(DirectScan { multiblock: multiblock.unwrap_or(1), slots, row_cost })
            }
            None => ScanHow::Statement { multiblock },
        };
        Parameters {
            population: Population::Scanning { sessions: parallel, schemas: self.schemas },
            rows_per_schema: ROWS.max(ALIGNED.get() / block.get()),
            work_unit: 1,
            update_work_unit: 1,
            update_pct: 0,
            scan_pct: 100,
            scan_rows: self.part,
            scan_how: Some(how),
            seed: self.seed,
            ..Parameters::default()
        }
    }

    /// Returns the points in the order in which they are measured: all read sizes for one number of
    /// sessions follow each other, so that drift affects them equally.
    pub fn points(&self, spec: &TargetSpec, target: &str) -> Vec<(Parameters, Step<'static>)> {
        let sizes: Vec<Option<u32>> = match self.multiblock.as_slice() {
            [] => vec![None],
            sizes => sizes.iter().copied().map(Some).collect(),
        };
        let grid = self
            .parallel
            .iter()
            .flat_map(|&parallel| sizes.iter().map(move |&multiblock| (multiblock, parallel)));
        let point = |(multiblock, parallel): (Option<u32>, u32)| {
            let load = LoadSpec {
                engine: target.to_owned(),
                op: Op::Read,
                read_pct: None,
                access: Access::Sequential,
                block_bytes: u64::from(multiblock.unwrap_or(1)) * spec.options.block_bytes.get(),
                workers: parallel,
                depth_per_worker: self.slots().unwrap_or(1),
                span_bytes: self.bytes(spec.options.block_bytes).get(),
                offset_bytes: 0,
                sync: None,
                flush_alone: false,
                direct: spec.options.io != Some(Io::Buffered) && self.direct.is_some(),
                pacing: Pacing::Closed,
                seed: self.seed,
            };
            let size = multiblock.map_or_else(String::new, |blocks| format!("m{blocks}"));
            let step = Step {
                label: format!("scan/{size}p{parallel}"),
                group: Group::Scan,
                load: Some(load),
                noise: None,
            };
            (self.point(multiblock, parallel, spec.options.block_bytes), step)
        };
        grid.map(point).collect()
    }
}

/// Returns the default read sizes, and the largest possible one.
fn usual(most: u32) -> impl Iterator<Item = u32> {
    MULTIBLOCK.into_iter().filter(move |&blocks| blocks < most).chain([most])
}

/// Returns the size of a part of about `blocks`, aligned. Fails if it is less than what a session
/// reads at a time.
fn checked_part(
    blocks: u64,
    at_a_time: u32,
    size: Scale,
    sessions: u32,
    block: Bytes,
) -> Result<u64, RunError> {
    let aligned = (ALIGNED.get() / block.get()).max(1);
    let part = blocks / aligned * aligned;
    let least = u64::from(at_a_time).max(1);
    if part < least {
        return Err(RunError::ScanSize {
            size: Bytes(size.blocks(block).saturating_mul(block.get())),
            parallel: sessions,
            least: Bytes(least.max(aligned) * block.get()),
        });
    }
    Ok(part)
}

fn check(multiblock: &[u32], form: &FormOptions, most: u32, block: Bytes) -> Result<(), RunError> {
    let lists = [
        ("--multiblock", multiblock, "write it as in --multiblock 4,8,16"),
        ("--parallel", form.parallel(), "write it as in --parallel 1,16"),
    ];
    for (option, list, hint) in lists {
        let text: Vec<String> = list.iter().map(ToString::to_string).collect();
        let refuse = |why: &str| {
            let (what, why) = (format!("{option} {}", text.join(",")), why.to_owned());
            Err(RunError::Matrix { what, why, hint })
        };
        let is_free = option == "--multiblock" && form.scan_multiblock.is_none();
        if list.is_empty() && !is_free || list.contains(&0) {
            return refuse("nothing would be read");
        }
        if list.iter().collect::<BTreeSet<_>>().len() < list.len() {
            return refuse("a number is listed twice");
        }
    }
    match multiblock.iter().find(|&&blocks| blocks > most) {
        Some(blocks) => Err(RunError::Matrix {
            what: format!("--multiblock {blocks} in blocks of {block}"),
            why: {
                let bytes = Bytes(u64::from(most).saturating_mul(block.get()));
                format!("a read is at most {bytes}, which is {most} blocks")
            },
            hint: "use fewer blocks per read, or a smaller --block-size",
        }),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use blockstone_servers::{DatabaseOptions, registry};

    use blockstone_base::hint::Hint as _;

    use super::*;

    const BLOCK: Bytes = Bytes::kib(8);

    fn matrix(multiblock: &[u32], parallel: &[u32], slots: u32) -> FormOptions {
        FormOptions {
            scan_multiblock: (!multiblock.is_empty()).then(|| multiblock.to_vec()),
            scan_parallel: Some(parallel.to_vec()),
            scan_slots: Some(slots),
            ..FormOptions::default()
        }
    }

    fn spec(block: Bytes) -> TargetSpec {
        let options = DatabaseOptions { block_bytes: block, ..DatabaseOptions::default() };
        TargetSpec { options, ..TargetSpec::default() }
    }

    fn plan(matrix: &FormOptions, size: Bytes) -> Result<Plan, RunError> {
        let instance = registry::find("instance").unwrap();
        Plan::new(matrix, instance, Scale::Bytes(size), &spec(BLOCK), 1)
    }

    #[test]
    fn every_size_meets_every_number_of_sessions_on_one_load() {
        let plan = plan(&matrix(&[4, 128], &[1, 16], 2), Bytes::gib(1)).unwrap();
        let points = plan.points(&spec(BLOCK), "instance");
        let labels: Vec<&str> = points.iter().map(|(_, step)| step.label.as_str()).collect();
        assert_eq!(labels, ["scan/m4p1", "scan/m128p1", "scan/m4p16", "scan/m128p16"]);
        for (parameters, step) in &points {
            parameters.check().unwrap();
            assert_eq!(parameters.population.schemas(), 16);
            assert_eq!(parameters.scan_rows, 8192);
            assert_eq!(
                parameters.rows_per_schema * BLOCK.get() % (1 << 20),
                0,
                "reads keep to units"
            );
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
            Plan::new(&matrix, instance, size, &spec(block), 1).unwrap().multiblock
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
        let slow =
            FormOptions { scan_row_cost_ns: Some(Nanos::millis(11)), ..matrix(&[4], &[1], 2) };
        let cases = cases.into_iter().chain([(slow, gib, "--row-cost 11 ms")]);
        for (matrix, size, expected) in cases {
            let error = plan(&matrix, size).unwrap_err().told();
            assert!(error.contains(expected) && error.contains("\nhint: "), "{error}");
        }
        let null = registry::find("null").unwrap();
        let refused = Plan::new(&matrix(&[4], &[1], 2), null, Scale::Bytes(gib), &spec(BLOCK), 1);
        assert!(refused.unwrap_err().told().contains("scan null: this target has no rows"));
    }

    #[test]
    fn statements_scan_parts_of_their_own_and_choose_no_reads() {
        let sqlite = registry::find("sqlite").unwrap();
        let plan = |matrix: &FormOptions| {
            Plan::new(matrix, sqlite, Scale::Bytes(Bytes::gib(1)), &spec(BLOCK), 1)
        };
        let free = FormOptions { scan_parallel: Some(vec![1, 4]), ..FormOptions::default() };
        let points = plan(&free).unwrap().points(&spec(BLOCK), "sqlite");
        let labels: Vec<&str> = points.iter().map(|(_, step)| step.label.as_str()).collect();
        assert_eq!(labels, ["scan/p1", "scan/p4"]);
        let (parameters, _) = &points[1];
        parameters.check().unwrap();
        assert_eq!(parameters.population.schemas() % 4, 0, "no two sessions scan one table");
        let bytes = parameters.scan_rows * BLOCK.get();
        assert!(bytes > Bytes::mib(32).get(), "a quarter of the cache is less: {bytes}");
        for (matrix, option) in [
            (FormOptions { scan_slots: Some(2), ..free.clone() }, "--slots"),
            (FormOptions { scan_row_cost_ns: Some(Nanos(9)), ..free.clone() }, "--row-cost"),
            (FormOptions { scan_multiblock: Some(vec![4]), ..free.clone() }, "--multiblock"),
        ] {
            let error = plan(&matrix).unwrap_err().told();
            assert!(error.contains(option) && error.contains("\nhint: "), "{error}");
        }
    }
}
