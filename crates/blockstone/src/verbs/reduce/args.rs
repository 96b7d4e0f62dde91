//! The options of `reduce`.

use std::path::PathBuf;

use blockstone_base::units::{Bytes, Nanos};
use blockstone_reduce::compress::Codec;
use clap::{Args, ValueEnum, ValueHint};

/// What a saved scan has decided already.
const COUNTING: [&str; 7] =
    ["block_size", "offset", "codec", "compress", "no_shifts", "no_headers", "memory"];

/// Arguments of `reduce`.
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  blockstone reduce /var/lib/postgresql/15/main    a data directory, as a generic array stores it
  blockstone reduce --model vdo /data/*.dbf        4K blocks, compression counted below a half
  blockstone reduce --html reduction.html /dev/sdb a block device, only read, with a page of charts
  blockstone reduce --save monday /data            keep the fingerprints; --resume monday goes on
  blockstone reduce --merge hostA hostB            what one array would make of both hosts' files
  blockstone reduce --json /data | jq '.results[] | {block_size, offset, dedup_ratio}'
  blockstone reduce --generate oracle-like --files 16 --size 128M demo

A model is a name or a TOML file:
  about = \"an array of mine\"
  block_size = \"8K\"      what is deduplicated and compressed
  codec = \"lz4\"          lz4, zstd:1 … zstd:22 or none
  granule = \"1K\"         compressed blocks are stored in steps of this
  smallest = \"1K\"        and take no less                       [the granule]
  counted_below = 0.75   what shrinks to no less stays whole    [1.0]
  deduplicates = true    whether a content is stored once       [true]
  zeros = \"free\"         or \"stored\", as any other content      [stored]")]
pub struct ReduceArgs {
    /// Files, directories or block devices; they are only read. With --merge: saved scans. With
    /// --generate: the directory to make
    #[arg(value_hint = ValueHint::AnyPath, required_unless_present = "resume",
          conflicts_with = "resume")]
    pub paths: Vec<PathBuf>,
    /// Sizes of blocks to count; the model's is always among them
    #[arg(
        long,
        value_name = "SIZE",
        value_delimiter = ',',
        default_value = "4K,8K,16K,32K",
        help_heading = "What is counted"
    )]
    pub block_size: Vec<Bytes>,
    /// Where the first block of a file begins, in bytes
    #[arg(
        long,
        value_name = "BYTES",
        value_delimiter = ',',
        default_value = "0,512,4096",
        help_heading = "What is counted"
    )]
    pub offset: Vec<u64>,
    /// The array that would store them: generic, vdo, xtremio, or a TOML file
    #[arg(
        long,
        value_name = "NAME|FILE",
        default_value = "generic",
        help_heading = "What is counted"
    )]
    pub model: String,
    /// Compressors to compare, at most 4; the model's is always among them
    #[arg(
        long,
        value_name = "NAME",
        value_delimiter = ',',
        default_value = "lz4,zstd:1",
        help_heading = "What is counted"
    )]
    pub codec: Vec<Codec>,
    /// Which contents are compressed
    #[arg(long, value_enum, default_value_t = CompressWhat::Sample,
          help_heading = "What is counted")]
    pub compress: CompressWhat,
    /// Do not look for copies that lie between blocks
    #[arg(long, help_heading = "What is counted")]
    pub no_shifts: bool,
    /// Do not look for headers of database pages
    #[arg(long, help_heading = "What is counted")]
    pub no_headers: bool,
    /// Memory to use; what does not fit is estimated from a share of all contents
    #[arg(long, value_name = "SIZE", default_value = "1G", help_heading = "How it is read")]
    pub memory: Bytes,
    /// Read at most this many bytes per second, as in 200M
    #[arg(long, value_name = "SIZE", help_heading = "How it is read")]
    pub rate: Option<Bytes>,
    /// Threads that read, hash and compress [default: one a processor, at least 8]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1024),
          help_heading = "How it is read")]
    pub threads: Option<u16>,
    /// Read through the page cache instead of past it
    #[arg(long, help_heading = "How it is read")]
    pub buffered: bool,
    /// Save the scan in this directory, while it runs and at its end
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath, conflicts_with = "resume",
          help_heading = "Saved scans")]
    pub save: Option<PathBuf>,
    /// How often to save, at most
    #[arg(long, value_name = "TIME", default_value = "30s", help_heading = "Saved scans")]
    pub save_every: Nanos,
    /// Go on with a saved scan that did not come to its end; what is counted is what it was
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath, help_heading = "Saved scans",
          conflicts_with_all = COUNTING)]
    pub resume: Option<PathBuf>,
    /// Count saved scans together, as if one array stored all their files
    #[arg(long, conflicts_with_all = ["save", "resume", "rate", "threads", "buffered"],
          conflicts_with_all = COUNTING, help_heading = "Saved scans")]
    pub merge: bool,
    /// Make a data set for tests and demonstrations in a directory that does not exist yet
    #[arg(long, value_name = "KIND", conflicts_with_all = ["save", "resume", "merge", "html"],
          value_parser = clap::builder::PossibleValuesParser::new(kinds()),
          help_heading = "Data sets")]
    pub generate: Option<String>,
    /// Files of the data set
    #[arg(long, value_name = "N", default_value_t = 4, requires = "generate",
          value_parser = clap::value_parser!(u32).range(1..=65536), help_heading = "Data sets")]
    pub files: u32,
    /// Size of each of them
    #[arg(
        long,
        value_name = "SIZE",
        default_value = "64M",
        requires = "generate",
        help_heading = "Data sets"
    )]
    pub size: Bytes,
    /// Seed of their content
    #[arg(long, default_value_t = 1, requires = "generate", help_heading = "Data sets")]
    pub seed: u64,
}

/// Which contents are compressed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum CompressWhat {
    /// All while they are few, then a share of them.
    Sample,
    /// All.
    Every,
    /// None.
    Not,
}

fn kinds() -> Vec<&'static str> {
    blockstone_reduce::generate::registry::ALL.iter().map(|kind| kind.name).collect()
}
