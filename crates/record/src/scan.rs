//! A saved scan (`blockstone.scan/1`): a directory with `scan.json`, `fingerprints.<n>.parquet` and
//! `file_sets.<n>.parquet`. This module does not know the meaning of a scan's contents; it writes
//! and reads rows as they are.
//!
//! `scan.json` names the generation of the other two and is renamed into place last, so that a scan
//! that is saved repeatedly is complete at every instant, whatever ends the process.

use std::io::{self, Write};
use std::path::{Path, PathBuf};

use blockstone_base::units::Bytes;
use blockstone_sys::held;
use serde_json::Value as Json;

use crate::checksum;
use crate::disk::{Disk, System, publish};
use crate::error::RecordError;
use crate::parquet_file::{Reader, Writer};
use crate::rows::Cells;
use crate::table::{Field, Table, Type, Value};

/// Format that this version writes and reads.
pub const FORMAT: &str = "blockstone.scan/1";

const DOCUMENT: &str = "scan.json";
const COMPRESSED: [&str; 4] =
    ["compressed_bytes_1", "compressed_bytes_2", "compressed_bytes_3", "compressed_bytes_4"];
/// It lists the files that were read: two million of them take half of this.
const DOCUMENT_MAX: Bytes = Bytes::gib(1);
const ROWS_A_GROUP: usize = 64 << 10;

/// A content that was counted. `docs/recording-format.md` explains each column.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FingerprintRow {
    /// Index into the tables that `scan.json` lists.
    pub table: u32,
    /// XXH3-128 of the content, as `docs/reduce.md` describes it.
    pub fingerprint: u128,
    /// Index of the file in which it occurred first.
    pub first_file: u32,
    /// Position in that file, in blocks; for chunks in bytes.
    pub first_at: u64,
    pub occurrences: u32,
    /// Set of files that hold it; for chunks, their length in bytes.
    pub file_set: u32,
    /// Whether it belongs to pages that were never used.
    pub never_used: bool,
    /// Size in bytes under each compressor, if it was compressed.
    pub compressed_bytes: Option<[u32; 4]>,
}

/// A set of files: the files of another set, plus one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FileSetRow {
    /// The other set; 0 is the empty one. Sets are numbered from 1 in the order of their rows.
    pub parent: u32,
    pub file: u32,
}

/// Saves a scan in `dir`, replacing an earlier one if there is one. `document` becomes `scan.json`.
/// Fails when a file cannot be written; the earlier scan is then kept.
pub fn write(
    dir: &Path,
    mut document: Json,
    rows: impl Iterator<Item = FingerprintRow>,
    sets: impl Iterator<Item = FileSetRow>,
) -> Result<(), RecordError> {
    let disk = System::hold(dir)?;
    let before = generation(&disk, dir);
    let generation = before.map_or(1, |number| number + 1);
    let (contents, file_sets_) = (fingerprints(dir, generation), file_sets(dir, generation));
    write_table(&disk, &contents, fingerprint_fields(), rows, fingerprint_row)?;
    write_table(&disk, &file_sets_, set_fields(), sets, set_row)?;
    document["format"] = FORMAT.into();
    document["generation"] = generation.into();
    document["checksum"] = checksum::PLACEHOLDER.into();
    let path = dir.join(DOCUMENT);
    let mut text =
        serde_json::to_vec(&document).map_err(|e| RecordError::io("write", &path)(e.into()))?;
    checksum::seal(&mut text);
    publish(&disk, &path, |out: &mut (dyn Write + Send)| {
        out.write_all(&text).map_err(RecordError::io("write", &path))
    })?;
    if let Some(before) = before {
        // The new generation is in place; if the old one could not be removed, it would only cost
        // space.
        let _ = disk.remove(&fingerprints(dir, before));
        let _ = disk.remove(&file_sets(dir, before));
    }
    Ok(())
}

/// A saved scan, opened: both tables are present and complete.
pub struct SavedScan {
    pub document: Json,
    fingerprints: (PathBuf, Reader),
    sets: (PathBuf, Reader),
}

impl SavedScan {
    /// Opens the scan in `dir` and verifies its checksums. Fails when there is none, or when it is
    /// damaged or of a later version.
    pub fn open(dir: &Path) -> Result<Self, RecordError> {
        let path = dir.join(DOCUMENT);
        let text = held::open_no_link(&path).and_then(|file| held::read_whole(file, DOCUMENT_MAX));
        let text = text.map_err(|source| match source.kind() {
            io::ErrorKind::NotFound if dir.is_dir() => RecordError::Damaged {
                path: dir.to_owned(),
                why: format!("there is no {DOCUMENT} in it"),
                hint: "name a directory that `blockstone reduce --save` made",
            },
            io::ErrorKind::NotFound => RecordError::io("open saved scan", dir)(source),
            _ => RecordError::io("read", &path)(source),
        })?;
        let damaged = |why: String| RecordError::damaged(&path, why);
        let document: Json = serde_json::from_slice(&text).map_err(|e| damaged(e.to_string()))?;
        let format = document["format"].as_str().unwrap_or_default();
        if format != FORMAT {
            return if format.starts_with("blockstone.scan/") {
                Err(RecordError::NewerFormat { path, format: format.to_owned() })
            } else {
                Err(damaged("it is not a saved scan".to_owned()))
            };
        }
        if !checksum::is_sealed(&text) {
            return Err(damaged("its checksum does not match its content".to_owned()));
        }
        let generation =
            document["generation"].as_u64().ok_or_else(|| damaged("no generation".to_owned()))?;
        let table = |path: PathBuf| Reader::open(&path).map(|reader| (path, reader));
        Ok(Self {
            fingerprints: table(fingerprints(dir, generation))?,
            sets: table(file_sets(dir, generation))?,
            document,
        })
    }

    /// Passes on the sets, in order.
    pub fn sets(&self, mut each: impl FnMut(FileSetRow)) -> Result<(), RecordError> {
        let (path, reader) = &self.sets;
        for group in 0..reader.groups() {
            let table = reader.read_groups(path, group..group + 1)?;
            let columns = Cells::new(&table, path);
            let (parents, files) = (columns.number("parent")?, columns.number("file")?);
            for row in 0..table.len() {
                each(FileSetRow { parent: parents[row] as u32, file: files[row] as u32 });
            }
        }
        Ok(())
    }

    /// Passes on the contents, in order.
    pub fn fingerprints(&self, mut each: impl FnMut(FingerprintRow)) -> Result<(), RecordError> {
        let (path, reader) = &self.fingerprints;
        for group in 0..reader.groups() {
            let table = reader.read_groups(path, group..group + 1)?;
            let columns = Cells::new(&table, path);
            let number = |name| columns.number(name);
            let (index, high, low) =
                (number("table")?, number("fingerprint_high")?, number("fingerprint_low")?);
            let (file, at) = (number("first_file")?, number("first_at")?);
            let (occurrences, set) = (number("occurrences")?, number("file_set")?);
            let never_used = columns.flag("never_used")?;
            let mut sizes = Vec::new();
            for name in COMPRESSED {
                sizes.push(columns.numbers(name)?);
            }
            for row in 0..table.len() {
                let compressed = sizes[0].valid[row]
                    .then(|| std::array::from_fn(|codec| sizes[codec].values[row] as u32));
                each(FingerprintRow {
                    table: index[row] as u32,
                    fingerprint: u128::from(high[row] as u64) << 64 | u128::from(low[row] as u64),
                    first_file: file[row] as u32,
                    first_at: at[row] as u64,
                    occurrences: occurrences[row] as u32,
                    file_set: set[row] as u32,
                    never_used: never_used[row],
                    compressed_bytes: compressed,
                });
            }
        }
        Ok(())
    }
}

fn generation(disk: &System, dir: &Path) -> Option<u64> {
    let text = held::read_whole(disk.open(&dir.join(DOCUMENT)).ok()?, DOCUMENT_MAX).ok()?;
    let document: Json = serde_json::from_slice(&text).ok()?;
    document["generation"].as_u64()
}

fn fingerprints(dir: &Path, generation: u64) -> PathBuf {
    dir.join(format!("fingerprints.{generation}.parquet"))
}

fn file_sets(dir: &Path, generation: u64) -> PathBuf {
    dir.join(format!("file_sets.{generation}.parquet"))
}

fn fingerprint_fields() -> Vec<Field> {
    let number = |name| Field::new(name, Type::Number);
    let mut fields = vec![
        number("table"),
        number("fingerprint_high"),
        number("fingerprint_low"),
        number("first_file"),
        number("first_at"),
        number("occurrences"),
        number("file_set"),
        Field::new("never_used", Type::Flag),
    ];
    fields.extend(COMPRESSED.map(|name| Field::nullable(name, Type::Number)));
    fields
}

fn fingerprint_row(row: FingerprintRow) -> Vec<Value<'static>> {
    let mut values = vec![
        Value::Number(row.table.into()),
        Value::Number((row.fingerprint >> 64) as i64),
        Value::Number(row.fingerprint as i64),
        Value::Number(row.first_file.into()),
        Value::Number(row.first_at as i64),
        Value::Number(row.occurrences.into()),
        Value::Number(row.file_set.into()),
        Value::Flag(row.never_used),
    ];
    for codec in 0..COMPRESSED.len() {
        let size = row.compressed_bytes.map(|sizes| sizes[codec]);
        values.push(size.map_or(Value::Empty, |bytes| Value::Number(bytes.into())));
    }
    values
}

fn set_fields() -> Vec<Field> {
    vec![Field::new("parent", Type::Number), Field::new("file", Type::Number)]
}

fn set_row(row: FileSetRow) -> Vec<Value<'static>> {
    vec![Value::Number(row.parent.into()), Value::Number(row.file.into())]
}

fn write_table<R>(
    disk: &System,
    path: &Path,
    fields: Vec<Field>,
    rows: impl Iterator<Item = R>,
    values: impl Fn(R) -> Vec<Value<'static>>,
) -> Result<(), RecordError> {
    let mut table = Table::new(fields);
    publish(disk, path, |out| {
        let mut writer = Writer::new(out, path, &table.fields, Vec::new())?;
        for row in rows {
            table.push(values(row));
            if table.len() == ROWS_A_GROUP {
                writer.write(&table)?;
                table.clear();
            }
        }
        if !table.is_empty() {
            writer.write(&table)?;
        }
        writer.finish()
    })
}

#[cfg(test)]
mod tests {
    use std::fs;

    use blockstone_base::hint::Hint as _;

    use super::*;

    fn row(number: u64) -> FingerprintRow {
        FingerprintRow {
            table: (number % 3) as u32,
            fingerprint: u128::from(number).wrapping_mul(0x9e37_79b9_7f4a_7c15_f39c_c060_5ced_c835),
            first_file: number as u32,
            first_at: number << 20,
            occurrences: number as u32 + 1,
            file_set: number as u32,
            never_used: number % 2 == 1,
            compressed_bytes: number.is_multiple_of(5).then_some([1, 2, 3, number as u32]),
        }
    }

    fn read(dir: &Path) -> (Json, Vec<FingerprintRow>, Vec<FileSetRow>) {
        let saved = SavedScan::open(dir).unwrap();
        let (mut rows, mut sets) = (Vec::new(), Vec::new());
        saved.fingerprints(|row| rows.push(row)).unwrap();
        saved.sets(|set| sets.push(set)).unwrap();
        (saved.document, rows, sets)
    }

    #[test]
    fn what_is_saved_is_read_and_a_later_one_takes_its_place() {
        let dir = tempfile::tempdir().unwrap();
        let dir = dir.path().join("scan");
        let sets: Vec<FileSetRow> =
            (0..10).map(|n| FileSetRow { parent: n, file: n + 1 }).collect();
        for count in [70_000, 3, 0] {
            let rows: Vec<FingerprintRow> = (0..count).map(row).collect();
            let document = serde_json::json!({ "count": count });
            write(&dir, document, rows.iter().copied(), sets.iter().copied()).unwrap();
            let (document, found, found_sets) = read(&dir);
            assert_eq!(document["count"], count);
            assert!(found == rows && found_sets == sets);
            assert_eq!(fs::read_dir(&dir).unwrap().count(), 3, "older generations are gone");
        }
    }

    #[test]
    fn damage_is_named_with_the_file_and_a_hint() {
        let parent = tempfile::tempdir().unwrap();
        let dir = parent.path().join("scan");
        let said = |dir: &Path| match SavedScan::open(dir) {
            Ok(_) => String::new(),
            Err(error) => error.told(),
        };
        assert!(said(&dir).contains("open saved scan"));
        write(&dir, Json::Object(serde_json::Map::new()), (0..100).map(row), [].into_iter())
            .unwrap();
        let table = dir.join("fingerprints.1.parquet");
        let whole = fs::read(&table).unwrap();
        let mut torn = whole.clone();
        torn[50] ^= 1;
        fs::write(&table, torn).unwrap();
        assert!(said(&dir).contains("fingerprints.1.parquet"), "{}", said(&dir));
        fs::write(&table, &whole[..whole.len() / 2]).unwrap();
        assert!(said(&dir).contains("hint: "), "{}", said(&dir));
        fs::write(&table, whole).unwrap();
        let document = dir.join(DOCUMENT);
        fs::write(&document, r#"{"format":"blockstone.scan/9","generation":1}"#).unwrap();
        assert!(said(&dir).contains("blockstone.scan/9"));
        for text in ["{", "{}", r#"{"format":"blockstone.scan/1"}"#] {
            fs::write(&document, text).unwrap();
            assert!(said(&dir).contains("scan.json"), "{}", said(&dir));
        }
        fs::remove_file(&document).unwrap();
        assert!(said(&dir).contains("--save"), "{}", said(&dir));
    }
}
