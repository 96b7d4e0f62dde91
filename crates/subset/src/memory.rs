//! The limit of what a closure keeps in memory.

/// The keys and places of the rows of a sample take more memory than is allowed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the keys of the sample take more than {limit} bytes of memory, when {table} is read")]
pub struct MemoryError {
    pub table: String,
    pub limit: u64,
}

/// Says now and then how much memory is taken.
#[derive(Debug)]
pub struct Limit {
    bytes: Option<u64>,
    entries: u64,
    exceeded: bool,
}

/// Entries after which the memory is added up.
const STEP: u64 = 1 << 14;

impl Limit {
    pub fn new(bytes: Option<u64>) -> Self {
        Self { bytes, entries: 0, exceeded: false }
    }

    /// Counts an entry; whether the sum of all is due.
    pub fn is_due(&mut self) -> bool {
        self.entries += 1;
        self.bytes.is_some() && self.entries.is_multiple_of(STEP)
    }

    pub fn take(&mut self, bytes: u64) {
        self.exceeded |= self.bytes.is_some_and(|limit| bytes > limit);
    }

    pub fn is_exceeded(&self) -> bool {
        self.exceeded
    }

    /// An error where more was taken than is allowed.
    pub fn check(&self, table: &str) -> Result<(), MemoryError> {
        match self.bytes {
            Some(limit) if self.exceeded => Err(MemoryError { table: table.to_owned(), limit }),
            _ => Ok(()),
        }
    }
}
