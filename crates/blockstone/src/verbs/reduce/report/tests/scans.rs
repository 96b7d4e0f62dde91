//! Small generated data sets that are really counted.

use std::sync::LazyLock;

use blockstone_base::rng;
use blockstone_base::rule::judge;
use blockstone_base::units::Bytes;
use blockstone_reduce::compress::{Codec, Compressors};
use blockstone_reduce::counter::{Counter, Wanted};
use blockstone_reduce::findings::{FieldCost, FileNote, Findings};
use blockstone_reduce::hash::{Hasher, SEGMENT_BYTES};
use blockstone_reduce::mask::Mask;
use blockstone_reduce::model::Model;
use blockstone_reduce::page::{Field, Fields, Format, PageUse, Recognised};
use blockstone_reduce::plan::{Compress, Plan};
use blockstone_reduce::scanned::{FileState, Scanned, ScannedFile, Skipped};

use crate::verbs::reduce::rules::{self, ScanCase};

/// Findings, and the files that were scanned.
#[derive(Clone)]
pub struct Scan {
    pub findings: Findings,
    pub scanned: Scanned,
}

impl Scan {
    /// Returns all scans, by name.
    pub fn all() -> &'static [(&'static str, Self)] {
        // Generating and counting them takes seconds.
        static ALL: LazyLock<Vec<(&str, Scan)>> = LazyLock::new(|| {
            vec![
                ("reduce-few", few()),
                ("reduce-one", one()),
                ("reduce-many", many()),
                ("reduce-sampled", sampled()),
                ("reduce-zeros", count(plan(false), &[("/data/new.dat", vec![0; 5 << 20])])),
                ("reduce-empty", empty()),
            ]
        });
        &ALL
    }

    /// Returns the scan of this name.
    pub fn of(name: &str) -> Self {
        Self::all().iter().find(|(known, _)| *known == name).unwrap().1.clone()
    }
}

/// Four files with shared, repeated and displaced blocks; pages of a known format, not all read.
fn few() -> Scan {
    let original = pages(1, 160, 3);
    let mut clone = original.clone();
    restamp(&mut clone, 9);
    let mut shifted = vec![7; 512];
    shifted.extend_from_slice(&original);
    let mut doubled = pages(2, 80, 3);
    doubled.extend_from_within(..);
    doubled.extend(vec![0; 100 * 8192]);
    let files = [
        ("/data/base/16384/accounts", original.clone()),
        ("/data/base/16385/accounts", clone),
        ("/data/base/16385/accounts.backup", shifted),
        ("/data/pg_wal/000000010000000000000001", doubled),
        ("/data/base/16386/accounts", original),
    ];
    let mut scan = count(plan(true), &files);
    scan.scanned.files[3].state = FileState::Grew { bytes: 16384 };
    scan.scanned.skipped = vec![
        Skipped {
            path: "/data/.s.PGSQL.5432".to_owned(),
            why: "a socket".to_owned(),
            matters: false,
        },
        Skipped {
            path: "/data/base/pgsql_tmp".to_owned(),
            why: "may not be read".to_owned(),
            matters: true,
        },
    ];
    scan
}

/// One file without a known format, read in full.
fn one() -> Scan {
    let mut data = pages(5, 200, 2);
    data.extend(vec![0; 100 * 8192]);
    data.extend(pages(5, 150, 2));
    let mut plan = plan(false);
    plan.codecs = vec![Codec::Lz4];
    count(plan, &[("/srv/oradata/users01.dbf", data)])
}

/// As many files as a small cluster has; a third of each is in the file before it.
fn many() -> Scan {
    let file = |index: u64| {
        let mut data = pages(index, 8 + index % 16, 3);
        data.extend(pages(index.saturating_sub(1), 4, 3));
        data.extend(vec![0; (index % 7) as usize * 8192]);
        data
    };
    let path = |index: u64| format!("/var/lib/postgresql/17/main/base/16384/{}", 16000 + index);
    let files: Vec<(String, Vec<u8>)> = (0..121).map(|i| (path(i), file(i))).collect();
    let named: Vec<(&str, Vec<u8>)> =
        files.iter().map(|(path, data)| (path.as_str(), data.clone())).collect();
    count(plan(true), &named)
}

/// A scan with too little memory for all contents.
fn sampled() -> Scan {
    let data = pages(11, 3000, 3);
    let mut plan = plan(false);
    plan.memory_bytes = 64 << 10;
    plan.compress = Compress::Sample(100);
    count(plan, &[("/data/a.dat", data.clone()), ("/data/b.dat", data)])
}

/// A scan of no data at all.
fn empty() -> Scan {
    let mut scan = count(plan(false), &[]);
    scan.scanned.ended_by = Some("nothing was found to read".to_owned());
    scan
}

fn plan(masks: bool) -> Plan {
    let sizes = [4096, 8192, 16384, 32768].map(Bytes);
    let mut plan = Plan::new(&sizes, &[0, 512, 4096], Bytes(8192)).unwrap();
    plan.codecs = vec![Codec::Lz4, Codec::Zstd { level: 3 }];
    if masks { plan.with_masks() } else { plan }
}

/// Pages of 8 KiB with a header of 16 bytes, rows of random bytes and filler in `fill` parts of
/// eight; one in eight is formatted and empty.
fn pages(seed: u64, count: u64, fill: usize) -> Vec<u8> {
    let mut data = vec![0; count as usize * 8192];
    for (index, page) in data.chunks_mut(8192).enumerate() {
        if index % 8 == 7 {
            page[..4].copy_from_slice(&[1, 0, 0, 0]);
        } else {
            page[0] = 2;
            rng::fill(seed << 32 | index as u64, &mut page[16..8192 - fill * 1024]);
            page[8192 - fill * 1024..].fill(b'x');
        }
        page[4..8].copy_from_slice(&(index as u32).to_le_bytes());
    }
    data
}

/// Writes other log positions into the same pages.
fn restamp(data: &mut [u8], lsn: u8) {
    data.chunks_mut(8192).for_each(|page| page[8..12].fill(lsn));
}

fn look(page: &[u8], fields: &mut Fields) -> PageUse {
    let used = match page[0] {
        1 => PageUse::NeverUsed,
        2 => PageUse::Used,
        _ => return PageUse::Unknown,
    };
    fields.push(Field::Address, 4, 4);
    fields.push(Field::Lsn, 8, 4);
    used
}

static FORMAT: Format = Format {
    name: "PostgreSQL",
    fields: ["pd_lsn", "pd_checksum", "t_ctid", "xmin, xmax", "t_infomask"],
    recognise: |_| Some(8192),
    look,
};

fn count(plan: Plan, files: &[(&str, Vec<u8>)]) -> Scan {
    let masks = !plan.masks.is_empty();
    let mut compressors = Compressors::new(&plan.codecs).unwrap();
    let (mut counter, mut hasher) = (Counter::new(plan), Hasher::default());
    let format = masks.then_some(Recognised { format: &FORMAT, page_bytes: 8192 });
    let depth = counter.plan().depth();
    for (_, data) in files {
        counter.begin_file(data.len() as u64);
        let mut wanted = Vec::new();
        for segment in data.chunks(SEGMENT_BYTES) {
            counter.feed(&hasher.hash(segment, format, depth), &mut wanted);
        }
        counter.end_file(&mut wanted);
        for Wanted { grid, print, start_bytes } in wanted {
            let bytes = counter.grids()[grid].grid.block_bytes as usize;
            let start = (start_bytes as usize).min(data.len());
            let mut block = data[start..(start + bytes).min(data.len())].to_vec();
            block.resize(bytes, 0);
            counter.compressed(
                grid,
                print,
                compressors.sizes(&block, counter.plan().compressors(grid)),
            );
        }
    }
    let name = masks.then_some(FORMAT.name);
    let notes: Vec<FileNote> =
        files.iter().map(|(path, _)| FileNote { path: (*path).into(), format: name }).collect();
    let mut findings = Findings::new(&counter, &notes, &Model::built_in("generic").unwrap());
    findings.field_costs = field_costs(&findings);
    let chunks = counter.plan().chunks;
    let case = ScanCase { findings: &findings, files: &notes, chunks };
    findings.verdicts = judge(rules::ALL, &case);
    Scan { findings, scanned: scanned(files, name) }
}

/// The costs under the names of the format above, which is not in any registry.
fn field_costs(findings: &Findings) -> Vec<FieldCost> {
    let grid = findings.primary().grid;
    let under = |mask: Mask| {
        let found = findings.masked.iter().find(|m| m.grid == grid && m.mask == mask);
        found.map(|masked| masked.dedup_ratio)
    };
    let cost = |field: Field| {
        Some(FieldCost {
            field,
            called: Some(FORMAT.fields[field.index()]).filter(|name| !name.is_empty())?.to_owned(),
            dedup_ratio_without: under(Mask::first(field.index() + 1))?,
            dedup_ratio_only: under(Mask::all_but(field))?,
        })
    };
    Field::ALL.iter().copied().filter_map(cost).collect()
}

fn scanned(files: &[(&str, Vec<u8>)], format: Option<&str>) -> Scanned {
    let file = |(path, data): &(&str, Vec<u8>)| ScannedFile {
        path: (*path).to_owned(),
        bytes: data.len() as u64,
        hole_bytes: 0,
        format: format.map(str::to_owned),
        state: FileState::Complete,
    };
    Scanned {
        files: files.iter().map(file).collect(),
        read_bytes: files.iter().map(|(_, data)| data.len() as u64).sum(),
        elapsed_s: 2.5,
        cpu_s: 4.1,
        memory_bytes: 300 << 20,
        direct: true,
        ..Scanned::default()
    }
}
