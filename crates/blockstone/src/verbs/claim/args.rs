//! The options of `claim`.

use blockstone_base::units::{Bytes, Nanos, positive};
use clap::Args;

/// Options of `claim`.
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  blockstone claim '2 GB/s over 2x2Gb FC from 512 MB files on 16 GB RAM'
  blockstone claim '20 GB in 180 s over GbE'            what a copy moved
  blockstone claim '200k IOPS of 8K over PCIe 4.0 x4'   requests a second
  blockstone claim --json '1 GB/s over 1GbE' | jq -r .outcome")]
pub struct ClaimArgs {
    /// The claim in words: a rate, or bytes and time, or requests a second; the link; how much
    /// data; how much memory; `direct`
    #[arg(required_unless_present_any = ["rate", "iops", "moved", "link"])]
    pub words: Vec<String>,
    /// The rate, with its unit: 2GB/s, 800Mb/s
    #[arg(long)]
    pub rate: Option<String>,
    /// Requests a second
    #[arg(long, value_parser = positive)]
    pub iops: Option<f64>,
    /// The size of a request
    #[arg(long, value_name = "SIZE", requires = "iops")]
    pub io_size: Option<Bytes>,
    /// Bytes that were moved
    #[arg(long, value_name = "SIZE")]
    pub moved: Option<Bytes>,
    /// The time in which that was done
    #[arg(long, value_name = "TIME")]
    pub time: Option<Nanos>,
    /// The link to the storage: 2x2Gb FC, 10GbE, QDR InfiniBand, SAS 12Gb/s, SATA 6Gb/s, 400MB/s;
    /// may be repeated
    #[arg(long)]
    pub link: Vec<String>,
    /// The size of all files or devices that were read or written
    #[arg(long, value_name = "SIZE")]
    pub data: Option<Bytes>,
    /// Main memory of the host
    #[arg(long, value_name = "SIZE")]
    pub memory: Option<Bytes>,
    /// The page cache was bypassed
    #[arg(long)]
    pub direct: bool,
}
