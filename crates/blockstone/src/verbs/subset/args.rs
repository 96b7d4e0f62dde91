//! The options of `subset`.

use std::path::PathBuf;

use blockstone_base::units::{Bytes, percentage};
use clap::{Args, Subcommand, ValueHint};

use super::mask::MaskArgs;
use super::oracle::OracleArgs;
use crate::password::PasswordFile;
use crate::purpose::Purpose;

/// Arguments of `subset`.
#[derive(Args, Debug)]
#[command(
    args_conflicts_with_subcommands = true,
    subcommand_negates_reqs = true,
    after_help = "\
Examples:
  blockstone subset --from postgres://db1/shop --dry-run   what 1 % becomes
  blockstone subset --from postgres://db1/shop sample      into a directory
  blockstone subset load sample --into postgres://me@localhost/test
  blockstone subset --from postgres://db1/shop --into postgres://localhost/test
  blockstone subset --from mysql://me@db1/shop --into mysql://me@localhost/test
  blockstone subset --from … --whole regions --where 'orders=total > 9' sample
  blockstone subset --from … --mask customer.id=hash --mask email=fake sample
  blockstone subset --from … --stratify --cap 100 sample   children too
  blockstone subset --from … --naive --percent 10          counts orphans"
)]
pub struct SubsetArgs {
    #[command(subcommand)]
    pub verb: Option<SubsetVerb>,
    /// The database to take rows from, which is only read
    ///
    /// `postgres://user@host/db` or `mysql://user@host/db`.
    #[arg(long, value_name = "ADDRESS", required = true)]
    pub from: Option<String>,
    /// The directory to write, new or empty
    #[arg(value_name = "DIR", value_hint = ValueHint::DirPath)]
    #[arg(add = Purpose::Directory)]
    pub dir: Option<PathBuf>,
    /// Load the subset into this database
    ///
    /// It has none of the tables of the subset.
    #[arg(long, value_name = "ADDRESS")]
    pub into: Option<String>,
    #[command(flatten)]
    pub password: PasswordFile,
    #[command(flatten)]
    pub choice: ChoiceArgs,
    #[command(flatten)]
    pub mask: MaskArgs,
    /// Connections that read the rows of the subset at once; one with MariaDB
    #[arg(long, value_name = "N", default_value_t = 4, help_heading = "Rows")]
    #[arg(value_parser = clap::value_parser!(u16).range(1..=64))]
    pub readers: u16,
    /// Only say which rows would be taken, and why
    #[arg(long, conflicts_with_all = ["into", "dir", "naive"], help_heading = "Rows")]
    pub dry_run: bool,
    /// Only sample each table by itself, as Data Pump's SAMPLE does, and count the orphans
    #[arg(long, conflicts_with_all = ["into", "dir", "whole", "condition", "cap", "stratify"],
          help_heading = "Rows")]
    #[arg(conflicts_with_all = ["masks", "readers", "null"])]
    pub naive: bool,
}

/// Which rows are taken.
#[derive(Args, Debug)]
#[command(next_help_heading = "Rows")]
pub struct ChoiceArgs {
    /// Share of the rows of each table
    ///
    /// The rows that these reference are added.
    #[arg(long, value_name = "PERCENT", default_value_t = 1.0, value_parser = percentage)]
    pub percent: f64,
    /// The same number takes the same rows
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub seed: u64,
    /// Take all rows of this table
    #[arg(long, value_name = "TABLE")]
    pub whole: Vec<String>,
    /// Take the rows of this table that match
    ///
    /// In place of a share.
    #[arg(long = "where", value_name = "TABLE=CONDITION", id = "condition")]
    pub condition: Vec<String>,
    /// Take at most this many rows with the same parent, unless others reference them
    #[arg(long, value_name = "CHILDREN", value_parser = clap::value_parser!(u32).range(1..))]
    pub cap: Option<u32>,
    /// Take the children of the rows that are taken, so that each has as many as in the source
    #[arg(long)]
    pub stratify: bool,
    /// Set this key to NULL in all rows, and do not take the rows that it references
    ///
    /// Its name, or TABLE.KEY; its columns must allow it.
    #[arg(long, value_name = "KEY")]
    pub null: Vec<String>,
    /// Memory that the keys of the sample may take
    #[arg(long, default_value = "1G", value_name = "SIZE")]
    pub memory: Bytes,
    /// A TOML file of keys that the database does not declare
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    #[arg(add = Purpose::Input)]
    pub keys: Option<PathBuf>,
}

#[derive(Debug, Subcommand)]
pub enum SubsetVerb {
    /// Load a subset that was written earlier
    Load(LoadArgs),
    /// Write files for Data Pump that export a subset
    ///
    /// They export rows with all that their foreign keys need.
    Oracle(OracleArgs),
}

#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  blockstone subset load sample --into postgres://me@localhost/test
  blockstone subset load sample --into mysql://me@localhost/test")]
pub struct LoadArgs {
    /// The directory
    #[arg(value_name = "DIR", value_hint = ValueHint::DirPath)]
    #[arg(add = Purpose::Input)]
    pub dir: PathBuf,
    /// The database to load it into, which has none of its tables
    #[arg(long, value_name = "ADDRESS", required = true)]
    pub into: String,
    #[command(flatten)]
    pub password: PasswordFile,
}
