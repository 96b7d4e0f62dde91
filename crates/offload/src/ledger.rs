//! What became of the bytes of one run.

/// Copies are named only within this share of a whole number.
const COPIES_NEAR: f64 = 0.01;
/// Writes must be more than this share of the wire for copies to be inferred of it.
const WRITES_MIN: f64 = 0.05;

/// Bytes of one run, as they pass from the plan to the client. What a source does not count is
/// `None`, never zero.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Ledger {
    /// Of the run.
    pub name: String,
    /// Between its first and last snapshot.
    pub seconds: Option<f64>,
    /// Hosts that took rows.
    pub hosts: Option<u32>,
    /// Storage servers that read.
    pub cells: Option<u32>,
    /// What the plan asked of the storage, with what an index skipped.
    pub read_bytes: u64,
    /// Not read because an index or the format said so, by how.
    pub skipped: Vec<(String, u64)>,
    /// Of [`Ledger::read_bytes`]: from flash, or skipped by an index.
    pub optimized_bytes: Option<u64>,
    /// Of [`Ledger::read_bytes`]: what the storage was allowed to filter.
    pub eligible_bytes: Option<u64>,
    /// Rows and columns that the storage returned after it filtered.
    pub returned_bytes: Option<u64>,
    /// The source counts only all bytes of the wire, which take the place of those returned.
    pub is_returned_all_wire: bool,
    /// Eligible, but sent unfiltered because the storage was short of processor time.
    pub balanced_bytes: Option<u64>,
    /// Eligible, but sent unfiltered for other reasons.
    pub passthru_bytes: Option<u64>,
    /// Between storage and hosts, both ways.
    pub wire_bytes: Option<u64>,
    /// What the hosts wrote, without copies.
    pub written_bytes: Option<u64>,
    /// Sent on to clients.
    pub client_bytes: Option<u64>,
    /// Processor time of the hosts.
    pub host_cpu_s: Option<f64>,
    /// Processors that the hosts could use at once.
    pub host_processors: Option<u32>,
    /// Processor time of the storage.
    pub cell_cpu_s: Option<f64>,
    /// Processors that the storage could use at once.
    pub cell_processors: Option<u32>,
    /// Processors that hosts and storage share.
    pub shared_processors: Option<u32>,
    /// Why bytes were not filtered.
    pub refusals: Vec<Refusal>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Refusal {
    pub reason: String,
    pub bytes: Option<u64>,
    /// Where events are counted and not bytes.
    pub count: Option<u64>,
}

/// Copies of each write on the wire.
#[derive(Clone, Debug, PartialEq)]
pub enum Copies {
    /// Within 1 % of a whole number.
    Whole { copies: u32, measured: f64 },
    /// What the arithmetic gives is no number of copies.
    Odd { measured: f64 },
    /// The arithmetic does not allow it.
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

    /// What the storage was not allowed to filter: sent as blocks.
    pub fn not_eligible_bytes(&self) -> Option<u64> {
        self.read_bytes.checked_sub(self.eligible_bytes?)
    }

    /// What the storage did filter: eligible, neither skipped nor sent as it was.
    pub fn examined_bytes(&self) -> Option<u64> {
        let unfiltered = self.unfiltered_bytes().unwrap_or(0);
        Some(self.eligible_bytes?.saturating_sub(self.skipped_bytes()).saturating_sub(unfiltered))
    }

    /// Eligible, but sent as it was.
    pub fn unfiltered_bytes(&self) -> Option<u64> {
        match (self.balanced_bytes, self.passthru_bytes) {
            (None, None) => None,
            (balanced, passthru) => Some(balanced.unwrap_or(0) + passthru.unwrap_or(0)),
        }
    }

    pub fn unfiltered_of_eligible(&self) -> Option<f64> {
        share(self.unfiltered_bytes()?, self.eligible_bytes?)
    }

    /// The ratio that is usually printed.
    pub fn returned_of_eligible(&self) -> Option<f64> {
        share(self.returned_bytes?, self.eligible_bytes?)
    }

    pub fn eligible_of_all(&self) -> Option<f64> {
        share(self.eligible_bytes?, self.read_bytes)
    }

    /// What did not cross the wire because the storage filtered, of all bytes that were read;
    /// negative where rows left the storage larger than they lie there.
    pub fn saved_of_all(&self) -> Option<f64> {
        let saved = self.eligible_bytes? as f64 - self.returned_bytes? as f64;
        (self.read_bytes > 0).then(|| saved / self.read_bytes as f64)
    }

    /// Of what was read, the bytes that reads left on the wire: (not eligible + returned) ÷ read.
    pub fn returned_of_read(&self) -> Option<f64> {
        let returned = if self.is_returned_all_wire {
            self.wire_bytes?
        } else {
            self.returned_bytes? + self.not_eligible_bytes().unwrap_or(0)
        };
        share(returned, self.read_bytes)
    }

    /// What the wire carried beside reads.
    pub fn beside_reads_bytes(&self) -> Option<u64> {
        if self.is_returned_all_wire {
            return None;
        }
        let reads = self.not_eligible_bytes()?.checked_add(self.returned_bytes?)?;
        self.wire_bytes?.checked_sub(reads)
    }

    /// (wire − (read − eligible + returned)) ÷ written.
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

    /// Writes with their copies, and what the wire carried beside them.
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

/// None of nothing.
fn share(part: u64, whole: u64) -> Option<f64> {
    (whole > 0).then(|| part as f64 / whole as f64)
}
