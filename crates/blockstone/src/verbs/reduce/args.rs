//! The options of `reduce`.

use std::path::PathBuf;

use blockstone_base::units::{Bytes, Nanos};
use blockstone_reduce::compress::Codec;
use clap::{Args, ValueEnum, ValueHint};

use crate::purpose::Purpose;

/// Options that a saved scan has already decided.
const COUNTING: [&str; 8] = [
    "block_size",
    "offset",
    "codec",
    "compress",
    "no_shifts",
    "no_headers",
    "memory",
    "free_space",
];

/// Arguments of `reduce`.
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  blockstone reduce /var/lib/postgresql/15/main      a data directory
  blockstone reduce --model vdo /data/*.dbf          as VDO stores them
  blockstone reduce --html reduction.html /dev/sdb   a block device, only read
  blockstone reduce --save monday /data              --resume continues it
  blockstone reduce --merge hostA hostB              two hosts on one array
  blockstone reduce --json /data | jq '.tables.grids[] | {grid, dedup_ratio}'
  blockstone reduce --generate oracle-like --files 16 --size 128M demo

A model is a name or a TOML file:
  about = \"my array\"
  block_size = \"8K\"      what is deduplicated and compressed
  codec = \"lz4\"          lz4, zstd:1 … zstd:22 or none
  granule = \"1K\"         compressed sizes are rounded up to this
  smallest = \"1K\"        minimum size of a compressed block     [granule]
  counted_below = 0.75   larger results are stored uncompressed [1.0]
  deduplicates = true    equal blocks are stored once           [true]
  zeros = \"free\"         or \"stored\", as any other block        [stored]")]
pub struct ReduceArgs {
    /// Files, directories or block devices, which are only read
    ///
    /// With --merge, saved scans; with --generate, the directory to create.
    #[arg(value_hint = ValueHint::AnyPath, conflicts_with = "resume",
          required_unless_present_any = ["resume", "dry_run"])]
    #[arg(add = Purpose::Input)]
    pub paths: Vec<PathBuf>,
    /// Block sizes to count; the model's is always included
    #[arg(
        long,
        value_name = "SIZE",
        value_delimiter = ',',
        default_value = "4K,8K,16K,32K",
        help_heading = "Counting"
    )]
    pub block_size: Vec<Bytes>,
    /// Offsets at which the first block of a file starts
    #[arg(
        long,
        value_name = "SIZE",
        value_delimiter = ',',
        default_value = "0,512B,4K",
        help_heading = "Counting"
    )]
    pub offset: Vec<Bytes>,
    /// Model of the array: a name or a TOML file
    ///
    /// The names are generic, vdo and xtremio.
    #[arg(long, value_name = "NAME|FILE", default_value = "generic", help_heading = "Counting")]
    #[arg(add = Purpose::Input)]
    pub model: String,
    /// Compressors to compare, at most 4; the model's is always included
    #[arg(
        long,
        value_name = "NAME",
        value_delimiter = ',',
        default_value = "lz4,zstd:1",
        help_heading = "Counting"
    )]
    pub codec: Vec<Codec>,
    /// Which distinct blocks are compressed
    #[arg(long, value_enum, default_value_t = CompressWhat::Sample,
          help_heading = "Counting")]
    pub compress: CompressWhat,
    /// Do not search for copies that are not aligned to blocks
    #[arg(long, help_heading = "Counting")]
    pub no_shifts: bool,
    /// Do not search for headers of database pages
    #[arg(long, help_heading = "Counting")]
    pub no_headers: bool,
    /// Also read free blocks of the file systems: do they still hold data, and are discards passed
    /// on?
    ///
    /// Reads at most 8,192 blocks of each, as root, from the device. Nothing is discarded.
    #[arg(long, help_heading = "Counting")]
    pub free_space: bool,
    /// Memory to use; if it is not enough, ratios are estimated from a sample of the distinct
    /// blocks
    #[arg(long, value_name = "SIZE", default_value = "1G", help_heading = "Reading")]
    pub memory: Bytes,
    /// Read at most this many bytes per second, for example 200M
    #[arg(long, value_name = "SIZE", help_heading = "Reading")]
    pub rate: Option<Bytes>,
    /// Threads that read, hash and compress [default: one per processor, at least 8]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1024),
          help_heading = "Reading")]
    pub threads: Option<u16>,
    /// Read through the page cache instead of with direct I/O
    #[arg(long, help_heading = "Reading")]
    pub buffered: bool,
    /// Save the scan to this directory
    ///
    /// Periodically and at the end.
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath, conflicts_with = "resume",
          help_heading = "Saved scans")]
    #[arg(add = Purpose::Directory)]
    pub save: Option<PathBuf>,
    /// Minimum time between two saves
    #[arg(long, value_name = "TIME", default_value = "30s", help_heading = "Saved scans")]
    pub save_every: Nanos,
    /// Continue an interrupted scan from its last save
    ///
    /// The options for counting remain those it was started with.
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath, help_heading = "Saved scans",
          conflicts_with_all = COUNTING)]
    #[arg(add = Purpose::Directory)]
    pub resume: Option<PathBuf>,
    /// Combine saved scans, as if one array stored all files
    #[arg(long, conflicts_with_all = ["save", "resume", "rate", "threads", "buffered"],
          conflicts_with_all = COUNTING, help_heading = "Saved scans")]
    pub merge: bool,
    /// Create a data set for tests and demonstrations in a new directory
    #[arg(long, value_name = "KIND", conflicts_with_all = ["save", "resume", "merge", "html"],
          value_parser = clap::builder::PossibleValuesParser::new(kinds()),
          help_heading = "Data sets")]
    pub generate: Option<String>,
    /// Number of files
    #[arg(long, value_name = "N", default_value_t = 4, requires = "generate",
          value_parser = clap::value_parser!(u32).range(1..=65536), help_heading = "Data sets")]
    #[arg(conflicts_with_all = ["save", "resume", "merge", "html"])]
    pub files: u32,
    /// Size of each file
    #[arg(
        long,
        value_name = "SIZE",
        default_value = "64M",
        requires = "generate",
        help_heading = "Data sets"
    )]
    #[arg(conflicts_with_all = ["save", "resume", "merge", "html"])]
    pub size: Bytes,
    /// Blocks of 8K at the beginning of each file that no other file has, for oracle-like and
    /// oracle-loaded [default: in proportion to the size, 16,750 in 32 GiB]
    #[arg(long, value_name = "BLOCKS", requires = "generate", help_heading = "Data sets")]
    #[arg(conflicts_with_all = ["save", "resume", "merge", "html"])]
    pub head: Option<u64>,
    /// Only print the ratios to expect, for example of 121 files of 32G
    #[arg(long, requires = "generate", help_heading = "Data sets")]
    #[arg(conflicts_with_all = ["save", "resume", "merge", "html"])]
    pub dry_run: bool,
    /// Seed of the content
    #[arg(long, default_value_t = 1, requires = "generate", help_heading = "Data sets")]
    #[arg(conflicts_with_all = ["save", "resume", "merge", "html"])]
    pub seed: u64,
}

/// Which contents are compressed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum CompressWhat {
    /// All if there are few, otherwise a sample.
    Sample,
    /// All.
    Every,
    /// None.
    Not,
}

fn kinds() -> Vec<&'static str> {
    blockstone_reduce::generate::registry::ALL.iter().map(|kind| kind.name).collect()
}
