//! `blockstone reduce` as a user runs it: counts that another program confirms, the experiment that
//! it repeats, databases, and failures.

mod bad_files;
mod bad_input;
mod databases;
mod memory;
mod output;
mod saved;

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use blockstone_base::Bytes;
use blockstone_testkit::{
    DeviceSpec, FileSystem, LoopDevice, Ran, blockstone_binary, require, run,
};
use serde_json::Value;

use super::{Place, Turn, keeps_to_its_schema};

const SIZES: [u64; 4] = [4096, 8192, 16384, 32768];
const OFFSETS: [u64; 3] = [0, 512, 4096];

/// Columns of a grid that are whole numbers.
const COUNTS: [&str; 5] =
    ["blocks", "zero_blocks", "unique_blocks", "same_file_duplicates", "cross_file_duplicates"];

fn reduce(arguments: &[&str]) -> Command {
    let mut command = Command::new(blockstone_binary());
    command.arg("reduce").args(arguments);
    command
}

/// Generates a data set below the place's data.
fn generate(place: &Place, kind: &str, files: u32, size: &str) -> PathBuf {
    let dir = place.file(kind);
    let files = files.to_string();
    let ran = run(reduce(&["--generate", kind, "--files", &files, "--size", size]).arg(&dir));
    assert_eq!((ran.code, ran.stdout.as_str()), (Some(0), ""), "{ran:#?}");
    dir
}

/// Returns the output of a scan, which must be one document that conforms to its schema.
#[track_caller]
fn document(ran: &Ran, code: i32) -> Value {
    assert_eq!(ran.code, Some(code), "{ran:#?}");
    let document = ran.json();
    assert_eq!(document["schema"], "blockstone.reduce/2");
    keeps_to_its_schema(&document);
    document
}

/// Returns the document of a complete scan of all of `paths` in which nothing was wrong.
#[track_caller]
fn scanned(arguments: &[&str], paths: &[&Path]) -> Value {
    let ran = run(reduce(&["--json"]).args(arguments).args(paths));
    let document = document(&ran, 0);
    assert_eq!(ran.stderr, "");
    assert!(document["whole"] == true && !document["ended_by"].is_string());
    document
}

/// Returns the rows of a table; none if the document does not have it.
fn rows<'a>(document: &'a Value, table: &str) -> &'a [Value] {
    document["tables"].get(table).map_or(&[], |rows| rows.as_array().unwrap())
}

fn grids(document: &Value) -> BTreeMap<(u64, u64), &Value> {
    let rows = rows(document, "grids");
    let key = |row: &Value| (number(row, "block_bytes"), number(row, "offset_bytes"));
    let grids: BTreeMap<_, _> = rows.iter().map(|row| (key(row), row)).collect();
    assert_eq!(grids.len(), rows.len(), "each grid is there once");
    grids
}

#[track_caller]
fn number(value: &Value, name: &str) -> u64 {
    let whole = value[name].as_u64().or_else(|| {
        let number = value[name].as_f64()?;
        (number.fract() == 0.0).then_some(number as u64)
    });
    whole.unwrap_or_else(|| panic!("{name} is not a whole number: {value:#}"))
}

/// Returns a figure, without its interval if it has one.
#[track_caller]
fn ratio(value: &Value, name: &str) -> f64 {
    let figure = &value[name];
    let number = figure.as_f64().or_else(|| figure["value"].as_f64());
    number.unwrap_or_else(|| panic!("{name}: {value:#}"))
}

/// Returns the grid of the model.
fn of_model(document: &Value) -> &Value {
    grids(document)[&(number(document, "block_bytes"), number(document, "offset_bytes"))]
}

/// Returns the ratio of 4K to 32K blocks with just these classes of fields masked.
fn masked(document: &Value, classes: &[&str]) -> Vec<f64> {
    let these = rows(document, "masked").iter().filter(|row| row["masked"] == classes.join(", "));
    let size = |row: &Value| {
        let mut grids = rows(document, "grids").iter();
        number(grids.find(|grid| grid["grid"] == row["grid"]).unwrap(), "block_bytes")
    };
    let found: BTreeMap<u64, f64> =
        these.map(|row| (size(row), ratio(row, "dedup_ratio"))).collect();
    assert!(found.keys().eq(&SIZES), "{classes:?}: {found:?}");
    found.into_values().collect()
}

/// Asserts that two ratios are equal except for the last digits of a division.
#[track_caller]
fn same(found: f64, expected: f64) {
    assert!((found / expected - 1.0).abs() < 1e-12, "{found} is not {expected}");
}

/// Writes files of odd sizes, some of them with content of `whole` at other offsets.
fn odd_files(whole: &Path, dir: &Path) {
    fs::create_dir(dir).unwrap();
    let whole = fs::read(whole).unwrap();
    let sizes =
        [0, 1, 511, 512, 513, 4095, 4096, 4097, 100_000, 1 << 20, (1 << 20) + 1, (3 << 20) + 777];
    for (index, &size) in sizes.iter().enumerate() {
        // At block boundaries, at sectors between them, and at unaligned offsets.
        let from = [0, 512, 4096, 777][index % 4] + (index << 16);
        fs::write(dir.join(format!("odd-{index:02}")), &whole[from..from + size]).unwrap();
    }
    let mut ends_in_zeros = whole[..300_000].to_vec();
    ends_in_zeros.resize(2 << 20, 0);
    fs::write(dir.join("zeros-behind"), &ends_in_zeros).unwrap();
    ends_in_zeros.rotate_left(300_000);
    fs::write(dir.join("zeros-before"), &ends_in_zeros).unwrap();
    let hole = fs::File::create(dir.join("hole")).unwrap();
    hole.set_len((5 << 20) + 1000).unwrap();
}

/// Returns the counts of `count.pl` for these files.
fn counted_otherwise(files: &[PathBuf]) -> BTreeMap<(u64, u64), (Vec<u64>, f64)> {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/end_to_end/reduce/count.pl");
    let list = |numbers: &[u64]| numbers.iter().map(u64::to_string).collect::<Vec<_>>().join(",");
    let mut perl = Command::new("perl");
    let ran = run(perl.arg(script).args([list(&SIZES), list(&OFFSETS)]).args(files));
    assert_eq!((ran.code, ran.stderr.as_str()), (Some(0), ""), "{ran:#?}");
    let line = |line: &str| {
        let words: Vec<&str> = line.split(' ').collect();
        let whole: Vec<u64> = words[..7].iter().map(|word| word.parse().unwrap()).collect();
        ((whole[0], whole[1]), (whole[2..].to_vec(), words[7].parse().unwrap()))
    };
    ran.stdout.lines().map(line).collect()
}

#[test]
fn every_grid_has_the_counts_that_another_program_finds() {
    let place = Place::beside();
    let mixed = generate(&place, "mixed", 4, "8M");
    let odd = place.file("odd");
    odd_files(&mixed.join("mixed-1.dbf"), &odd);
    let found = scanned(&[], &[&mixed, &odd]);
    let directory = Path::new(found["directory"].as_str().unwrap());
    let files = rows(&found, "files").iter();
    let files: Vec<PathBuf> =
        files.map(|row| directory.join(row["file"].as_str().unwrap())).collect();
    assert_eq!(files.len(), 4 + 15);
    let grids = counts_are_confirmed(&found, &files);
    for (grid, row) in grids {
        let counts = COUNTS.map(|name| number(row, name));
        assert!(counts.iter().all(|&count| count > 0), "{grid:?}: nothing is counted: {counts:?}");
    }
}

/// Compares every count of every grid with that of another program.
#[track_caller]
fn counts_are_confirmed<'a>(
    found: &'a Value,
    files: &[PathBuf],
) -> BTreeMap<(u64, u64), &'a Value> {
    let expected = counted_otherwise(files);
    assert_eq!(expected.len(), SIZES.len() * OFFSETS.len());
    let grids = grids(found);
    assert!(grids.keys().eq(expected.keys()));
    for (grid, (counts, dedup_ratio)) in &expected {
        let row = grids[grid];
        let ours: Vec<u64> = COUNTS.iter().map(|name| number(row, name)).collect();
        assert_eq!(&ours, counts, "{grid:?}: {COUNTS:?}");
        assert!(row["share"] == 1 && row["dedup_ratio"].is_number(), "{grid:?}: {row:#}");
        same(ratio(row, "dedup_ratio"), *dedup_ratio);
    }
    grids
}

#[test]
fn a_block_device_is_counted_once_under_whatever_name_and_stays_as_it_is() {
    require!(Root, Loop);
    let place = Place::beside();
    let device = LoopDevice::create(DeviceSpec {
        size: Bytes::mib(16),
        file_system: Some(FileSystem::Ext4),
        ..DeviceSpec::default()
    })
    .unwrap();
    // A file system has zeros, and duplicates of its own: of the superblock, and of this file.
    let file = device.mount_point().unwrap().join("text");
    fs::write(&file, "the same line again and again\n".repeat(200_000)).unwrap();
    fs::File::open(&file).unwrap().sync_all().unwrap();
    let path = device.device();
    assert_eq!(run(Command::new("umount").arg(path)).code, Some(0));
    let before = fs::read(path).unwrap();
    let other = place.file("link");
    std::os::unix::fs::symlink(path, &other).unwrap();
    let found = scanned(&[], &[path, &other]);
    assert_eq!(rows(&found, "files").len(), 1);
    assert_eq!(number(&rows(&found, "files")[0], "bytes"), Bytes::mib(16).get());
    assert!(rows(&found, "skipped")[0]["why"].as_str().unwrap().contains("another name"));
    counts_are_confirmed(&found, &[path.to_owned()]);
    assert!(fs::read(path).unwrap() == before, "it is only read");
}

/// Asserts that reduction is the product of deduplication and compression, in every grid.
#[track_caller]
fn reduction_is_the_product(document: &Value) {
    for (grid, row) in grids(document) {
        let [reduction, dedup, compression] =
            ["reduction_ratio", "dedup_ratio", "compression_ratio"].map(|name| ratio(row, name));
        assert!((reduction / (dedup * compression) - 1.0).abs() < 1e-9, "{grid:?}: {row:#}");
        assert!(compression >= 1.0, "{grid:?}: {row:#}");
    }
}

const FILES: u32 = 16;
const BLOCKS_A_FILE: u64 = 1024;
/// As many blocks of its own per file as the 32 GiB files have that these files resemble.
const HEAD_BLOCKS: u64 = 4;

/// Expected ratio of files that have the same blocks after their heads.
fn ratio_by_head() -> f64 {
    let files = u64::from(FILES);
    let contents = BLOCKS_A_FILE - HEAD_BLOCKS + files * HEAD_BLOCKS;
    (files * BLOCKS_A_FILE) as f64 / contents as f64
}

#[test]
fn formatted_files_are_copies_of_each_other_and_no_file_of_itself() {
    let place = Place::beside();
    let dir = generate(&place, "oracle-like", FILES, "8M");
    let all = scanned(&[], &[&dir]);
    let grid = grids(&all)[&(8192, 0)];
    same(ratio(grid, "dedup_ratio"), ratio_by_head());
    assert_eq!(number(grid, "same_file_duplicates"), 0, "{grid:#}");
    let cross = (u64::from(FILES) - 1) * (BLOCKS_A_FILE - HEAD_BLOCKS);
    assert_eq!(number(grid, "cross_file_duplicates"), cross, "{grid:#}");
    reduction_is_the_product(&all);
    for name in ["dedup_ratio", "compression_ratio", "reduction_ratio"] {
        assert_eq!(all[name], grid[name], "{name}");
    }
    assert_eq!(of_model(&all), grid);

    let one = scanned(&[], &[&dir.join("oracle-like-01.dbf")]);
    let alone = grids(&one)[&(8192, 0)];
    assert_eq!(number(alone, "blocks"), BLOCKS_A_FILE);
    assert!((ratio(alone, "dedup_ratio") - 1.0).abs() < f64::EPSILON, "{alone:#}");
    reduction_is_the_product(&one);
}

#[test]
fn a_head_of_any_length_is_made_and_found() {
    let place = Place::beside();
    let dir = place.file("headed");
    let of = |head: &str, kind: &str| {
        let options = ["--generate", kind, "--files", "3", "--size", "72M", "--head", head];
        run(reduce(&options).arg(&dir))
    };
    assert_eq!(of("8692", "oracle-like").code, Some(0));
    let text = run(reduce(&["--quiet"]).arg(&dir)).stdout;
    for other in ["2", "3"] {
        let line = format!(
            "files oracle-like-1.dbf and oracle-like-{other}.dbf are identical from block 8,692 on"
        );
        assert!(text.contains(&line), "{line} in\n{text}");
    }
    let head = fs::read(dir.join("oracle-like-1.dbf")).unwrap();
    let other = fs::read(dir.join("oracle-like-2.dbf")).unwrap();
    assert!(head[8692 * 8192..] == other[8692 * 8192..], "skipping the head");
    assert!(head[8691 * 8192..8692 * 8192] != other[8691 * 8192..8692 * 8192]);
    for (head, kind) in [("9217", "oracle-like"), ("0", "oracle-like"), ("5", "slob")] {
        let refused = of(head, kind);
        assert_eq!(refused.code, Some(2), "{refused:#?}");
        assert!(refused.stderr.contains("--head"), "{refused:#?}");
    }
}

#[test]
fn the_experiment_of_121_files_is_computed_and_a_small_one_scanned_as_computed() {
    let place = Place::beside();
    let computed = run(&mut reduce(&[
        "--generate",
        "oracle-like",
        "--files",
        "121",
        "--size",
        "32G",
        "--dry-run",
    ]));
    assert_eq!(computed.code, Some(0), "{computed:#?}");
    let line = "dedup 81.80:1 × compression 3.75:1 = reduction 306.9:1;";
    assert!(computed.stdout.contains(line), "{computed:#?}");
    let options = ["--generate", "oracle-like", "--files", "5", "--size", "2M", "--head", "40"];
    let computed = run(reduce(&options).arg("--dry-run")).stdout;
    let dir = place.file("small");
    assert_eq!(run(reduce(&options).arg(&dir)).code, Some(0));
    let scanned = scanned(&["--model", "xtremio"], &[&dir]);
    let [dedup, compression] = ["dedup_ratio", "compression_ratio"].map(|it| ratio(&scanned, it));
    let line = format!("dedup {dedup:.2}:1 × compression {compression:.2}:1");
    assert!(computed.contains(&line), "{line} in {computed}");
    let refused = run(&mut reduce(&["--generate", "mixed", "--dry-run"]));
    assert_eq!(refused.code, Some(2), "{refused:#?}");
}

#[test]
fn rows_marked_deleted_are_counted_and_pages_without_live_ones() {
    let place = Place::beside();
    let dir = generate(&place, "pg-like", 1, "1M");
    let counted = |dir: &Path| scanned(&[], &[dir]);
    let before = counted(&dir);
    let (all, pages) = (number(&before, "live_rows"), number(&before, "row_pages"));
    assert!(all > pages && pages > 100, "{before:#}");
    assert_eq!((number(&before, "deleted_rows"), number(&before, "deleted_pages")), (0, 0));
    let file = fs::read_dir(&dir).unwrap().next().unwrap().unwrap().path();
    let mut bytes = fs::read(&file).unwrap();
    let mut deleted = 0;
    // A DELETE of all rows of every fourth page: it sets their xmax and leaves them there.
    for page in bytes.chunks_mut(8192).step_by(4) {
        let lower = usize::from(u16::from_le_bytes([page[12], page[13]]));
        for pointer in (24..lower).step_by(4) {
            let start =
                usize::from(u16::from_le_bytes([page[pointer], page[pointer + 1]]) & 0x7fff);
            page[start + 4] = 9;
            page[start + 21] &= !0x08;
            deleted += 1;
        }
    }
    fs::write(&file, bytes).unwrap();
    let after = counted(&dir);
    assert_eq!(number(&after, "deleted_rows"), deleted, "{after:#}");
    assert_eq!(number(&after, "live_rows"), all - deleted);
    assert_eq!((number(&after, "deleted_pages"), number(&after, "row_pages")), (pages / 4, pages));
    let text = run(reduce(&["--quiet"]).arg(&dir)).stdout;
    assert!(text.contains("rows are marked deleted"), "{text}");
    let none = generate(&place, "random", 1, "1M");
    assert_eq!(counted(&none)["live_rows"]["unmeasured"], "unknown", "no pages have no rows");
}

#[test]
fn rows_take_the_copies_away_and_masks_show_them() {
    let place = Place::beside();
    let dir = generate(&place, "oracle-loaded", FILES, "8M");
    let found = scanned(&[], &[&dir]);
    let grid = grids(&found)[&(8192, 0)];
    assert!((ratio(grid, "dedup_ratio") - 1.0).abs() < f64::EPSILON, "{grid:#}");
    let all = masked(&found, &["lsn", "checksum", "address", "transaction", "flags"]);
    same(all[1], ratio_by_head());
    reduction_is_the_product(&found);
}

#[test]
fn copies_between_blocks_are_found_with_their_shift() {
    let place = Place::beside();
    let dir = generate(&place, "shifted", 2, "8M");
    let found = scanned(&[], &[&dir]);
    assert!(
        grids(&found).values().all(|grid| number(grid, "unique_blocks") == number(grid, "blocks"))
    );
    let shifts = rows(&found, "shifts");
    assert_eq!(shifts.len(), 1, "{shifts:#?}");
    // The second file has the bytes of the first, shifted 3,072 bytes towards its beginning.
    let shift = &shifts[0];
    let names = (&shift["original"], &shift["copy"]);
    assert_eq!(names, (&"shifted-1.dbf".into(), &"shifted-2.dbf".into()));
    assert_eq!(shift["shift_bytes"], -3072);
    assert!(ratio(shift, "copy_share") > 0.9, "{shift:#}");
    assert_eq!(super::failed_rules(&found), ["shifted-copy"]);
    let verdicts = found["verdicts"].as_array().unwrap();
    let verdict = verdicts.iter().find(|verdict| verdict["rule"] == "shifted-copy").unwrap();
    let evidence = verdict["evidence"].as_str().unwrap();
    assert!(evidence.contains("shifted-2.dbf") && evidence.contains("3072"), "{evidence}");

    let blind = scanned(&["--no-shifts"], &[&dir]);
    assert_eq!(blind["chunk_ratio"]["unmeasured"], "off");
    assert!(rows(&blind, "shifts").is_empty());
}
