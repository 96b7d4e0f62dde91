//! The memory limit of a closure.

/// The keys and locators of the rows of a sample take more memory than is allowed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the keys of the sample take more than {limit} bytes of memory, when {table} is read")]
pub struct MemoryError {
    pub table: String,
    pub limit: u64,
}

/// Compares the memory in use with the limit from time to time.
#[derive(Debug)]
pub struct Limit {
    bytes: Option<u64>,
    entries: u64,
    exceeded: bool,
}

/// Entries between two checks of the memory in use.
const STEP: u64 = 1 << 14;

impl Limit {
    pub fn new(bytes: Option<u64>) -> Self {
        Self { bytes, entries: 0, exceeded: false }
    }

    /// Counts an entry; returns whether a check is due.
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

    /// Returns an error if the limit was exceeded.
    pub fn check(&self, table: &str) -> Result<(), MemoryError> {
        match self.bytes {
            Some(limit) if self.exceeded => Err(MemoryError { table: table.to_owned(), limit }),
            _ => Ok(()),
        }
    }
}
