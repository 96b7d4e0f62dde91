//! A table in a Parquet file for other programs: no recording, and nothing that a recording has.
//! Row groups note the least and greatest value of each column, by which readers pass them over.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use parquet::basic::{LogicalType, Repetition, Type as Physical};
use parquet::data_type::{ByteArray, ByteArrayType, Int64Type};
use parquet::errors::ParquetError;
use parquet::file::metadata::ColumnChunkMetaData;
use parquet::file::properties::{EnabledStatistics, WriterProperties};
use parquet::file::writer::SerializedFileWriter;
use parquet::schema::types::Type as SchemaType;

use crate::error::RecordError;
use crate::parquet_file::wrap;

/// The values of a column in one row group, or, without any, of which type it is.
#[derive(Clone, Debug, PartialEq)]
pub enum Values {
    Numbers(Vec<i64>),
    Texts(Vec<String>),
}

/// Bytes of a row group in its file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Group {
    pub start: u64,
    pub end: u64,
    pub rows: u64,
}

/// Writes one file, a row group at a time.
pub struct PlainWriter<W: Write + Send> {
    inner: SerializedFileWriter<W>,
    path: PathBuf,
}

impl<W: Write + Send> PlainWriter<W> {
    /// `path` is for messages. Columns must have names that differ.
    pub fn new(out: W, path: &Path, columns: &[(&str, Values)]) -> Result<Self, RecordError> {
        let failed = |error| wrap("write", path, error);
        let column = |(name, values): &(&str, Values)| {
            let (physical, logical) = match values {
                Values::Numbers(_) => (Physical::INT64, None),
                Values::Texts(_) => (Physical::BYTE_ARRAY, Some(LogicalType::String)),
            };
            let column = SchemaType::primitive_type_builder(name, physical);
            let column = column.with_repetition(Repetition::REQUIRED);
            column.with_logical_type(logical).build().map(Arc::new)
        };
        let fields = columns.iter().map(column).collect::<Result<_, _>>().map_err(failed)?;
        let schema = SchemaType::group_type_builder("table").with_fields(fields).build();
        let properties = WriterProperties::builder()
            .set_created_by(format!("blockstone {}", env!("CARGO_PKG_VERSION")))
            .set_statistics_enabled(EnabledStatistics::Chunk)
            .build();
        let schema = Arc::new(schema.map_err(failed)?);
        let inner = SerializedFileWriter::new(out, schema, Arc::new(properties));
        Ok(Self { inner: inner.map_err(failed)?, path: path.to_owned() })
    }

    /// Columns in the order in which they were declared, all with as many values.
    pub fn write(&mut self, columns: &[Values]) -> Result<(), RecordError> {
        let written = self.try_write(columns);
        written.map_err(|error| wrap("write", &self.path, error))
    }

    fn try_write(&mut self, columns: &[Values]) -> Result<(), ParquetError> {
        let mut group = self.inner.next_row_group()?;
        let mut values = columns.iter();
        while let Some(mut column) = group.next_column()? {
            let missing = || ParquetError::General("a column has no values".to_owned());
            match values.next().ok_or_else(missing)? {
                Values::Numbers(numbers) => {
                    column.typed::<Int64Type>().write_batch(numbers, None, None)?;
                }
                Values::Texts(texts) => {
                    let texts: Vec<ByteArray> = texts.iter().map(|it| it.as_str().into()).collect();
                    column.typed::<ByteArrayType>().write_batch(&texts, None, None)?;
                }
            }
            column.close()?;
        }
        group.close()?;
        Ok(())
    }

    /// Writes the footer; gives where the row groups lie.
    pub fn finish(mut self) -> Result<Vec<Group>, RecordError> {
        let metadata = self.inner.finish().map_err(|error| wrap("write", &self.path, error))?;
        let group = |group: &parquet::file::metadata::RowGroupMetaData| {
            let ranges: Vec<(u64, u64)> =
                group.columns().iter().map(ColumnChunkMetaData::byte_range).collect();
            Group {
                start: ranges.iter().map(|(start, _)| *start).min().unwrap_or(0),
                end: ranges.iter().map(|(start, len)| start + len).max().unwrap_or(0),
                rows: u64::try_from(group.num_rows()).unwrap_or(0),
            }
        };
        Ok(metadata.row_groups().iter().map(group).collect())
    }
}

#[cfg(test)]
mod tests {
    use parquet::file::reader::{FileReader as _, SerializedFileReader};

    use super::*;

    #[test]
    fn a_reader_finds_rows_and_bounds_of_each_group() {
        let path = tempfile::NamedTempFile::new().unwrap();
        let file = path.reopen().unwrap();
        let columns = [("n", Values::Numbers(vec![])), ("t", Values::Texts(vec![]))];
        let mut writer = PlainWriter::new(file, path.path(), &columns).unwrap();
        for group in 0..3 {
            let texts = (0..10).map(|at| format!("{group}{at}")).collect();
            let numbers = (0..10).map(|at| group * 10 + at).collect();
            writer.write(&[Values::Numbers(numbers), Values::Texts(texts)]).unwrap();
        }
        let groups = writer.finish().unwrap();
        assert!(groups.windows(2).all(|pair| pair[0].end <= pair[1].start), "{groups:?}");
        let read = SerializedFileReader::new(path.reopen().unwrap()).unwrap();
        let metadata = read.metadata();
        assert_eq!(metadata.num_row_groups(), 3);
        assert_eq!(metadata.file_metadata().num_rows(), 30);
        let bounds = metadata.row_group(1).column(1).statistics().unwrap();
        assert_eq!(bounds.min_bytes_opt(), Some(b"10".as_slice()));
        assert_eq!(bounds.max_bytes_opt(), Some(b"19".as_slice()));
    }
}
