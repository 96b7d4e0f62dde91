//! Findings of `check durability`: whether a flush makes data durable, from inside by how long
//! flushes take, and by a power cut that a witness observed from outside. Data only: it is measured
//! elsewhere.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use blockstone_base::flushes::FlushSlope;
use blockstone_base::identity::DeviceKind;
use blockstone_base::named;
use blockstone_base::rule::Judged;

named! {
    /// Conclusion about flushes or, after a cut, about acknowledged writes.
    #[derive(Serialize, Deserialize, JsonSchema)]
    #[serde(rename_all = "kebab-case")]
    Class {
        /// A flush takes longer the more was written before it: it writes out a cache.
        Volatile = "volatile",
        /// A flush takes the same time whatever was written before it.
        Flat = "flat",
        /// A device declares a volatile cache, and flushes do not reach it.
        Unflushed = "unflushed",
        /// The files are kept in main memory and do not survive a power cut.
        Memory = "memory",
        /// Everything acknowledged is there after a cut that lost what was not flushed.
        Durable = "durable",
        /// Acknowledged writes are missing after a cut.
        Lost = "lost",
        /// Nothing is missing, but of some acknowledged writes only a part is there.
        Torn = "torn",
        /// Nothing is missing, and the cut lost nothing that was not flushed either.
        Inconclusive = "inconclusive",
        /// Not measured, or the evidence does not decide.
        Unknown = "unknown",
    }
}

named! {
    /// Way in which a write is made durable.
    #[derive(PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
    #[serde(rename_all = "kebab-case")]
    Method {
        Fsync = "fsync",
        Fdatasync = "fdatasync",
        /// The file is open with `O_DSYNC`.
        Dsync = "dsync",
        /// The file is open with `O_SYNC`.
        Sync = "sync",
        /// pwritev2(2) with `RWF_DSYNC`.
        RwfDsync = "rwf-dsync",
        /// The file is open with `O_DIRECT` and `O_DSYNC`, like that of a redo log: the kernel may
        /// force each write through the cache (FUA) instead of flushing it.
        DirectDsync = "direct-dsync",
        /// `sync_file_range(2)`, which promises nothing: a control.
        SyncFileRange = "sync-file-range",
        /// `O_DIRECT` and no flush: the data is in the device's cache. A control.
        DirectNone = "direct-none",
        /// Through the page cache and no flush: a control.
        None = "none",
    }
}

impl Method {
    /// Returns whether it promises nothing: what a cut loses of it shows what the cut does.
    pub fn is_control(self) -> bool {
        matches!(self, Self::SyncFileRange | Self::DirectNone | Self::None)
    }

    pub fn is_direct(self) -> bool {
        matches!(self, Self::DirectDsync | Self::DirectNone)
    }
}

named! {
    /// Sequence of writes, one block after the other.
    #[derive(PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
    #[serde(rename_all = "kebab-case")]
    Pattern {
        /// Blocks that were written before, in a circle.
        Overwrite = "overwrite",
        /// After the end of a file.
        Append = "append",
        /// Each block in a new file, whose directory is flushed.
        Create = "create",
        /// Each block in a new file that replaces the previous one (rename), whose directory is
        /// flushed.
        Rename = "rename",
    }
}

/// One writer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Stream {
    pub method: Method,
    pub pattern: Pattern,
}

impl Stream {
    /// Returns the name of the case: `fsync/overwrite`.
    pub fn case(self) -> String {
        format!("{}/{}", self.method.name(), self.pattern.name())
    }
}

/// Description of a run that writers send to their witness before it begins.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Description {
    pub host: String,
    pub path: String,
    /// Size of the device in bytes; none for a directory.
    pub device_bytes: Option<u64>,
    pub streams: Vec<Stream>,
}

/// Knowledge of a witness about a run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Testimony {
    pub run: u64,
    pub description: Description,
    /// One entry for each stream.
    pub points: Vec<Points>,
    /// Newest run of the same path.
    pub newest: u64,
    /// Earlier verified cuts of this path.
    pub cuts: Cuts,
}

/// Acknowledged writes of a stream.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Points {
    /// Sequence of the last one; they are numbered from 1.
    pub last: u64,
    /// The newest ones, as sequence and hash of the block.
    pub newest: Vec<(u64, u64)>,
}

/// Cuts that were verified against one witness.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Cuts {
    /// Cuts that lost what was not flushed.
    pub conclusive: u64,
    /// Conclusive cuts that lost something acknowledged.
    pub with_loss: u64,
    /// Cuts that lost nothing at all, and so prove nothing.
    pub inconclusive: u64,
}

impl Cuts {
    /// Returns the greatest share of cuts that may lose something, at 95 %, if none did: 1 −
    /// 0.05^(1/n), which is about 3/n.
    pub fn share_at_most(&self) -> Option<f64> {
        let n = self.conclusive as f64;
        (self.conclusive > 0 && self.with_loss == 0).then(|| 1.0 - 0.05_f64.powf(1.0 / n))
    }
}

/// One device of the chain, and how it handles flushes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Layer {
    pub name: String,
    pub kind: DeviceKind,
    pub model: Option<String>,
    /// `write back` (the kernel flushes it) or `write through` (it does not), according to the
    /// block layer; an administrator may change it.
    pub write_cache: Option<String>,
    /// Whether it accepts writes that bypass its cache (FUA).
    pub fua: Option<bool>,
    /// Cache as declared by the drive itself (SCSI and SATA: in the caching mode page; `NVMe`: in
    /// its Identify Controller data).
    pub drive_cache: Option<String>,
    /// Devices beneath it.
    pub beneath: Vec<String>,
    /// Flushes that it completed while writes were flushed; null if it does not count them.
    pub flush_ios: Option<u64>,
}

/// Findings that need no cut.
#[derive(Clone, Debug, PartialEq)]
pub struct Flushing {
    pub class: Class,
    pub evidence: String,
    pub slope: Option<FlushSlope>,
    /// Time to write a mebibyte, before the flush, in nanoseconds.
    pub write_ns_per_mib: Option<f64>,
    /// Flushes requested after writes.
    pub asked_flushes: u64,
}

/// One writer, or the remains of its writes after a cut.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StreamFindings {
    pub stream: Stream,
    pub class: Class,
    pub evidence: String,
    /// Number of points that the witness knows.
    pub acknowledged: u64,
    /// Points, of those acknowledged, whose block was not replaced later.
    pub checked: u64,
    /// Checked points that are missing or older.
    pub lost: u64,
    /// Checked points of which a part is missing.
    pub torn: u64,
    /// Blocks that belong elsewhere, or that were never written like this.
    pub misplaced: u64,
    /// Lost points before one that is there: no order was promised.
    pub reordered: u64,
    /// Blocks torn by the cut while a later write was replacing them, which is not a fault.
    pub torn_in_flight: u64,
}

impl StreamFindings {
    /// Returns whether something is missing that was promised.
    pub fn is_broken(&self) -> bool {
        !self.stream.method.is_control() && self.lost + self.torn + self.misplaced > 0
    }
}

/// A run that the witness knows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Witnessed {
    pub description: Description,
    pub acknowledged: u64,
    pub cuts: Cuts,
}

named! {
    /// Stage of the check that was performed.
    Stage {
        /// The chain was inspected, and flushes were timed.
        Examined = "examined",
        /// Blocks were written, and the witness knows of them.
        Written = "written",
        /// The remains after a cut were compared with what the witness knows.
        Verified = "verified",
        /// Runs of others were witnessed.
        Witnessed = "witnessed",
    }
}

/// Findings of `check durability`.
#[derive(Clone, Debug, PartialEq)]
pub struct DurabilityFindings {
    pub stage: Stage,
    /// The path, or the address of the witness.
    pub subject: String,
    /// Type of the file system; empty for a device.
    pub file_system: String,
    pub mount_options: String,
    /// Mount option that keeps the file system from flushing.
    pub barrier_off: Option<String>,
    pub hypervisor: Option<String>,
    pub layers: Vec<Layer>,
    /// Flush times of a path that was examined.
    pub flushing: Option<Flushing>,
    pub streams: Vec<StreamFindings>,
    /// Cuts of this path so far, including this one.
    pub cuts: Cuts,
    pub witnessed: Vec<Witnessed>,
    /// Cuts requested of the witness that were not made or not verified.
    pub missed_cuts: u64,
    /// Remarks that the reader must know.
    pub notes: Vec<String>,
    /// Signal that ended the check early.
    pub signal: Option<String>,
}

impl DurabilityFindings {
    /// Returns the streams that are controls, or, if `controls` is false, the others.
    pub fn of_controls(&self, controls: bool) -> impl Iterator<Item = &StreamFindings> {
        self.streams.iter().filter(move |it| it.stream.method.is_control() == controls)
    }

    /// Returns the sum of the witnessed cuts of all paths.
    pub fn witnessed_cuts(&self) -> Cuts {
        self.witnessed.iter().fold(Cuts::default(), |sum, Witnessed { cuts, .. }| Cuts {
            conclusive: sum.conclusive + cuts.conclusive,
            with_loss: sum.with_loss + cuts.with_loss,
            inconclusive: sum.inconclusive + cuts.inconclusive,
        })
    }

    pub fn acknowledged(&self) -> u64 {
        self.streams.iter().map(|stream| stream.acknowledged).sum()
    }
}

impl Judged for DurabilityFindings {
    const VERB: &'static str = "check durability";
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_rule_of_three() {
        let cuts = |conclusive, with_loss| Cuts { conclusive, with_loss, inconclusive: 0 };
        assert_eq!(cuts(0, 0).share_at_most(), None);
        assert_eq!(cuts(9, 1).share_at_most(), None);
        let share = cuts(100, 0).share_at_most().unwrap();
        assert!((share - 0.03).abs() < 0.001, "{share}");
        assert!((cuts(1, 0).share_at_most().unwrap() - 0.95).abs() < 1e-9);
    }
}
