//! Files made to take more memory than the machine has, or to stop the program. A child process
//! reads them under a limit, because a failed allocation ends a process.

use std::fs;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::process::Command;
use std::sync::Arc;

use blockstone_base::rng::Rng;
use parquet::basic::Encoding;
use parquet::column::page::{CompressedPage, Page, PageWriter};
use parquet::column::writer::ColumnCloseResult;
use parquet::file::metadata::{ColumnChunkMetaData, KeyValue};
use parquet::file::properties::WriterProperties;
use parquet::file::writer::{SerializedFileWriter, SerializedPageWriter, TrackedWrite};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

use super::{latencies, record_run};
use crate::checksum::{PLACEHOLDER, Summing};
use crate::disk::System;
use crate::parquet_file::{KEY_CHECKSUM, Reader, schema};
use crate::recording::Kinds;
use crate::rows::{HISTOGRAMS, histogram_fields, push_histogram};
use crate::segments::TableFiles;
use crate::table::{Data, Field, Table, Type};
use crate::{HistogramRow, RecordError, Recording};

/// Environment variable with the case for the child, which runs this test again.
const CHILD: &str = "BLOCKSTONE_TEST_HOSTILE";
const LIMIT_BYTES: u64 = 1 << 30;
/// Offsets in the header: cookie, length, offset, digits, lowest, highest, ratio.
const DIGITS_AT: usize = 12;
const HIGHEST_AT: usize = 24;
const COUNTS_AT: usize = 40;

/// Runs `read` in a child process with a gigabyte of address space, under the name of its test.
fn within_limit(test: &str, read: impl FnOnce()) {
    if std::env::var(CHILD).is_ok_and(|name| name == test) {
        let maximum = getrlimit(Resource::As).maximum;
        setrlimit(Resource::As, Rlimit { current: Some(LIMIT_BYTES), maximum }).unwrap();
        return read();
    }
    let name = format!("tests::hostile::{test}");
    let mut child = Command::new(std::env::current_exe().unwrap());
    let output = child.args(["--exact", &name, "--nocapture"]).env(CHILD, test).output().unwrap();
    let said = [output.stdout, output.stderr].concat();
    let said = String::from_utf8_lossy(&said);
    assert!(output.status.success() && said.contains("1 passed"), "{said}");
}

/// Records a `row` in `dir` for each of `encodings`.
fn with_histograms(
    dir: &Path,
    row: HistogramRow,
    encodings: Vec<Vec<u8>>,
) -> Result<Recording, RecordError> {
    record_run(dir);
    let mut one = Table::new(histogram_fields());
    push_histogram(&mut one, row).unwrap();
    let mut table = one.clone();
    (1..encodings.len()).for_each(|_| table.append(&one));
    *table.columns.last_mut().unwrap() = Data::Bytes(encodings);
    let files = TableFiles::plain(dir, "r1", HISTOGRAMS);
    fs::remove_file(files.compacted()).unwrap();
    files.write_segment(&System::hold(dir).unwrap(), 1, &table, &Vec::new()).unwrap();
    fs::rename(files.segment(1), files.compacted()).unwrap();
    Recording::open(dir)
}

#[test]
fn a_histogram_allocates_what_ours_have() {
    within_limit("a_histogram_allocates_what_ours_have", || {
        let sound = latencies(1, 50).histogram.encode();
        let with = |at: usize, bytes: &[u8]| {
            let mut altered = sound.clone();
            altered[at..at + bytes.len()].copy_from_slice(bytes);
            altered
        };
        let counts = |counts: &[u8]| {
            let head = [&sound[..4], &(counts.len() as u32).to_be_bytes(), &sound[8..COUNTS_AT]];
            [&head.concat(), counts].concat()
        };
        let compressed = [&[0x1c, 0x84, 0x93, 0x14][..], &[0xff; 40]].concat();
        let cases = [
            ("claims 4 GiB", with(4, &0xffff_fff0_u32.to_be_bytes())),
            ("five digits", with(DIGITS_AT, &5_u32.to_be_bytes())),
            ("to the last nanosecond", with(HIGHEST_AT, &u64::MAX.to_be_bytes())),
            ("compressed", compressed),
            ("counts beyond all numbers", counts(&[0xfe; 18])),
            ("a gap of -2^63", counts(&[0xff; 9])),
            ("counts that overflow", counts(&[&[0xfe; 8][..], &[0x7f]].concat().repeat(4))),
            ("more than a second holds", counts(&[0xfe, 0xff, 0xff, 0xff, 0x7f])),
            ("more counts than fit", counts(&[2; 9000])),
            ("cut in its head", sound[..20].to_vec()),
            ("nothing", Vec::new()),
        ];
        let read = |dir: &Path, encodings| {
            with_histograms(dir, latencies(1, 50), encodings)?.histograms().map(|rows| rows.len())
        };
        let dir = tempfile::tempdir().unwrap();
        for (index, (case, encoding)) in cases.into_iter().enumerate() {
            let dir = dir.path().join(index.to_string());
            let read = catch_unwind(|| read(&dir, vec![sound.clone(), encoding]));
            let error = read.expect(case).expect_err(case).to_string();
            assert!(error.contains("histograms.parquet") && error.contains("row 1"), "{error}");
        }
        assert_eq!(read(&dir.path().join("sound"), vec![sound.clone(); 3]).unwrap(), 3);
    });
}

#[test]
fn many_rows_of_latencies_take_the_memory_of_one() {
    within_limit("many_rows_of_latencies_take_the_memory_of_one", || {
        const ROWS: u64 = LIMIT_BYTES / (32 << 10);
        let dir = tempfile::tempdir().unwrap();
        let row = latencies(1, 1);
        let encodings = vec![row.histogram.encode(); ROWS as usize];
        let recording = with_histograms(dir.path(), row, encodings).unwrap();
        let mut rows = 0;
        recording.each_histogram(|_| rows += 1).unwrap();
        assert_eq!(rows, ROWS);
    });
}

#[test]
fn latencies_of_too_many_kinds_are_refused() {
    let mut kinds = Kinds::default();
    let row = latencies(1, 1);
    let mut added = (0..100_000).map(|role| {
        kinds
            .add(&HistogramRow { role: role.to_string(), ..row.clone() })
            .and_then(|()| kinds.add(&row))
    });
    assert!(added.any(|added| added.is_err_and(|why| why.contains("too many kinds"))));
}

fn dictionary(num_values: u32, words: &[&[u8]]) -> Page {
    let word = |word: &&[u8]| [&(word.len() as u32).to_le_bytes(), *word].concat();
    let buf = words.iter().flat_map(word).collect::<Vec<u8>>().into();
    Page::DictionaryPage { buf, num_values, encoding: Encoding::PLAIN, is_sorted: false }
}

fn data(num_values: u32, encoding: Encoding, bytes: &[u8]) -> Page {
    let (def_level_encoding, rep_level_encoding) = (Encoding::RLE, Encoding::RLE);
    let buf = bytes.to_vec().into();
    let statistics = None;
    Page::DataPage { buf, num_values, encoding, def_level_encoding, rep_level_encoding, statistics }
}

/// A page with `count` times the first word of the dictionary, in a few bytes.
fn repeated(count: u32) -> Page {
    let mut bytes = vec![1];
    let mut header = u64::from(count) << 1;
    while header >= 0x80 {
        bytes.push(header as u8 | 0x80);
        header >>= 7;
    }
    bytes.extend([header as u8, 0]);
    data(count, Encoding::RLE_DICTIONARY, &bytes)
}

/// Creates a file with one column whose chunk has these pages and claims `rows` rows.
fn craft(path: &Path, kind: Type, rows: u64, pages: Vec<Page>) {
    let schema = schema(&[Field::new("detail", kind)]).unwrap();
    let pair = KeyValue::new(KEY_CHECKSUM.to_owned(), PLACEHOLDER.to_owned());
    let properties = WriterProperties::builder().set_key_value_metadata(Some(vec![pair])).build();
    let mut out = Vec::new();
    let summing = Summing::new(&mut out);
    let mut writer = SerializedFileWriter::new(summing, schema, Arc::new(properties)).unwrap();
    let mut chunk = TrackedWrite::new(Vec::new());
    let mut data_at = None;
    for page in pages {
        let is_data = page.is_data_page();
        let size = page.buffer().len();
        let page = CompressedPage::new(page, size);
        let spec = SerializedPageWriter::new(&mut chunk).write_page(page).unwrap();
        if is_data {
            data_at.get_or_insert(spec.offset as i64);
        }
    }
    let chunk = chunk.into_inner().unwrap();
    let data_at = data_at.unwrap();
    let metadata = ColumnChunkMetaData::builder(writer.schema_descr().column(0))
        .set_num_values(rows as i64)
        .set_total_compressed_size(chunk.len() as i64)
        .set_total_uncompressed_size(chunk.len() as i64)
        .set_data_page_offset(data_at)
        .set_dictionary_page_offset((data_at > 0).then_some(0))
        .build()
        .unwrap();
    let close = ColumnCloseResult {
        bytes_written: chunk.len() as u64,
        rows_written: rows,
        metadata,
        bloom_filter: None,
        column_index: None,
        offset_index: None,
    };
    let mut group = writer.next_row_group().unwrap();
    let beside = path.with_extension("chunk");
    fs::write(&beside, &chunk).unwrap();
    group.append_column(&fs::File::open(&beside).unwrap(), close).unwrap();
    group.close().unwrap();
    writer.flush().unwrap();
    writer.inner_mut().hold();
    writer.finish().unwrap();
    writer.inner_mut().release().unwrap();
    drop(writer);
    fs::write(path, out).unwrap();
}

fn read_rows(path: &Path) -> Result<usize, RecordError> {
    Reader::open(path)?.read(path).map(|table| table.len())
}

#[test]
fn pages_that_claim_more_than_they_hold_are_refused_before_memory_is_taken() {
    within_limit("pages_that_claim_more_than_they_hold_are_refused_before_memory_is_taken", || {
        const MANY: u32 = 2_000_000_000;
        let long = vec![b'x'; 1 << 20];
        let delta = |bytes: &[u8]| data(129, Encoding::DELTA_BINARY_PACKED, bytes);
        // A block of 2^63 values, in one part with 64 bits per value.
        let block = [&[0x80; 9][..], &[1, 1, 0x81, 1, 0, 0, 64]].concat();
        let cases = [
            ("words", Type::Text, 1, vec![dictionary(MANY, &[b"x"]), repeated(1)]),
            ("rows", Type::Text, MANY, vec![dictionary(1, &[b"x"]), repeated(MANY)]),
            ("pages", Type::Text, 1, vec![dictionary(1, &[b"x"]), repeated(MANY)]),
            ("bytes", Type::Bytes, 5000, vec![dictionary(1, &[&long]), repeated(5000)]),
            ("text", Type::Text, 1, vec![data(1, Encoding::DELTA_BYTE_ARRAY, &[1; 40])]),
            ("block", Type::Number, 129, vec![delta(&block)]),
            ("beyond", Type::Number, MANY, vec![delta(&[128, 1, 4, 129, 1, 0])]),
        ];
        let dir = tempfile::tempdir().unwrap();
        for (case, kind, rows, pages) in cases {
            let path = dir.path().join(format!("{case}.parquet"));
            craft(&path, kind, rows.into(), pages);
            let read = catch_unwind(AssertUnwindSafe(|| read_rows(&path)));
            let error = read.expect(case).expect_err(case).to_string();
            assert!(error.contains(case), "{error}");
        }
        let path = dir.path().join("sound.parquet");
        let pages = vec![dictionary(1, &[b"x"]), repeated(100_000)];
        craft(&path, Type::Text, 100_000, pages);
        assert_eq!(read_rows(&path).unwrap(), 100_000);
    });
}

/// Corrects the checksum of a Parquet file that was altered.
fn reseal(file: &mut [u8]) {
    let mark = b"xxh3-64:";
    let Some(at) = file.windows(mark.len()).rposition(|window| window == mark) else { return };
    let Some(digits) = file.get_mut(at + mark.len()..at + mark.len() + 16) else { return };
    digits.fill(b'0');
    let sum = format!("{:016x}", xxhash_rust::xxh3::xxh3_64(file));
    file[at + mark.len()..at + mark.len() + 16].copy_from_slice(sum.as_bytes());
}

#[test]
fn altered_files_with_right_checksums_are_read_or_refused() {
    within_limit("altered_files_with_right_checksums_are_read_or_refused", || {
        let dir = tempfile::tempdir().unwrap();
        let dir = dir.path().join("run");
        record_run(&dir);
        let mut rng = Rng::new(13, 0);
        let mut refused = 0;
        for file in ["series/disk.parquet", "histograms.parquet"] {
            let path = dir.join(file);
            let sound = fs::read(&path).unwrap();
            for _ in 0..400 {
                let mut altered = sound.clone();
                for _ in 0..=rng.below(3) {
                    let at = rng.below(altered.len() as u64) as usize;
                    altered[at] = rng.below(256) as u8;
                }
                reseal(&mut altered);
                fs::write(&path, altered).unwrap();
                let read = || {
                    let recording = Recording::open(&dir)?;
                    recording.series("disk")?;
                    recording.histograms()
                };
                refused += u32::from(read().is_err());
            }
            fs::write(&path, sound).unwrap();
        }
        assert!(refused > 50, "{refused}");
    });
}

#[test]
fn a_manifest_that_speaks_of_other_columns_than_the_rows_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    record_run(dir.path());
    let path = dir.path().join("manifest.json");
    let mut manifest: serde_json::Value =
        serde_json::from_slice(&fs::read(&path).unwrap()).unwrap();
    let probe = manifest["probes"][0]["probe"].as_str().unwrap().to_owned();
    let columns = manifest["probes"][0]["columns"].as_array_mut().unwrap();
    columns.push(columns[0].clone());
    fs::write(&path, manifest.to_string()).unwrap();
    let recording = Recording::open(dir.path()).unwrap();
    let error = recording.series(&probe).unwrap_err().to_string();
    assert!(error.contains("not those of the manifest"), "{error}");
}
