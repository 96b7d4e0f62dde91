//! Accounts for the bytes of one run.

/// A ratio within this share of a whole number counts as a number of copies.
const COPIES_NEAR: f64 = 0.01;
/// Copies are inferred only if writes are more than this share of the wire.
const WRITES_MIN: f64 = 0.05;

/// Bytes of one run, on their way from the plan to the client. A quantity that the source does not
/// count is `None`, never zero.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Ledger {
    /// Name of the run.
    pub name: String,
    /// Seconds between the first and the last snapshot of the run.
    pub seconds: Option<f64>,
    /// Number of hosts that received rows.
    pub hosts: Option<u32>,
    /// Number of storage servers that read.
    pub cells: Option<u32>,
    /// Bytes that the plan requested from the storage, including those that an index skipped.
    pub read_bytes: u64,
    /// True if the source counts only all bytes that disks moved, which then replace those read:
    /// they include what was written.
    pub is_read_with_writes: bool,
    /// Bytes not read because of an index or the format, by the means that skipped them.
    pub skipped: Vec<(String, u64)>,
    /// The part of [`Ledger::read_bytes`] that was read from flash or skipped by an index.
    pub optimized_bytes: Option<u64>,
    /// The part of [`Ledger::read_bytes`] that the storage was allowed to filter.
    pub eligible_bytes: Option<u64>,
    /// Bytes of rows and columns that the storage returned after filtering.
    pub returned_bytes: Option<u64>,
    /// True if the source counts only all bytes on the wire, which then replace the bytes returned.
    pub is_returned_all_wire: bool,
    /// Eligible bytes sent unfiltered because the storage was short of processor time.
    pub balanced_bytes: Option<u64>,
    /// Eligible bytes sent unfiltered for other reasons.
    pub passthru_bytes: Option<u64>,
    /// Bytes between storage and hosts, in both directions.
    pub wire_bytes: Option<u64>,
    /// Bytes that the hosts wrote, without copies.
    pub written_bytes: Option<u64>,
    /// Bytes sent on to clients.
    pub client_bytes: Option<u64>,
    /// Processor time of the hosts, in seconds.
    pub host_cpu_s: Option<f64>,
    /// Number of processors available to the hosts.
    pub host_processors: Option<u32>,
    /// Processor time of the storage, in seconds.
    pub cell_cpu_s: Option<f64>,
    /// Number of processors available to the storage.
    pub cell_processors: Option<u32>,
    /// Number of processors shared by hosts and storage.
    pub shared_processors: Option<u32>,
    /// Reasons why bytes were not filtered.
    pub refusals: Vec<Refusal>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Refusal {
    pub reason: String,
    pub bytes: Option<u64>,
    /// Number of refusals, for counters of events rather than bytes.
    pub count: Option<u64>,
}

/// Number of copies of each write on the wire.
#[derive(Clone, Debug, PartialEq)]
pub enum Copies {
    /// The result is within 1 % of a whole number.
    Whole { copies: u32, measured: f64 },
    /// The result of the arithmetic is not a number of copies.
    Odd { measured: f64 },
    /// The counters do not allow the calculation, for this reason.
    Unknown(&'static str),
}

impl Refusal {
    pub fn of_bytes(reason: &str, bytes: u64) -> Self {
        Self { reason: reason.to_owned(), bytes: Some(bytes), count: None }
    }
}

impl Ledger {
    pub fn skipped_bytes(&self) -> u64 {
        self.skipped.iter().map(|(_, bytes)| bytes).sum()
    }

    /// Bytes that the storage was not allowed to filter and sent as blocks.
    pub fn not_eligible_bytes(&self) -> Option<u64> {
        self.read_bytes.checked_sub(self.eligible_bytes?)
    }

    /// Bytes that the storage did filter: eligible, neither skipped nor sent unfiltered.
    pub fn examined_bytes(&self) -> Option<u64> {
        let unfiltered = self.unfiltered_bytes().unwrap_or(0);
        Some(self.eligible_bytes?.saturating_sub(self.skipped_bytes()).saturating_sub(unfiltered))
    }

    /// Eligible bytes that were sent unfiltered.
    pub fn unfiltered_bytes(&self) -> Option<u64> {
        match (self.balanced_bytes, self.passthru_bytes) {
            (None, None) => None,
            (balanced, passthru) => Some(balanced.unwrap_or(0) + passthru.unwrap_or(0)),
        }
    }

    pub fn unfiltered_of_eligible(&self) -> Option<f64> {
        share(self.unfiltered_bytes()?, self.eligible_bytes?)
    }

    /// Returns the ratio that is usually reported.
    pub fn returned_of_eligible(&self) -> Option<f64> {
        share(self.returned_bytes?, self.eligible_bytes?)
    }

    pub fn eligible_of_all(&self) -> Option<f64> {
        share(self.eligible_bytes?, self.read_bytes)
    }

    /// Share of all bytes read that filtering kept off the wire; negative if rows were larger on
    /// the wire than on disk.
    pub fn saved_of_all(&self) -> Option<f64> {
        let saved = self.eligible_bytes? as f64 - self.returned_bytes? as f64;
        (self.read_bytes > 0).then(|| saved / self.read_bytes as f64)
    }

    /// Bytes that reads put on the wire ÷ bytes read: (not eligible + returned) ÷ read.
    pub fn returned_of_read(&self) -> Option<f64> {
        let returned = if self.is_returned_all_wire {
            self.wire_bytes?
        } else {
            self.returned_bytes? + self.not_eligible_bytes().unwrap_or(0)
        };
        share(returned, self.read_bytes)
    }

    /// Bytes on the wire other than reads.
    pub fn beside_reads_bytes(&self) -> Option<u64> {
        if self.is_returned_all_wire {
            return None;
        }
        let reads = self.not_eligible_bytes()?.checked_add(self.returned_bytes?)?;
        self.wire_bytes?.checked_sub(reads)
    }

    /// Infers the copies of each write: (wire − (read − eligible + returned)) ÷ written.
    pub fn copies(&self) -> Copies {
        let Some(wire) = self.wire_bytes else {
            return Copies::Unknown("bytes of the wire are not counted");
        };
        let Some(written) = self.written_bytes else {
            return Copies::Unknown("writes are not counted");
        };
        if self.is_returned_all_wire {
            return Copies::Unknown("bytes that were returned are not counted");
        }
        let Some(beside) = self.beside_reads_bytes() else {
            return Copies::Unknown("reads alone are more than the wire carried");
        };
        if written as f64 <= WRITES_MIN * wire as f64 {
            return Copies::Unknown("writes are 5 % of the wire at most");
        }
        let measured = beside as f64 / written as f64;
        let copies = measured.round();
        if copies >= 1.0 && (measured - copies).abs() <= COPIES_NEAR * copies {
            Copies::Whole { copies: copies as u32, measured }
        } else {
            Copies::Odd { measured }
        }
    }

    /// Bytes of writes with their copies, and the bytes of the wire that are neither reads nor
    /// writes.
    pub fn writes_and_rest(&self) -> Option<(u64, u64)> {
        let beside = self.beside_reads_bytes()?;
        let written = match self.copies() {
            Copies::Whole { .. } => beside,
            Copies::Odd { .. } | Copies::Unknown(_) => self.written_bytes?.min(beside),
        };
        Some((written, beside - written))
    }

    pub fn read_bytes_per_s(&self) -> Option<f64> {
        self.per_s(self.read_bytes)
    }

    pub fn wire_bytes_per_s(&self) -> Option<f64> {
        self.per_s(self.wire_bytes?)
    }

    fn per_s(&self, bytes: u64) -> Option<f64> {
        self.seconds.filter(|it| *it > 0.0).map(|seconds| bytes as f64 / seconds)
    }
}

impl Copies {
    pub fn measured(&self) -> Option<f64> {
        match self {
            Self::Whole { measured, .. } | Self::Odd { measured } => Some(*measured),
            Self::Unknown(_) => None,
        }
    }
}

/// `None` if the whole is zero.
fn share(part: u64, whole: u64) -> Option<f64> {
    (whole > 0).then(|| part as f64 / whole as f64)
}
