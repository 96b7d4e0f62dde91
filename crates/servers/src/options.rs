//! The options of the database itself, each declared once: the command line fills them in, the
//! target reads them, and the manifest stores them under the names of the fields.

use blockstone_base::named;
use blockstone_base::units::Bytes;
pub use blockstone_instance::TornProtection;
pub use blockstone_instance::group::Redundancy;
use clap::Args;
use clap::builder::{PossibleValuesParser, TypedValueParser};
use serde::Serialize;

named! {
    /// How a database reads and writes its files.
    #[derive(Serialize)]
    #[serde(rename_all = "kebab-case")]
    Io {
        Direct = "direct",
        Buffered = "buffered",
    }
}

/// Redo log of a database whose data has no size yet.
const REDO_LOG: Bytes = Bytes::mib(16);

/// Options of a database, whichever target it is. The text on each is its help.
#[derive(Args, Clone, Debug, PartialEq, Serialize)]
#[command(next_help_heading = "Database")]
pub struct DatabaseOptions {
    /// Database block size: 4K to 32K
    #[arg(long = "block-size", default_value = "8K", value_name = "SIZE")]
    pub block_bytes: Bytes,
    /// Size of the buffer cache
    #[arg(long = "cache", default_value = "128M", value_name = "SIZE")]
    pub cache_bytes: Bytes,
    /// Let SQLite, or a scratch server, have at most this much page cache, 16M or more, so that
    /// what it reads through it comes from the storage; SQLite then uses --io direct unless told
    /// otherwise; needs a control group of memory
    #[arg(long = "page-cache", value_name = "SIZE")]
    pub page_cache_bytes: Option<Bytes>,
    /// Read and write the files of the database past the page cache, or through it; a target that
    /// cannot says why [default: direct for instance and for SQLite with --page-cache, otherwise as
    /// the database does by itself]
    #[arg(long, value_name = "HOW", value_parser = one_of(Io::ALL, Io::name))]
    pub io: Option<Io>,
    /// Copies of each block: external 1, normal 2, high 3
    #[arg(long, default_value = Redundancy::External.name(),
          value_parser = one_of(Redundancy::ALL, Redundancy::name))]
    pub redundancy: Redundancy,
    /// Allocation unit of the disk group: 1M or 4M
    #[arg(long = "allocation-unit", default_value = "1M", value_name = "SIZE")]
    pub allocation_unit_bytes: Bytes,
    /// Protection of blocks against torn (partial) writes
    #[arg(long, default_value = TornProtection::FullPage.name(),
          value_parser = one_of(&PROTECTIONS, TornProtection::name))]
    pub torn_protection: TornProtection,
    /// Open disks of an earlier run even if damage has lost commits; what is lost is reported
    #[arg(long)]
    #[serde(skip)]
    pub accept_loss: bool,
    /// Size of each of the three redo logs [default: 1/16 of the data, from 8M to 256M]
    #[arg(long = "redo-size", value_name = "SIZE")]
    pub redo_log_bytes: Option<Bytes>,
    /// Number of database writers
    #[arg(long, default_value_t = 1, value_name = "N")]
    pub database_writers: u32,
}

/// Protections, the default first.
const PROTECTIONS: [TornProtection; 3] =
    [TornProtection::FullPage, TornProtection::DoubleWrite, TornProtection::None];

impl DatabaseOptions {
    /// Takes out the options that only the miniature instance has and that differ from their
    /// defaults, and returns their names.
    pub fn take_those_of_instance(&mut self) -> Vec<&'static str> {
        let Self {
            redundancy,
            allocation_unit_bytes,
            torn_protection,
            accept_loss,
            redo_log_bytes,
            database_writers,
            ..
        } = Self::default();
        let mut taken = Vec::new();
        let mut take = |name, differs: bool| taken.extend(differs.then_some(name));
        take("redundancy", replaced(&mut self.redundancy, redundancy));
        take("allocation-unit", replaced(&mut self.allocation_unit_bytes, allocation_unit_bytes));
        take("torn-protection", replaced(&mut self.torn_protection, torn_protection));
        take("accept-loss", replaced(&mut self.accept_loss, accept_loss));
        take("redo-size", replaced(&mut self.redo_log_bytes, redo_log_bytes));
        take("database-writers", replaced(&mut self.database_writers, database_writers));
        taken
    }

    /// Returns the size of each redo log.
    pub fn redo_log(&self) -> Bytes {
        self.redo_log_bytes.unwrap_or(REDO_LOG)
    }
}

/// Replaces a value, and returns whether it was another one.
fn replaced<T: PartialEq>(value: &mut T, by: T) -> bool {
    let before = std::mem::replace(value, by);
    before != *value
}

/// The values that a command line without these options has.
impl Default for DatabaseOptions {
    fn default() -> Self {
        Self {
            block_bytes: Bytes::kib(8),
            cache_bytes: Bytes::mib(128),
            page_cache_bytes: None,
            io: None,
            redundancy: Redundancy::External,
            allocation_unit_bytes: Bytes::mib(1),
            torn_protection: TornProtection::FullPage,
            accept_loss: false,
            redo_log_bytes: None,
            database_writers: 1,
        }
    }
}

/// Parses the name of one of these values.
pub fn one_of<T: Copy + Send + Sync + 'static>(
    all: &'static [T],
    name: fn(T) -> &'static str,
) -> impl TypedValueParser<Value = T> {
    PossibleValuesParser::new(all.iter().map(|&value| name(value))).try_map(move |given| {
        let mut known = all.iter().copied();
        known.find(|&value| name(value) == given).ok_or("it is not one of the choices")
    })
}

#[cfg(test)]
mod tests {
    use clap::{Command, FromArgMatches as _};
    use serde_json::json;

    use super::*;

    fn parsed(words: &[&str]) -> DatabaseOptions {
        let command = DatabaseOptions::augment_args(Command::new("run").no_binary_name(true));
        DatabaseOptions::from_arg_matches(&command.try_get_matches_from(words).unwrap()).unwrap()
    }

    #[test]
    fn the_defaults_are_those_of_the_command_line() {
        assert_eq!(parsed(&[]), DatabaseOptions::default());
    }

    #[test]
    fn a_document_has_them_under_the_names_of_the_fields() {
        let words = ["--io=buffered", "--redo-size=8M", "--redundancy=high"];
        let expected = json!({
            "block_bytes": 8192, "cache_bytes": 128 << 20, "page_cache_bytes": null,
            "io": "buffered", "redundancy": "high", "allocation_unit_bytes": 1 << 20,
            "torn_protection": "full-page", "redo_log_bytes": 8 << 20, "database_writers": 1,
        });
        assert_eq!(json!(parsed(&words)), expected);
    }
}
