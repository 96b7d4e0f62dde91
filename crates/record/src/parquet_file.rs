//! One table of a recording in one Parquet file. Only this module and `bounds` know the library.
//!
//! Numbers are delta-encoded, texts dictionary-encoded, nothing is compressed: counters that grow
//! slowly need a byte or two per tick that way, and every Parquet reader understands it.

use std::cell::Cell;
use std::fs::File;
use std::io::{self, Write};
use std::ops::Range;
use std::panic::{self, AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::sync::{Arc, Once};

use blockstone_base::units::Bytes;
use blockstone_sys::held;
use parquet::basic::{Encoding, LogicalType, Repetition, Type as Physical};
use parquet::column::reader::{ColumnReader, ColumnReaderImpl, get_column_reader};
use parquet::data_type::{ByteArray, ByteArrayType, DataType, Int64Type};
use parquet::errors::ParquetError;
use parquet::file::metadata::{ColumnChunkMetaData, KeyValue, ParquetMetaData};
use parquet::file::properties::{EnabledStatistics, WriterProperties};
use parquet::file::reader::{FileReader, SerializedFileReader};
use parquet::file::statistics::Statistics;
use parquet::file::writer::{SerializedColumnWriter, SerializedFileWriter};
use parquet::schema::types::{ColumnPath, Type as SchemaType};

use crate::bounds::{self, BoundedFile, BoundedPages, Budget};
use crate::checksum::{self, GroupSum, PLACEHOLDER, Summing, Verified};
use crate::error::RecordError;
use crate::rows::SECOND;
use crate::table::{Data, Field, Numbers, OBJECT, PHASE, T_NS, Table, Texts, Type};

pub(crate) const KEY_CHECKSUM: &str = "blockstone.checksum";
/// Footer keys of the checksum of the footer alone, and of those of the row groups with their ends.
const KEY_FOOTER: &str = "blockstone.footer";
const KEY_GROUPS: &str = "blockstone.groups";
/// Footer key of a series' columns: the manifest's `ColumnInfo`s, as JSON.
pub(crate) const KEY_COLUMNS: &str = "blockstone.columns";

/// Rows of a group for which a reader allocates memory up front.
const EXPECTED_ROWS: usize = 256 << 10;

/// Columns for which a group stores minimum and maximum, so that a reader can skip it.
const KEYS: [&str; 4] = [T_NS, SECOND, PHASE, OBJECT];

pub(crate) type Meta = Vec<(String, String)>;

/// Writes tables with equal fields into one file, one row group each.
pub(crate) struct Writer<'a> {
    inner: SerializedFileWriter<Summing<'a>>,
    path: &'a Path,
}

impl<'a> Writer<'a> {
    /// Begins the file; `path` is used in messages.
    pub fn new(
        out: &'a mut (dyn Write + Send),
        path: &'a Path,
        fields: &[Field],
        meta: Meta,
    ) -> Result<Self, RecordError> {
        let pairs = meta.into_iter().map(|(key, value)| KeyValue::new(key, value)).collect();
        let mut properties = WriterProperties::builder()
            .set_created_by(format!("blockstone {}", env!("CARGO_PKG_VERSION")))
            .set_offset_index_disabled(true)
            .set_statistics_enabled(EnabledStatistics::None)
            .set_key_value_metadata(Some(pairs));
        for key in KEYS {
            let column = ColumnPath::from(key);
            properties = properties.set_column_statistics_enabled(column, EnabledStatistics::Chunk);
        }
        for field in fields.iter().filter(|f| matches!(f.kind, Type::Number | Type::Index)) {
            let column = ColumnPath::from(field.name.as_str());
            properties = properties
                .set_column_dictionary_enabled(column.clone(), false)
                .set_column_encoding(column, Encoding::DELTA_BINARY_PACKED);
        }
        let schema = schema(fields).map_err(|e| wrap("write", path, e))?;
        let inner =
            SerializedFileWriter::new(Summing::new(out), schema, Arc::new(properties.build()))
                .map_err(|e| wrap("write", path, e))?;
        Ok(Self { inner, path })
    }

    pub fn write(&mut self, table: &Table) -> Result<(), RecordError> {
        self.try_write(table).map_err(|e| wrap("write", self.path, e))
    }

    fn try_write(&mut self, table: &Table) -> Result<(), ParquetError> {
        let mut group = self.inner.next_row_group()?;
        let mut cells = table.fields.iter().zip(&table.columns);
        while let Some(mut column) = group.next_column()? {
            let (field, data) = cells.next().ok_or_else(|| {
                ParquetError::General("the table has fewer columns than the file".to_owned())
            })?;
            write_column(&mut column, data, field.nullable)?;
            column.close()?;
        }
        group.close()?;
        self.inner.flush()?;
        self.inner.inner_mut().end_group();
        Ok(())
    }

    /// Writes the footer with the checksums filled in.
    pub fn finish(mut self) -> Result<(), RecordError> {
        let error = |e| RecordError::io("write", self.path)(e);
        self.inner.flush().map_err(error)?;
        let groups = self.inner.inner_mut().groups();
        // In this order: the last one applies to the whole file.
        for (key, value) in
            [(KEY_GROUPS, groups.as_str()), (KEY_FOOTER, PLACEHOLDER), (KEY_CHECKSUM, PLACEHOLDER)]
        {
            let pair = KeyValue::new(key.to_owned(), value.to_owned());
            self.inner.append_key_value_metadata(pair);
        }
        self.inner.inner_mut().hold();
        self.inner.finish().map_err(|e| wrap("write", self.path, e))?;
        self.inner.inner_mut().release().map_err(error)
    }
}

/// A verified file: its footer, and its rows on request.
pub(crate) struct Reader {
    pub meta: Meta,
    inner: SerializedFileReader<BoundedFile>,
    file_bytes: u64,
    /// The file and its group checksums, if groups still have to be verified.
    unverified: Option<(File, Vec<GroupSum>)>,
}

impl Reader {
    pub fn open(path: &Path) -> Result<Self, RecordError> {
        Self::of(held::open_no_link(path).map_err(RecordError::io("open", path))?, path)
    }

    /// Reads `file`; `path` is used in errors.
    pub fn of(file: File, path: &Path) -> Result<Self, RecordError> {
        Self::of_large(file, path, checksum::LARGE)
    }

    /// The same; above the size `large`, groups are verified when they are read.
    pub fn of_large(file: File, path: &Path, large: Bytes) -> Result<Self, RecordError> {
        let verified = checksum::verify(&file, path, large)?;
        let again = file.try_clone().map_err(RecordError::io("read", path))?;
        let file_bytes = file.metadata().map_err(RecordError::io("read", path))?.len();
        let opened = shielded(|| {
            let inner = SerializedFileReader::new(BoundedFile::new(file, file_bytes))?;
            bounds::check(inner.metadata(), file_bytes).map(|()| inner)
        });
        let inner = opened.map_err(|e| wrap("read", path, e))?;
        let pairs = inner.metadata().file_metadata().key_value_metadata();
        let meta = pairs
            .into_iter()
            .flatten()
            .map(|pair| (pair.key.clone(), pair.value.clone().unwrap_or_default()))
            .collect();
        let mut reader = Self { meta, inner, file_bytes, unverified: None };
        if verified == Verified::Footer {
            let sums = checksum::parse_groups(reader.get(KEY_GROUPS).unwrap_or_default());
            let sums = sums.filter(|sums| sums.len() == reader.groups());
            let none = || RecordError::damaged(path, "its row groups have no checksums");
            reader.unverified = Some((again, sums.ok_or_else(none)?));
        }
        Ok(reader)
    }

    /// Checks a group of a file of which only the footer was verified.
    fn verify(&self, group: usize, path: &Path) -> Result<(), RecordError> {
        let Some((file, sums)) = &self.unverified else { return Ok(()) };
        let from = group.checked_sub(1).map_or(0, |before| sums[before].end);
        let within = |chunk: &ColumnChunkMetaData| {
            let (start, len) = chunk.byte_range();
            start >= from && start.saturating_add(len) <= sums[group].end
        };
        if !self.inner.metadata().row_group(group).columns().iter().all(within) {
            return Err(RecordError::damaged(path, "its row groups are not where they should be"));
        }
        checksum::verify_group(file, path, from, sums[group])
    }

    pub fn get(&self, key: &str) -> Option<&str> {
        self.meta.iter().find(|(k, _)| k == key).map(|(_, value)| value.as_str())
    }

    /// Reads all rows. Columns of types that no version of Blockstone writes are left out.
    pub fn read(&self, path: &Path) -> Result<Table, RecordError> {
        self.read_groups(path, 0..self.groups())
    }

    pub fn groups(&self) -> usize {
        self.inner.metadata().num_row_groups()
    }

    /// Returns the minimum and maximum of a column in a group, as stored by the writer.
    pub fn range(&self, group: usize, column: &str) -> Option<(i64, i64)> {
        let group = self.inner.metadata().row_group(group);
        let chunk = group.columns().iter().find(|chunk| chunk.column_descr().name() == column)?;
        match chunk.statistics()? {
            Statistics::Int64(noted) => Some((*noted.min_opt()?, *noted.max_opt()?)),
            Statistics::Int32(noted) => {
                Some(((*noted.min_opt()?).into(), (*noted.max_opt()?).into()))
            }
            _ => None,
        }
    }

    /// Reads the rows of some groups, like [`Reader::read`].
    pub fn read_groups(&self, path: &Path, groups: Range<usize>) -> Result<Table, RecordError> {
        self.read_columns(path, groups, |_| true)
    }

    /// The same, but only for the wanted columns.
    pub fn read_columns(
        &self,
        path: &Path,
        groups: Range<usize>,
        wanted: impl Fn(&str) -> bool,
    ) -> Result<Table, RecordError> {
        groups.clone().try_for_each(|group| self.verify(group, path))?;
        let metadata = self.inner.metadata();
        let mut budget = Budget::new(self.file_bytes);
        let mut table = Table::new(Vec::new());
        for (index, field) in fields(metadata).into_iter().filter(|(_, f)| wanted(&f.name)) {
            let mut data = Data::new(field.kind);
            for group in groups.clone() {
                shielded(|| {
                    self.read_chunk((group, index), field.nullable, &mut budget, &mut data)
                })
                .map_err(|e| wrap("read", path, e))?;
            }
            table.fields.push(field);
            table.columns.push(data);
        }
        let rows: i64 = groups.map(|group| metadata.row_group(group).num_rows()).sum();
        if table.columns.iter().any(|column| column.len() as i64 != rows) {
            return Err(RecordError::damaged(path, format!("it does not hold its {rows} rows")));
        }
        Ok(table)
    }

    fn read_chunk(
        &self,
        (group, column): (usize, usize),
        nullable: bool,
        budget: &mut Budget,
        data: &mut Data,
    ) -> Result<(), ParquetError> {
        let group = self.inner.get_row_group(group)?;
        let pages = group.get_column_page_reader(column)?;
        let rows = group.metadata().num_rows();
        let pages = BoundedPages::new(pages, rows);
        let descriptor = self.inner.metadata().file_metadata().schema_descr().column(column);
        match (get_column_reader(descriptor, Box::new(pages)), data) {
            (ColumnReader::Int64ColumnReader(reader), Data::Number(numbers)) => {
                let (values, valid) = read_all(reader, rows, nullable)?;
                if numbers.values.is_empty() && values.len() == valid.len() {
                    *numbers = Numbers { values, valid };
                    return Ok(());
                }
                let mut values = values.into_iter();
                for valid in valid {
                    numbers.push(if valid { values.next() } else { None });
                }
            }
            (ColumnReader::Int32ColumnReader(reader), Data::Index(out)) => {
                out.extend(read_all(reader, rows, nullable)?.0);
            }
            (ColumnReader::BoolColumnReader(reader), Data::Flag(out)) => {
                out.extend(read_all(reader, rows, nullable)?.0);
            }
            (ColumnReader::ByteArrayColumnReader(reader), Data::Text(texts)) => {
                let (values, present) = read_all(reader, rows, nullable)?;
                let mut values = values.iter();
                let mut last: Option<&ByteArray> = None;
                for present in present {
                    let value = if present { values.next() } else { None };
                    // Rows of one object are adjacent.
                    if value.is_some() && value == last {
                        texts.push_again();
                        continue;
                    }
                    last = value;
                    let value = value.map(ByteArray::as_utf8).transpose()?;
                    if let Some(new) = value.filter(|text| texts.code(text).is_none()) {
                        budget.take_bytes(new.len())?;
                    }
                    texts.push(value);
                }
            }
            (ColumnReader::ByteArrayColumnReader(reader), Data::Bytes(out)) => {
                for value in read_all(reader, rows, nullable)?.0 {
                    budget.take_bytes(value.len())?;
                    out.push(value.data().to_vec());
                }
            }
            _ => return Err(ParquetError::General("a column changed its type".to_owned())),
        }
        Ok(())
    }
}

pub(crate) fn schema(fields: &[Field]) -> Result<Arc<SchemaType>, ParquetError> {
    let columns = fields.iter().map(|field| {
        let (physical, logical) = match field.kind {
            Type::Number => (Physical::INT64, None),
            Type::Index => (Physical::INT32, None),
            Type::Flag => (Physical::BOOLEAN, None),
            Type::Text => (Physical::BYTE_ARRAY, Some(LogicalType::String)),
            Type::Bytes => (Physical::BYTE_ARRAY, None),
        };
        let repetition = if field.nullable { Repetition::OPTIONAL } else { Repetition::REQUIRED };
        SchemaType::primitive_type_builder(&field.name, physical)
            .with_repetition(repetition)
            .with_logical_type(logical)
            .build()
            .map(Arc::new)
    });
    let columns = columns.collect::<Result<_, _>>()?;
    SchemaType::group_type_builder("blockstone").with_fields(columns).build().map(Arc::new)
}

/// Returns the file's flat columns of known types, with their indices.
fn fields(metadata: &ParquetMetaData) -> Vec<(usize, Field)> {
    let schema = metadata.file_metadata().schema_descr();
    let columns = schema.columns().iter().enumerate();
    columns
        .filter(|(_, c)| c.max_rep_level() == 0 && c.max_def_level() <= 1)
        .filter_map(|(index, c)| {
            let text = matches!(c.logical_type_ref(), Some(LogicalType::String));
            let nullable = c.max_def_level() == 1;
            let kind = match c.physical_type() {
                Physical::INT64 => Type::Number,
                Physical::BYTE_ARRAY if text => Type::Text,
                Physical::INT32 if !nullable => Type::Index,
                Physical::BOOLEAN if !nullable => Type::Flag,
                Physical::BYTE_ARRAY if !nullable => Type::Bytes,
                _ => return None,
            };
            Some((index, Field { name: c.name().to_owned(), kind, nullable }))
        })
        .collect()
}

fn write_column(
    column: &mut SerializedColumnWriter<'_>,
    data: &Data,
    nullable: bool,
) -> Result<(), ParquetError> {
    use parquet::data_type::{BoolType, Int32Type};
    match data {
        Data::Number(Numbers { values, valid }) => {
            let present = values.iter().zip(valid).filter(|(_, valid)| **valid);
            let values: Vec<i64> = present.map(|(&value, _)| value).collect();
            let levels: Vec<i16> = valid.iter().map(|&v| i16::from(v)).collect();
            column.typed::<Int64Type>().write_batch(&values, nullable.then_some(&levels), None)
        }
        Data::Index(values) => column.typed::<Int32Type>().write_batch(values, None, None),
        Data::Flag(values) => column.typed::<BoolType>().write_batch(values, None, None),
        Data::Text(texts) => {
            let (values, levels) = text_values(texts);
            column.typed::<ByteArrayType>().write_batch(&values, nullable.then_some(&levels), None)
        }
        Data::Bytes(values) => {
            let values: Vec<ByteArray> = values.iter().cloned().map(ByteArray::from).collect();
            column.typed::<ByteArrayType>().write_batch(&values, None, None)
        }
    }
    .map(drop)
}

/// The texts present (clones of a `ByteArray` share its bytes) and each row's definition level.
fn text_values(texts: &Texts) -> (Vec<ByteArray>, Vec<i16>) {
    let words: Vec<ByteArray> = texts.words().iter().map(|w| w.as_str().into()).collect();
    let cells = || texts.codes().iter().map(|&code| words.get(code as usize));
    (cells().flatten().cloned().collect(), cells().map(|c| i16::from(c.is_some())).collect())
}

/// Reads all values of a column chunk of this many rows, and for each row whether it has one.
fn read_all<T: DataType>(
    mut reader: ColumnReaderImpl<T>,
    rows: i64,
    nullable: bool,
) -> Result<(Vec<T::T>, Vec<bool>), ParquetError> {
    let rows = usize::try_from(rows).unwrap_or(0).min(EXPECTED_ROWS);
    let mut values = Vec::with_capacity(rows);
    let mut levels = Vec::with_capacity(if nullable { rows } else { 0 });
    loop {
        let wanted = nullable.then_some(&mut levels);
        if reader.read_records(64 << 10, wanted, None, &mut values)?.0 == 0 {
            break;
        }
    }
    let present =
        if nullable { levels.iter().map(|&l| l == 1).collect() } else { vec![true; values.len()] };
    Ok((values, present))
}

thread_local! {
    /// Whether this thread is decoding: a panic is then an error, and prints no message.
    static DECODES: Cell<bool> = const { Cell::new(false) };
}

/// Returns the result of `decode`. The library panics on some files that no writer produces.
fn shielded<T>(decode: impl FnOnce() -> Result<T, ParquetError>) -> Result<T, ParquetError> {
    static QUIET: Once = Once::new();
    QUIET.call_once(|| {
        let report = panic::take_hook();
        panic::set_hook(Box::new(move |info| {
            if !DECODES.get() {
                report(info);
            }
        }));
    });
    DECODES.set(true);
    // Data left half done by a panic is dropped with the table that was to hold it.
    let decoded = catch_unwind(AssertUnwindSafe(decode));
    DECODES.set(false);
    decoded.unwrap_or_else(|_| {
        Err(ParquetError::General("its pages contradict themselves".to_owned()))
    })
}

/// Converts an error of the library, or the operating system's error inside it.
pub(crate) fn wrap(verb: &'static str, path: &Path, error: ParquetError) -> RecordError {
    match error {
        ParquetError::External(source) => match source.downcast::<io::Error>() {
            Ok(source) => RecordError::Io { verb, path: path.to_owned(), source: *source },
            Err(other) => RecordError::damaged(path, other.to_string()),
        },
        other => RecordError::damaged(path, other.to_string()),
    }
}
