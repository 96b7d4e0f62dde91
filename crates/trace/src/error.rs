//! Reasons why a file is rejected.

#[derive(Debug, thiserror::Error, blockstone_base::hint::Hint)]
pub enum TraceError {
    #[error("read trace: the file is empty")]
    #[hint("trace the session first, or give another file")]
    Empty,
    #[error("read trace: the file is {what}")]
    #[hint("{hint}")]
    Other { what: &'static str, hint: &'static str },
    #[error("read trace: the format is not known")]
    #[hint("an Oracle SQL trace, a tkprof report, a slow log or a log of PostgreSQL is expected")]
    Unknown,
    #[error("read trace: {what} holds no call and no wait")]
    #[hint("{hint}")]
    Nothing { what: &'static str, hint: &'static str },
    #[error("read trace: the file is {what}, of which nothing is read")]
    #[hint("{hint}")]
    Unread { what: &'static str, hint: &'static str },
    #[error("read trace: this file is {second}, those before are {first}")]
    #[hint("give files of one kind")]
    Mixed { first: &'static str, second: &'static str },
    #[error("read trace: {0}")]
    Io(#[from] std::io::Error),
}
