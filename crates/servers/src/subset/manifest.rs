//! The manifest of a directory with a subset, `subset.json`, from which it is loaded.

use std::fs::File;
use std::io::{self, Write};
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use blockstone_base::units::{Bytes, thousands};
use blockstone_sys::held::{HeldDir, read_whole};
use serde::{Deserialize, Serialize};

use super::engine::Engine;
use crate::sql::error::SqlError;

pub const FILE: &str = "subset.json";
pub const SCRIPT: &str = "load.sql";
pub const BEFORE: &str = "schema-before.sql";
pub const AFTER: &str = "schema-after.sql";
/// Views, routines and triggers of MariaDB.
pub const CODE: &str = "schema-code.sql";
pub const DATA: &str = "data";
const VERSION: u32 = 1;
/// Maximum size of a manifest and of a schema: the directory may be untrusted.
const BYTES_MAX: u64 = 64 << 20;
pub const SCHEMA_MAX: u64 = 1 << 30;

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Manifest {
    pub version: u32,
    pub tool_version: String,
    #[serde(default)]
    pub engine: Engine,
    /// Address without the password, and product with version.
    pub source: String,
    pub product: String,
    pub percent: f64,
    pub seed: u64,
    pub tables: Vec<TableEntry>,
    pub files: Vec<DataFile>,
    pub keys: Vec<KeyEntry>,
    pub sequences: Vec<Sequence>,
    /// PostgreSQL only: the large objects named by rows of the subset.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub large_objects: Option<LargeObjects>,
    /// The permutations behind masked values; `None` if no column is masked, or by a version that
    /// did not write it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub masks: Option<String>,
    /// Notes about the source for the reader of a report.
    #[serde(default)]
    pub notes: Vec<String>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TableEntry {
    pub schema: String,
    pub name: String,
    pub partitioned: bool,
    pub source_rows: u64,
    pub rows: u64,
    /// Number of rows drawn.
    pub seeds: u64,
    /// Number of rows added, by the name of the key that references them.
    pub needed: Vec<(String, u64)>,
    /// Size as stored in the source, estimated from the number of rows.
    pub bytes: Option<u64>,
}

/// Rows of a table or a partition, as lines in the text format of COPY or LOAD DATA.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct DataFile {
    pub schema: String,
    pub name: String,
    pub columns: Vec<String>,
    /// Positions of columns whose values are written in hexadecimal.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub hex: Vec<usize>,
    /// Positions of bit columns, whose values are written as whole numbers.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub bits: Vec<usize>,
    /// Name of the file in the data directory.
    pub file: String,
    pub rows: u64,
    pub bytes: u64,
}

/// A foreign key; tables are given by their position in the list.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct KeyEntry {
    pub name: String,
    pub table: usize,
    pub columns: Vec<String>,
    pub references: usize,
    pub referenced: Vec<String>,
    /// Only rows in which this column has this text have the key.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub when: Option<(String, String)>,
    /// Rows of the subset that reference another row.
    pub rows: u64,
    /// Whether every referenced row was found in the source.
    pub closed: bool,
    /// Whether the source's server, or this program, verified the key.
    pub valid: bool,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Sequence {
    pub schema: String,
    pub name: String,
    pub last_value: i64,
    pub is_called: bool,
}

/// A file of large objects in pieces: lines of COPY with the object's number, the piece's offset
/// and its bytes.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct LargeObjects {
    /// Name of the file in the data directory.
    pub file: String,
    pub objects: u64,
    /// Size of the file.
    pub bytes: u64,
}

const WRONG: &str = "name a directory that `blockstone subset --from … DIR` wrote";

/// Opens a file of the untrusted directory: not through a link, and not if it is a second name of
/// another user's file.
fn open_file(dir: &HeldDir, path: &Path) -> io::Result<File> {
    let file = dir.read(path)?;
    let (found, above) = (file.metadata()?, dir.file()?.metadata()?);
    if found.nlink() > 1 && found.uid() != above.uid() {
        let why = format!("it has several names and belongs to user {}", found.uid());
        return Err(io::Error::new(io::ErrorKind::PermissionDenied, why));
    }
    Ok(file)
}

/// Opens a file of rows by its name in the manifest.
pub fn open_data(dir: &HeldDir, file: &str) -> Result<File, SqlError> {
    let path = Path::new(DATA).join(file);
    open_file(dir, &path).map_err(|source| SqlError::File {
        what: "read",
        path: dir.path().join(&path),
        source,
        hint: "write the subset again",
    })
}

/// Reads a file of the directory and returns the statements that `parse` finds in it.
pub fn read_schema<T>(
    dir: &HeldDir,
    file: &str,
    parse: impl FnOnce(String) -> io::Result<T>,
) -> Result<T, SqlError> {
    let read = || {
        let bytes = read_whole(open_file(dir, Path::new(file))?, Bytes(SCHEMA_MAX))?;
        parse(String::from_utf8(bytes).map_err(io::Error::other)?)
    };
    read().map_err(|source| SqlError::File {
        what: "read",
        path: dir.path().join(file),
        source,
        hint: WRONG,
    })
}

/// Returns the error of a file in the directory that could not be written.
pub fn file_error(path: &Path, source: io::Error) -> SqlError {
    SqlError::File {
        what: "write",
        path: path.to_owned(),
        source,
        hint: "free some space, or name a directory on another file system",
    }
}

/// Writes a new file in the directory.
pub fn write_file(dir: &HeldDir, file: &str, text: &str) -> Result<(), SqlError> {
    let made = dir.create_new(Path::new(file));
    made.and_then(|mut made| made.write_all(text.as_bytes()))
        .map_err(|error| file_error(&dir.path().join(file), error))
}

impl Manifest {
    pub fn new(engine: Engine, source: String, product: String) -> Self {
        Self {
            version: VERSION,
            tool_version: env!("CARGO_PKG_VERSION").to_owned(),
            engine,
            source,
            product,
            percent: 0.0,
            seed: 0,
            tables: Vec::new(),
            files: Vec::new(),
            keys: Vec::new(),
            sequences: Vec::new(),
            large_objects: None,
            masks: None,
            notes: Vec::new(),
        }
    }

    /// Returns the number of rows of the subset.
    pub fn rows(&self) -> u64 {
        self.tables.iter().map(|table| table.rows).fold(0, u64::saturating_add)
    }

    /// Describes the subset, such as `1 % of postgres://host/shop, seed 0: 2,820 of 105,000 rows`.
    pub fn words(&self) -> String {
        let sum = |rows: fn(&TableEntry) -> u64| {
            let all = self.tables.iter().map(rows).fold(0, u64::saturating_add);
            thousands(i64::try_from(all).unwrap_or(i64::MAX))
        };
        let (rows, of) = (sum(|it| it.rows), sum(|it| it.source_rows));
        format!("{} % of {}, seed {}: {rows} of {of} rows", self.percent, self.source, self.seed)
    }

    /// Reads the manifest of `dir`, and checks that the files it names exist.
    pub fn read(dir: &HeldDir) -> Result<Self, SqlError> {
        let refuse = |why: String| SqlError::Program {
            what: format!("read {}", dir.path().join(FILE).display()),
            why,
            hint: WRONG.to_owned(),
        };
        let text = open_file(dir, Path::new(FILE));
        let text = text.and_then(|file| read_whole(file, Bytes(BYTES_MAX)));
        let read =
            Self::parse(&text.map_err(|error| refuse(error.to_string()))?).map_err(refuse)?;
        let large = read.large_objects.iter().map(|objects| &objects.file);
        for file in read.files.iter().map(|file| &file.file).chain(large) {
            if let Err(error) = open_file(dir, &Path::new(DATA).join(file)) {
                return Err(refuse(match error.kind() {
                    io::ErrorKind::NotFound => format!("the file {DATA}/{file} is missing"),
                    _ => format!("the file {DATA}/{file} is refused: {error}"),
                }));
            }
        }
        Ok(read)
    }

    /// Parses and checks an untrusted manifest; the error is the reason for rejecting it.
    pub fn parse(text: &[u8]) -> Result<Self, String> {
        let read: Self = serde_json::from_slice(text).map_err(|error| error.to_string())?;
        if read.version != VERSION {
            return Err(format!("it has version {}, not {VERSION}", read.version));
        }
        let large = read.large_objects.iter().map(|objects| &objects.file);
        for file in read.files.iter().map(|file| &file.file).chain(large) {
            let is_name = !file.is_empty() && !file.contains(['/', '\0']) && !file.starts_with('.');
            if !is_name {
                return Err(format!("{file:?} is not a name of a file"));
            }
        }
        let has = |table: usize| table < read.tables.len();
        for key in &read.keys {
            let is_whole = key.columns.len() == key.referenced.len() && !key.columns.is_empty();
            if !has(key.table) || !has(key.references) || !is_whole {
                return Err(format!("the key {:?} names what is not there", key.name));
            }
        }
        Ok(read)
    }

    /// Returns the text of the manifest file.
    pub fn text(&self) -> Result<String, SqlError> {
        let text = serde_json::to_string_pretty(self);
        text.map(|text| text + "\n").map_err(|error| SqlError::Program {
            what: "write subset.json".to_owned(),
            why: error.to_string(),
            hint: "please report it".to_owned(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(text: &str) -> String {
        let dir = tempfile::tempdir().unwrap();
        std::fs::write(dir.path().join(FILE), text).unwrap();
        Manifest::read(&HeldDir::hold(dir.path()).unwrap()).unwrap_err().to_string()
    }

    #[test]
    fn files_are_read_through_no_link() {
        let dir = tempfile::tempdir().unwrap();
        let victim = tempfile::NamedTempFile::new().unwrap();
        std::fs::create_dir(dir.path().join(DATA)).unwrap();
        std::os::unix::fs::symlink(victim.path(), dir.path().join("data/a")).unwrap();
        std::os::unix::fs::symlink(dir.path().join(DATA), dir.path().join("other")).unwrap();
        std::fs::write(dir.path().join("data/b"), "rows").unwrap();
        let held = HeldDir::hold(dir.path()).unwrap();
        for (path, opens) in [("data/a", false), ("other/b", false), ("data/b", true)] {
            assert_eq!(open_file(&held, Path::new(path)).is_ok(), opens, "{path}");
        }
        blockstone_testkit::require!(Root);
        std::fs::hard_link(dir.path().join("data/b"), dir.path().join("data/c")).unwrap();
        open_file(&held, Path::new("data/c")).unwrap();
        std::os::unix::fs::chown(dir.path(), Some(12_345), None).unwrap();
        let refused = open_file(&held, Path::new("data/c")).unwrap_err();
        assert!(refused.to_string().contains("several names"), "{refused}");
    }

    #[test]
    fn what_a_directory_claims_is_not_believed() {
        let mut one = Manifest::new(
            Engine::Postgres,
            "postgres://a/b".to_owned(),
            "PostgreSQL 15".to_owned(),
        );
        assert!(refused("{").contains(FILE));
        one.version = 9;
        assert!(refused(&one.text().unwrap()).contains("version 9"));
        one.version = VERSION;
        let file = |name: &str| DataFile {
            schema: "s".to_owned(),
            name: "t".to_owned(),
            columns: Vec::new(),
            hex: Vec::new(),
            bits: Vec::new(),
            file: name.to_owned(),
            rows: 0,
            bytes: 0,
        };
        for (name, why) in [("../x", "not a name"), (".x", "not a name"), ("x", "is missing")] {
            one.files = vec![file(name)];
            assert!(refused(&one.text().unwrap()).contains(why), "{name}");
        }
        one.files.clear();
        one.keys = vec![KeyEntry {
            name: "k".to_owned(),
            table: 3,
            columns: vec!["a".to_owned()],
            references: 0,
            referenced: vec!["b".to_owned()],
            rows: 0,
            closed: true,
            valid: true,
            when: None,
        }];
        assert!(refused(&one.text().unwrap()).contains("not there"));
    }
}
