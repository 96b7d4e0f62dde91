//! The options of `copy`.

use std::path::{Path, PathBuf};

use blockstone_base::units::{Bytes, ParseError};
use blockstone_copy::against::Other;
use blockstone_copy::file::Method;
use clap::{Args, ValueEnum, ValueHint};

use super::words;
use crate::password::PasswordFile;
use crate::purpose::Purpose;

/// Options that require a copy to a target.
const COPYING: [&str; 7] = ["force", "resume", "manifest", "against", "method", "request", "jobs"];

/// Arguments of `copy`.
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  blockstone copy /u01/users01.dbf /backup/            a file into a directory
  blockstone copy --verify /u01/oradata /backup/new    a directory, read again
  blockstone copy --resume /u01/big.dbf /backup/       after Ctrl-C or a crash
  blockstone copy --rate 100M /u01/big.dbf /backup/    beside a database
  blockstone copy --manifest m.jsonl /u01/d /backup/   and a year later:
  blockstone copy --check m.jsonl /backup/             are all bytes the same?
  blockstone copy --verify disk.img /dev/sdb --destroy /dev/sdb
  blockstone copy redo.log - | gzip | blockstone copy - redo.log.gz
  blockstone copy --against cp /u01/big.dbf /backup/   compare with cp
  blockstone copy --against 'rsync -a' /u01/d /backup/ compare with another program")]
pub struct CopyArgs {
    /// Files, directories or a block device, and last the target
    ///
    /// Also links. The target is a name that does not exist yet, or a directory. `-` is standard
    /// input or output. With --check, the target of the copy.
    #[arg(value_name = "PATH", required = true, value_hint = ValueHint::AnyPath)]
    #[arg(add = Purpose::Copy)]
    pub paths: Vec<PathBuf>,
    /// How to move bytes, in place of the cheapest way that works for the files
    #[arg(long, value_name = "METHOD", help_heading = "Requests")]
    pub method: Option<How>,
    /// Bytes per request
    #[arg(long, default_value = "8M", value_name = "SIZE", help_heading = "Requests")]
    pub request: Bytes,
    /// Requests in flight for each file
    #[arg(long, default_value_t = 8, value_name = "N", help_heading = "Requests",
          value_parser = clap::value_parser!(u32).range(1..=256))]
    pub in_flight: u32,
    /// Files at once [default: 2]
    #[arg(long, value_name = "N", help_heading = "Requests",
          value_parser = clap::value_parser!(u16).range(1..=64))]
    pub jobs: Option<u16>,
    /// Move no more bytes a second than this, all files together
    ///
    /// With --check, read no more.
    #[arg(long, value_name = "BYTES", help_heading = "Requests")]
    pub rate: Option<Bytes>,
    /// Read the target again from its medium, and compare it
    #[arg(long, conflicts_with = "check")]
    pub verify: bool,
    /// Continue an interrupted copy, with the same command
    #[arg(long)]
    pub resume: bool,
    /// Replace files that exist, and copy into directories that exist
    #[arg(long)]
    pub force: bool,
    /// Also write the hashes of all files to this file
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    #[arg(add = Purpose::Output)]
    pub manifest: Option<PathBuf>,
    /// Copy nothing: compare the files with this manifest
    ///
    /// The files are those below PATH. The manifest is plain or compressed by gzip, bzip2, xz or
    /// zstd; `-` is standard input.
    #[arg(long, value_name = "MANIFEST", value_hint = ValueHint::FilePath,
          conflicts_with_all = COPYING)]
    #[arg(add = Purpose::Input)]
    pub check: Option<PathBuf>,
    /// Name a block device again to let it be erased
    #[arg(long, value_name = "DEVICE", value_hint = ValueHint::FilePath,
          conflicts_with_all = ["against", "force", "resume", "manifest", "check"])]
    #[arg(add = Purpose::Device)]
    pub destroy: Option<PathBuf>,
    /// Copy again in another way, in turn with ours, and show what each takes
    ///
    /// `cp`; a method of ours (`mmap`); requests of ours of another size, each waited for (`4K`);
    /// or any command: 'rsync -a', 'dd if={source} of={target} bs=8M'. It is run without a shell,
    /// with both paths last if it does not name them.
    #[arg(long, value_name = "WHAT", value_parser = peer)]
    #[arg(conflicts_with_all = ["resume", "force", "manifest"])]
    pub against: Option<Peer>,
    /// With --against: also read the counters of this database before and after each round:
    /// `postgres://user@host/db`, `mysql://user@host` or `run:RUN`
    #[arg(long, value_name = "ADDRESS", requires = "against")]
    #[arg(conflicts_with_all = ["resume", "force", "manifest"])]
    pub db: Option<String>,
    #[command(flatten)]
    pub password: PasswordFile,
}

/// The names of the methods.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum How {
    /// Share the blocks (XFS, btrfs)
    Reflink,
    /// Let the server that has both files copy (NFS, SMB)
    Server,
    /// Direct requests on both sides
    Direct,
    /// Through the page cache, which keeps nothing (Linux 6.14)
    Dontcache,
    /// Through the page cache
    Buffered,
    /// Write from a mapping of the source, as cp of Solaris does
    Mmap,
    /// Let the kernel copy from file to file, as cp of GNU does
    CopyFileRange,
}

impl From<How> for Method {
    fn from(how: How) -> Self {
        match how {
            How::Reflink => Self::Reflink,
            How::Server => Self::Server,
            How::Direct => Self::Direct,
            How::Dontcache => Self::Dontcache,
            How::Buffered => Self::Buffered,
            How::Mmap => Self::Mmap,
            How::CopyFileRange => Self::CopyFileRange,
        }
    }
}

/// The other way of `--against`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Peer {
    Program(Other),
    /// Ours, with requests of this size, one after the other.
    Request(Bytes),
    Method(How),
}

impl Peer {
    /// Returns what the rows of a comparison are called.
    pub fn name(&self) -> String {
        match self {
            Self::Program(Other::Cp) => "cp".to_owned(),
            Self::Program(Other::Command(words)) => {
                let program = words.first().map(Path::new).and_then(Path::file_name);
                program.unwrap_or_default().to_string_lossy().into_owned()
            }
            Self::Request(size) => size.to_string(),
            Self::Method(how) => words::name((*how).into()).to_owned(),
        }
    }

    /// Returns what is done, if the name does not say it all.
    pub fn about(&self) -> Option<String> {
        match self {
            Self::Program(Other::Cp) => None,
            Self::Program(Other::Command(words)) => Some(words.join(" ")),
            Self::Request(size) => Some(format!("ours, with requests of {size}, one by one")),
            Self::Method(_) => Some("ours, with this method".to_owned()),
        }
    }
}

fn peer(text: &str) -> Result<Peer, String> {
    if text == "cp" {
        return Ok(Peer::Program(Other::Cp));
    }
    if let Ok(how) = How::from_str(text, false) {
        return Ok(Peer::Method(how));
    }
    if text.starts_with(|c: char| c.is_ascii_digit()) {
        return text.parse().map(Peer::Request).map_err(|error: ParseError| error.to_string());
    }
    match shlex::split(text) {
        Some(words) if !words.is_empty() => Ok(Peer::Program(Other::Command(words))),
        Some(_) => Err("no program is named".to_owned()),
        None => Err("a quote is not closed".to_owned()),
    }
}
