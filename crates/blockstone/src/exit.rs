//! Exit codes: one meaning each, the same for every verb (docs/exit-codes.md).

use std::process::ExitCode;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Exit {
    Done = 0,
    /// A judgement was made and is "failed".
    JudgedFailed = 1,
    /// The verb could not run: bad input, or an error that ended the run.
    CouldNotRun = 2,
    /// The verb ran, but a verdict condemns a number.
    NotTrustworthy = 3,
    /// A capability named by `--require` is missing.
    CapabilityMissing = 4,
    /// Interrupted; the recording was closed first.
    Interrupted = 130,
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        Self::from(exit as u8)
    }
}
